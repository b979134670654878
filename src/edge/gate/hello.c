#include "edge/gate/hello.h"

#include <string.h>

#define RECORD_HEAD    5u
#define TYPE_HANDSHAKE 22
#define MESSAGE_HEAD   4u
#define CLIENT_HELLO   1

#define RANDOM_BYTES    32u
#define SESSION_ID_MAX  32u
#define NAME_HOST       0
#define EXTENSIONS_SEEN 64u /* kinds in one hello; browsers have some 20 */

enum extension {
	EXTENSION_SERVER_NAME = 0,
	EXTENSION_EARLY_DATA = 42,
	EXTENSION_ECH_FIRST_DRAFT = 0xfe08,
	EXTENSION_ECH = 0xfe0d,
	EXTENSION_ESNI = 0xffce
};

/* ---- Bytes ---- */

/* What is left of some bytes; once something was not there nothing is. */
struct reader {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static const uint8_t *take(struct reader *r, size_t len)
{
	const uint8_t *at = r->at;

	if (r->bad || len > r->left) {
		r->bad = true;
		return NULL;
	}
	r->at += len;
	r->left -= len;
	return at;
}

/* Of one or two bytes. */
static unsigned number(struct reader *r, unsigned bytes)
{
	const uint8_t *at = take(r, bytes);

	if (!at)
		return 0;
	return bytes == 1 ? at[0] : (unsigned)at[0] << 8 | at[1];
}

/* A vector with its length, a number of so many bytes, in front of it. */
static struct reader vector(struct reader *r, unsigned bytes)
{
	size_t len = number(r, bytes);
	const uint8_t *at = take(r, len);

	return (struct reader){ .at = at, .left = at ? len : 0, .bad = !at };
}

/* ---- Extensions ---- */

/* RFC 6066, 3: a list of names of different types, of which there is one. */
static bool read_name(struct reader body, struct hello *ret)
{
	struct reader list = vector(&body, 2), name;
	unsigned type = number(&list, 1);
	size_t at;

	name = vector(&list, 2);
	if (name.bad || list.left > 0 || body.left > 0 || type != NAME_HOST || name.left == 0 ||
		network_name_fault((const char *)name.at, name.left, &at))
		return false;
	for (size_t i = 0; i < name.left; i++) {
		char c = (char)name.at[i];

		ret->name[i] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	}
	ret->name[name.left] = '\0';
	return true;
}

static bool read_extension(unsigned type, struct reader body, struct hello *ret)
{
	if (type == EXTENSION_SERVER_NAME)
		return read_name(body, ret);
	ret->early |= type == EXTENSION_EARLY_DATA;
	ret->hidden |= type == EXTENSION_ESNI ||
		       (type >= EXTENSION_ECH_FIRST_DRAFT && type <= EXTENSION_ECH);
	return true;
}

static bool read_extensions(struct reader all, struct hello *ret)
{
	unsigned seen[EXTENSIONS_SEEN], count = 0;

	while (all.left > 0) {
		unsigned type = number(&all, 2);
		struct reader body = vector(&all, 2);

		if (all.bad || count == EXTENSIONS_SEEN)
			return false;
		for (unsigned i = 0; i < count; i++)
			if (seen[i] == type)
				return false;
		seen[count++] = type;
		if (!read_extension(type, body, ret))
			return false;
	}
	return true;
}

/* ---- The message ---- */

static bool read_body(struct reader r, struct hello *ret)
{
	struct reader session, suites, compressions;
	unsigned version = number(&r, 2);

	(void)take(&r, RANDOM_BYTES);
	session = vector(&r, 1);
	suites = vector(&r, 2);
	compressions = vector(&r, 1);
	if (r.bad || version >> 8 != 3 || session.left > SESSION_ID_MAX || suites.left == 0 ||
		suites.left % 2 != 0 || compressions.left == 0)
		return false;
	if (r.left > 0) { /* before TLS 1.3 there may be none */
		struct reader extensions = vector(&r, 2);

		return !r.bad && r.left == 0 && read_extensions(extensions, ret);
	}
	return true;
}

/* A record of a handshake: what is in it, or NULL. */
static const uint8_t *record_of(const uint8_t *bytes, size_t *ret_len)
{
	*ret_len = (size_t)bytes[3] << 8 | bytes[4];
	if (bytes[0] != TYPE_HANDSHAKE || bytes[1] != 3 || *ret_len == 0)
		return NULL;
	return bytes + RECORD_HEAD;
}

/* How long the message is that begins there; 0: that is not known yet, SIZE_MAX: it is no hello. */
static size_t length_of(const uint8_t *message, size_t len)
{
	size_t whole;

	if (len > 0 && message[0] != CLIENT_HELLO)
		return SIZE_MAX;
	if (len < MESSAGE_HEAD)
		return 0;
	whole = MESSAGE_HEAD + ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
	return whole > HELLO_MAX ? SIZE_MAX : whole;
}

ssize_t hello_read(const uint8_t *bytes, size_t len, struct hello *ret)
{
	static uint8_t message[HELLO_MAX];
	size_t at = 0, have = 0, whole = 0, in_record;

	*ret = (struct hello){ 0 };
	while (whole == 0 || have < whole) {
		const uint8_t *record;
		size_t n;

		if (len - at < RECORD_HEAD)
			return 0;
		record = record_of(bytes + at, &in_record);
		at += RECORD_HEAD;
		if (!record || at + in_record > HELLO_MAX)
			return -1;
		n = in_record < len - at ? in_record : len - at;
		memcpy(message + have, record, n);
		have += n;
		at += n;
		whole = length_of(message, have);
		if (whole == SIZE_MAX || (whole > 0 && have - n + in_record > whole))
			return -1; /* also what is behind it in its record */
		if (n < in_record)
			return 0;
	}
	return read_body((struct reader){ .at = message + MESSAGE_HEAD,
				 .left = whole - MESSAGE_HEAD },
		       ret)
		       ? (ssize_t)at
		       : -1;
}
