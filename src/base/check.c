#include "base/check.h"

#include "base/log.h"

#include <stdlib.h>

void check_failed(const char *what, const char *file, int line)
{
	log_err("check", "failed=\"%s\" at=%s:%d", what, file, line);
	abort();
}
