#include "wire/selftest.h"

#include <stdbool.h>
#include <stddef.h>

/* Printable ASCII, ended within its room. */
static bool is_text(const char *text, size_t room)
{
	for (size_t i = 0; i < room; i++) {
		if (text[i] == '\0')
			return true;
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return false;
}

const char *selftest_record_fault(const struct selftest_record *r)
{
	if (r->magic != SELFTEST_MAGIC)
		return "not a result of this layout";
	if (r->failed > r->probes || r->impossible > r->probes - r->failed)
		return "its numbers do not add up";
	if (!is_text(r->at, sizeof(r->at)) || !is_text(r->first_failed, sizeof(r->first_failed)))
		return "a text in it cannot be shown";
	if ((r->failed > 0) != (r->first_failed[0] != '\0'))
		return "what has failed is not named";
	return NULL;
}
