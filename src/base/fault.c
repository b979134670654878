#include "base/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FAULT_ERRNO_MAX 4095 /* the kernel's MAX_ERRNO */

__attribute__((format(printf, 3, 0))) static int record(
	struct fault *f, int code, const char *fmt, va_list ap)
{
	if (!f)
		return code;
	f->code = code;
	(void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
	return code;
}

/* A constant string, no locale, no allocation. What is loaded into the interpreters of images does
 * not ask for it: their C library may be older than glibc 2.32. */
static const char *describe(int error)
{
#ifdef GLOVEBOX_ANY_GLIBC
	(void)error;
	return NULL;
#else
	return strerrordesc_np(error);
#endif
}

int fault_set(struct fault *f, int code, const char *fmt, ...)
{
	va_list ap;
	size_t used;

	va_start(ap, fmt);
	(void)record(f, code, fmt, ap);
	va_end(ap);
	if (!f)
		return code;
	used = strlen(f->text);
	(void)snprintf(f->text + used, sizeof(f->text) - used, ": %s",
		describe(-code) ? describe(-code) : "unknown error");
	return code;
}

int fault_say(struct fault *f, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)record(f, code, fmt, ap);
	va_end(ap);
	return code;
}

int fault_wrap(struct fault *f, const char *fmt, ...)
{
	struct fault outer = { 0 };
	va_list ap;
	size_t used, room, keep;

	if (!f)
		return -EINVAL;
	va_start(ap, fmt);
	(void)record(&outer, f->code, fmt, ap);
	va_end(ap);
	used = strlen(outer.text);
	room = sizeof(outer.text) - 1 - used;
	if (room > 2) {
		memcpy(outer.text + used, ": ", 2);
		keep = strnlen(f->text, sizeof(f->text));
		if (keep > room - 2)
			keep = room - 2;
		memcpy(outer.text + used + 2, f->text, keep);
		outer.text[used + 2 + keep] = '\0';
	}
	*f = outer;
	return f->code;
}

int fault_launder(struct fault *f)
{
	f->text[sizeof(f->text) - 1] = '\0';
	for (char *p = f->text; *p; p++) {
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			*p = '?';
	}
	if (f->code >= 0 || f->code < -FAULT_ERRNO_MAX)
		f->code = -EPROTO;
	return f->code;
}
