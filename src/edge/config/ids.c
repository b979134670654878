#include "edge/config/ids.h"

#include "wire/settings.h"

#include <string.h>

#define FIELDS_MAX 4
#define UID_RANGE  65536

struct line {
	const char *fields[FIELDS_MAX];
	size_t lens[FIELDS_MAX];
	size_t count;
};

typedef bool line_test_fn(const struct line *l, const struct id_range *range);

static void split(const char *text, size_t len, struct line *ret)
{
	ret->count = 0;
	while (ret->count < FIELDS_MAX) {
		const char *colon = memchr(text, ':', len);
		size_t n = colon ? (size_t)(colon - text) : len;

		ret->fields[ret->count] = text;
		ret->lens[ret->count++] = n;
		if (!colon)
			break;
		text += n + 1;
		len -= n + 1;
	}
}

static bool any_line(const char *text, size_t len, line_test_fn *test, const struct id_range *range)
{
	const char *end = text + len;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		struct line l;

		if (!stop)
			stop = end;
		split(text, (size_t)(stop - text), &l);
		if (test(&l, range))
			return true;
		text = stop + 1;
	}
	return false;
}

/* Ids have at most ten digits; more than that cannot be one and would overflow. */
static bool number_at(const struct line *l, size_t field, uint64_t *ret)
{
	uint64_t n = 0;

	if (field >= l->count || l->lens[field] == 0 || l->lens[field] > 12)
		return false;
	for (size_t i = 0; i < l->lens[field]; i++) {
		char c = l->fields[field][i];

		if (c < '0' || c > '9')
			return false;
		n = n * 10 + (uint64_t)(c - '0');
	}
	*ret = n;
	return true;
}

static bool is_in(const struct line *l, size_t field, const struct id_range *range)
{
	uint64_t id;

	return number_at(l, field, &id) && id >= range->first && id <= range->last;
}

static bool passwd_line(const struct line *l, const struct id_range *range)
{
	return is_in(l, 2, range) || is_in(l, 3, range);
}

static bool group_line(const struct line *l, const struct id_range *range)
{
	return is_in(l, 2, range);
}

static bool subuid_line(const struct line *l, const struct id_range *range)
{
	uint64_t first, count;

	if (!number_at(l, 1, &first) || !number_at(l, 2, &count) || count == 0)
		return false;
	return first <= range->last && first + count - 1 >= range->first;
}

bool ids_passwd_names(const char *text, size_t len, const struct id_range *range)
{
	return any_line(text, len, passwd_line, range);
}

bool ids_group_names(const char *text, size_t len, const struct id_range *range)
{
	return any_line(text, len, group_line, range);
}

bool ids_subuid_names(const char *text, size_t len, const struct id_range *range)
{
	return any_line(text, len, subuid_line, range);
}

bool ids_are_taken(const char *text, size_t len, ids_names_fn *names, uint32_t uid_base)
{
	const struct id_range range = { uid_base, (uint64_t)uid_base + UID_RANGE - 1 };
	const struct id_range own = { CONFIG_UID, CONFIG_UID };

	return names(text, len, &range) || names(text, len, &own);
}
