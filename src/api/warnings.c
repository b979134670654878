#include "api/warnings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void warnings_add(struct warnings *w, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int r;

	if (w->count == WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r >= 0)
		w->text[w->count++] = text;
}

void warnings_free(struct warnings *w)
{
	for (unsigned i = 0; i < w->count; i++)
		free(w->text[i]);
	*w = (struct warnings){ 0 };
}
