#include "edge/gate/message.h"

#include <arpa/nameser.h>
#include <string.h>

#define TTL_S 60u /* of an answer for the cell; its run is hardly longer */

static size_t put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return 2;
}

size_t message_begin(uint8_t ret[MESSAGE_MAX], const struct message_head *h)
{
	int len;

	memset(ret, 0, NS_HFIXEDSZ);
	put16(ret, h->id);
	put16(ret + 2, h->flags);
	put16(ret + 4, 1);
	len = ns_name_compress(
		h->name, ret + NS_HFIXEDSZ, MESSAGE_MAX - NS_HFIXEDSZ - 4, NULL, NULL);
	if (len < 0)
		return 0;
	put16(ret + NS_HFIXEDSZ + len, h->type);
	put16(ret + NS_HFIXEDSZ + len + 2, ns_c_in);
	return NS_HFIXEDSZ + (size_t)len + 4;
}

size_t message_add(uint8_t ret[MESSAGE_MAX], size_t len, unsigned type, unsigned nth,
	const struct network_address *a)
{
	unsigned bytes = type == ns_t_a ? NS_INADDRSZ : NS_IN6ADDRSZ;
	uint8_t *at = ret + len;

	if (len + 2 + NS_RRFIXEDSZ + bytes > MESSAGE_MAX)
		return len;
	at += put16(at, 0xc000 | NS_HFIXEDSZ); /* the name of the question */
	at += put16(at, type);
	at += put16(at, ns_c_in);
	at += put16(at, 0);
	at += put16(at, TTL_S);
	at += put16(at, bytes);
	memcpy(at, a->bytes + 16 - bytes, bytes);
	put16(ret + 6, nth + 1);
	return (size_t)(at - ret) + bytes;
}
