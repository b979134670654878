#include "hello_play.h"

#include "base/check.h"

#include <string.h>

struct block {
	uint8_t bytes[HELLO_PLAY_MAX];
	size_t len;
};

static void put(struct block *b, unsigned value, unsigned bytes)
{
	for (unsigned i = bytes; i-- > 0;)
		b->bytes[b->len++] = (uint8_t)(value >> 8 * i);
}

static void put_bytes(struct block *b, const void *bytes, size_t len)
{
	memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
}

/* The length, of so many bytes, of what was put behind it. */
static void seal(struct block *b, size_t at, unsigned bytes)
{
	size_t len = b->len - at - bytes;

	for (unsigned i = 0; i < bytes; i++)
		b->bytes[at + i] = (uint8_t)(len >> 8 * (bytes - 1 - i));
}

static size_t open_vector(struct block *b, unsigned bytes)
{
	size_t at = b->len;

	put(b, 0, bytes);
	return at;
}

static void put_name(struct block *b, const struct hello_play *h)
{
	size_t extension, list, name;

	put(b, 0, 2);
	extension = open_vector(b, 2);
	list = open_vector(b, 2);
	for (unsigned i = 0; i <= h->two_names; i++) {
		put(b, h->name_type, 1);
		name = open_vector(b, 2);
		put_bytes(b, h->name, strlen(h->name));
		seal(b, name, 2);
	}
	seal(b, list, 2);
	if (h->behind_name)
		put(b, 0, 1);
	seal(b, extension, 2);
}

static void put_extensions(struct block *b, const struct hello_play *h)
{
	static const uint8_t versions[] = { 0, 43, 0, 3, 2, 3, 4 };
	size_t all = open_vector(b, 2);

	put_bytes(b, versions, sizeof(versions));
	for (unsigned i = 0; h->name && i <= h->twice; i++)
		put_name(b, h);
	if (h->extension)
		put(b, h->extension << 16, 4);
	for (unsigned i = 0; i < h->more; i++)
		put(b, (0x4000 + i) << 16, 4);
	if (h->padding > 0) {
		size_t one;

		put(b, 21, 2);
		one = open_vector(b, 2);
		memset(b->bytes + b->len, 0, h->padding);
		b->len += h->padding;
		seal(b, one, 2);
	}
	seal(b, all, 2);
	if (h->behind_extensions)
		put(b, 0, 1);
}

static void put_message(struct block *b, const struct hello_play *h)
{
	size_t at;

	put(b, h->message ? h->message : 1, 1);
	at = open_vector(b, 3);
	put(b, h->version ? h->version : 0x0303, 2);
	for (unsigned i = 0; i < 32; i++)
		put(b, i, 1);
	put(b, h->session_id, 1);
	for (unsigned i = 0; i < h->session_id; i++)
		put(b, i, 1);
	put(b, h->suites == 0 ? 2 : h->suites == 255 ? 0 : h->suites, 2);
	for (unsigned i = 0; h->suites != 255 && i < (h->suites ? h->suites : 2); i++)
		put(b, 0x13, 1);
	put(b, h->no_compression ? 0 : 0x0100, h->no_compression ? 1 : 2);
	if (!h->no_extensions)
		put_extensions(b, h);
	seal(b, at, 3);
	if (h->behind_hello)
		put(b, 0, 4);
}

size_t hello_play_make(const struct hello_play *h, uint8_t *ret)
{
	static struct block message;
	size_t most = h->record ? h->record : HELLO_PLAY_MAX, at = 0, len = 0;

	message.len = 0;
	put_message(&message, h);
	while (at < message.len) {
		size_t n = message.len - at < most ? message.len - at : most;

		CHECK(len + 5 + n <= HELLO_PLAY_MAX);
		memcpy(ret + len, (const uint8_t[]){ 22, 3, 1, (uint8_t)(n >> 8), (uint8_t)n }, 5);
		memcpy(ret + len + 5, message.bytes + at, n);
		len += 5 + n;
		at += n;
	}
	return len;
}
