#include "wire/msg.h"

#include "base/check.h"

static const struct rule {
	const char *name;
	enum role from, to;
	size_t len;
	unsigned nfds;
} rules[MSG_TYPE_MAX] = {
#define X(name, from_, to_, payload, fds) \
	[MSG_##name] = { #name, ROLE_##from_, ROLE_##to_, sizeof(payload), (fds) },
	MESSAGES(X)
#undef X
};

/* No message asks for more descriptors than a struct msg can own. */
#define X(name, from, to, payload, fds) _Static_assert((fds) <= MSG_FDS_MAX, #name);
MESSAGES(X)
#undef X

const char *msg_admit(enum role from, enum role to, uint32_t type, size_t len, unsigned nfds)
{
	const struct rule *r;

	if (type == MSG_NONE || type >= MSG_TYPE_MAX)
		return "unknown type";
	r = &rules[type];
	if (r->from != from || r->to != to)
		return "not allowed between these two";
	if (r->len != len)
		return "wrong length";
	if (r->nfds != nfds)
		return "wrong number of descriptors";
	return NULL;
}

const char *msg_name(uint32_t type)
{
	return type > MSG_NONE && type < MSG_TYPE_MAX ? rules[type].name : "unknown";
}

size_t msg_size(enum msg_type type)
{
	CHECK(type > MSG_NONE && type < MSG_TYPE_MAX);
	return rules[type].len;
}

unsigned msg_fds(enum msg_type type)
{
	CHECK(type > MSG_NONE && type < MSG_TYPE_MAX);
	return rules[type].nfds;
}
