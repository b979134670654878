#include "base/check.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

void check_failed(const char *what, const char *file, int line)
{
	log_err("check", "failed=\"%s\" at=%s:%d", what, file, line);
	abort();
}

void cannot_go_on(const char *what, int error)
{
	log_err("lost", "failed=\"%s\" why=\"%s\"", what, strerror(-error));
	abort();
}
