/* The languages of this server, each from a folder of runtimes/: how a program of it starts in a
 * cell (struct runtime), and what a client has to know of it (struct offer).
 *
 * They are read by the config process, checked by the supervisor, which keeps them, and told to
 * the client after HELLO. Behind them are the images of the store. On the wire a language is its
 * number: 0 is the one that a request without `language` is in, which the pool's ready cells are
 * for. The number of an image that has gone becomes another one's, in another edition.
 *
 *   runs in    every process
 */
#pragma once

#include "wire/image.h"
#include "wire/limits.h"
#include "wire/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANGUAGES_MAX          32u
#define LANGUAGE_DEFAULT       "python" /* number 0 */
#define LANGUAGE_ALIASES_MAX   8        /* one place less: "" ends the list; so with suffixes */
#define LANGUAGE_SUFFIXES_MAX  8
#define LANGUAGE_SUFFIX_MAX    16
#define LANGUAGE_PACKAGE_MAX   64
#define LANGUAGE_INVENTORY_MAX 1024

/* What a run is of its program. */
enum run_part {
	RUN_WHOLE, /* an interpreter runs the code */
	RUN_COMPILER,
	RUN_BUILT, /* what a compiler has made is run */
	RUN_PART_MAX
};

struct offer {
	char name[RUNTIME_NAME_MAX];
	char aliases[LANGUAGE_ALIASES_MAX][RUNTIME_NAME_MAX];
	char main_file[RUNTIME_PATH_MAX];
	/* What an entry point's name must end with, one of them; none: anything. */
	char suffixes[LANGUAGE_SUFFIXES_MAX][LANGUAGE_SUFFIX_MAX];
	char package[LANGUAGE_PACKAGE_MAX]; /* Debian's, that brings the toolchain; several words */
	char inventory
		[LANGUAGE_INVENTORY_MAX]; /* a program that prints its version and its packages */
	struct run_limits limits;         /* its own defaults; a member that is 0: the server's */
	struct run_limits compile_limits; /* of the compiler; so, too */
	uint32_t compiled;                /* 1: a compiler comes first */
	uint32_t reports;                 /* 1: it tells of errors, the last value and figures */
	uint32_t is_image; /* 1: it is no language but an image of the store (wire/image.h) */
	uint32_t reserved; /* 0 */
};

/* A language as its manifest has it. */
struct language {
	struct runtime runtime;
	char compile_argv[RUNTIME_ARGV_MAX]
			 [RUNTIME_PATH_MAX]; /* as runtime.argv; none: no compiler */
	struct offer offer;                  /* its name and main_file are the runtime's */
};

/* All of a server's. */
struct languages {
	uint32_t count; /* of[0] is LANGUAGE_DEFAULT, if it is there */
	struct language of[LANGUAGES_MAX];
	uint8_t digests[LANGUAGES_MAX][IMAGE_DIGEST_MAX]; /* of those that are images */
	uint32_t editions[LANGUAGES_MAX];
	uint32_t
		unused; /* a bit for each number of an image that has gone, which another may have */
};

struct offers {
	uint32_t count; /* 0: nobody has told; otherwise of[0] is LANGUAGE_DEFAULT */
	struct offer of[LANGUAGES_MAX]; /* one without a name is none */
	uint32_t editions[LANGUAGES_MAX];
};

/* The broken rule as a constant text, or NULL when every text is terminated, every list ended,
 * and every limit within what the settings could allow. */
const char *language_fault(const struct language *l) __attribute__((nonnull));
const char *offer_fault(const struct offer *o) __attribute__((nonnull));
/* The same of the limits of a manifest, where 0 stands for the server's. */
const char *language_limits_fault(const struct run_limits *l) __attribute__((nonnull));

/* What is told of a number, in their order; of an image also later, in the place of what was. The
 * broken rule, or NULL. */
const char *offers_put(struct offers *offers, uint32_t number, uint32_t edition,
	const struct offer *o) __attribute__((nonnull));

/* The number of the language of that name or alias, or -1. */
int offers_find(const struct offers *offers, const char *name, size_t len) __attribute__((nonnull));

/* The number of the image of that name, or -1. */
int offers_find_image(const struct offers *offers, const char *name, size_t len)
	__attribute__((nonnull));

/* The names of all languages, or of all images, with commas between them, as far as `room`
 * reaches. How long they are; 0: there is none. */
size_t offers_names(const struct offers *offers, bool images, char *ret, size_t room)
	__attribute__((nonnull));
#define OFFERS_NAMES_MAX (LANGUAGES_MAX * (RUNTIME_NAME_MAX + 2))

/* Its name or alias that the word is likest to (base/likeness.h), or NULL. */
const char *offers_like(const struct offers *offers, bool images, const char *name, size_t len)
	__attribute__((nonnull));

/* The limits of a request in that language, or image, that asks for none: the manifest's where it
 * has some, else the settings', and none above what the settings allow. */
void offer_limits(const struct offer *o, const struct settings *s, struct run_limits *ret)
	__attribute__((nonnull));
/* The same of its compiler. */
void offer_compile_limits(const struct offer *o, const struct settings *s, struct run_limits *ret)
	__attribute__((nonnull));

/* Both by its number. One that there is not has none of its own. */
void offers_limits(const struct offers *offers, uint32_t language, const struct settings *s,
	struct run_limits *ret) __attribute__((nonnull));
void offers_compile_limits(const struct offers *offers, uint32_t language, const struct settings *s,
	struct run_limits *ret) __attribute__((nonnull));
