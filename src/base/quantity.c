#include "base/quantity.h"

#include "base/check.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define FRACTION_DIGITS_MAX 9

/* A decimal number before its unit: whole + fraction / scale. */
struct decimal {
	uint64_t whole;
	uint64_t fraction;
	uint64_t scale; /* 10 to the number of fraction digits */
};

struct unit {
	const char *word;
	uint64_t factor;
};

/* clang-format off */
static const struct unit size_units[] = {
	{ "",  1 },              { "B",  1 },
	{ "K", UINT64_C(1) << 10 }, { "KB", UINT64_C(1) << 10 }, { "KiB", UINT64_C(1) << 10 },
	{ "M", UINT64_C(1) << 20 }, { "MB", UINT64_C(1) << 20 }, { "MiB", UINT64_C(1) << 20 },
	{ "G", UINT64_C(1) << 30 }, { "GB", UINT64_C(1) << 30 }, { "GiB", UINT64_C(1) << 30 },
	{ "T", UINT64_C(1) << 40 }, { "TB", UINT64_C(1) << 40 }, { "TiB", UINT64_C(1) << 40 },
};

static const struct unit duration_units[] = {
	{ "", 1000000 }, { "s", 1000000 }, { "ms", 1000 }, { "us", 1 },
	{ "m", UINT64_C(60) * 1000000 }, { "h", UINT64_C(3600) * 1000000 },
};

static const struct unit cpu_units[] = { { "", 1000 } };
static const struct unit count_units[] = { { "", 1 } };
/* clang-format on */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int parse_whole(const char **at, uint64_t *ret)
{
	const char *p = *at;
	uint64_t n = 0;
	bool fits = true;

	if (!is_digit(*p) || (p[0] == '0' && is_digit(p[1])))
		return -EINVAL;
	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			fits = false;
	}
	*at = p;
	*ret = n;
	return fits ? 0 : -ERANGE;
}

static int parse_fraction(const char **at, struct decimal *d)
{
	const char *p = *at;

	if (*p != '.')
		return 0;
	if (!is_digit(p[1]))
		return -EINVAL;
	for (p++; is_digit(*p); p++) {
		if (d->scale >= UINT64_C(1000000000))
			return -EINVAL; /* FRACTION_DIGITS_MAX: finer than anything we count */
		d->fraction = d->fraction * 10 + (uint64_t)(*p - '0');
		d->scale *= 10;
	}
	*at = p;
	return 0;
}

static int scale_up(const struct decimal *d, uint64_t factor, uint64_t *ret)
{
	uint64_t part, whole;

	/* fraction < 10^9, and a factor above 2^34 could overflow: divide out first what
	 * both have in common would be cleverer, a refusal is enough. */
	if (__builtin_mul_overflow(d->fraction, factor, &part))
		return -ERANGE;
	if (part % d->scale != 0)
		return -EINVAL;
	if (__builtin_mul_overflow(d->whole, factor, &whole) ||
		__builtin_add_overflow(whole, part / d->scale, &whole))
		return -ERANGE;
	*ret = whole;
	return 0;
}

static int parse(const char *text, const struct unit *units, size_t n, uint64_t bare, uint64_t *ret)
{
	struct decimal d = { .scale = 1 };
	const char *p = text;
	int r, too_big = 0;

	r = parse_whole(&p, &d.whole);
	if (r == -ERANGE)
		too_big = r; /* reported only if the rest is well-formed */
	else if (r < 0)
		return r;
	r = parse_fraction(&p, &d);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(p, units[i].word) != 0)
			continue;
		if (too_big)
			return too_big;
		return scale_up(&d, *p ? units[i].factor : bare, ret);
	}
	return -EINVAL;
}

int quantity_size(const char *text, uint64_t *ret)
{
	return parse(text, size_units, ARRAY_LEN(size_units), 1, ret);
}

int quantity_mib(const char *text, uint64_t *ret)
{
	return parse(text, size_units, ARRAY_LEN(size_units), UINT64_C(1) << 20, ret);
}

int quantity_duration(const char *text, uint64_t *ret)
{
	return parse(text, duration_units, ARRAY_LEN(duration_units), 1000000, ret);
}

int quantity_cpus(const char *text, uint64_t *ret)
{
	return parse(text, cpu_units, ARRAY_LEN(cpu_units), 1000, ret);
}

int quantity_count(const char *text, uint64_t *ret)
{
	if (strchr(text, '.'))
		return -EINVAL;
	return parse(text, count_units, ARRAY_LEN(count_units), 1, ret);
}

int quantity_bool(const char *text, bool *ret)
{
	bool yes = strcmp(text, "true") == 0;

	if (!yes && strcmp(text, "false") != 0)
		return -EINVAL;
	*ret = yes;
	return 0;
}
