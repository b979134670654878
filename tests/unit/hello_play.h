/* ClientHellos as a test wants them.
 *
 *   runs in    unit tests
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HELLO_PLAY_MAX 65536u

/* What is different from an ordinary hello for one name. */
struct hello_play {
	const char *name;       /* NULL: it has none */
	unsigned extension;     /* one more, of this type, empty; 0: none */
	unsigned more;          /* further extensions, of types that nobody knows */
	size_t padding;         /* bytes of one more extension */
	unsigned record;        /* bytes in a record; 0: all in one */
	unsigned name_type;     /* of the name in its list */
	bool two_names;         /* in the list */
	bool twice;             /* the extension of names */
	bool behind_name;       /* a byte behind the list of names, in its extension */
	bool behind_extensions; /* a byte behind all of them */
	bool behind_hello;      /* another message in its record */
	bool no_extensions;     /* not even their length */
	unsigned session_id;    /* bytes of it */
	unsigned suites;        /* bytes of them; 0: two, 255: none */
	bool no_compression;
	unsigned version; /* 0: 3.3 */
	unsigned message; /* type of the message; 0: a hello */
};

/* Into `ret`, of HELLO_PLAY_MAX bytes. Returns its length. */
size_t hello_play_make(const struct hello_play *h, uint8_t *ret) __attribute__((nonnull));
