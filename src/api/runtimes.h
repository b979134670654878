/* GET /runtimes: the languages and images of this server, and what was found out about each: of a language
 * by running the program that its manifest has for that (`inventory`) in a cell: its first line is the version,
 * each further one "NAME VERSION" a package that programs find. Of an image by what was found in it when it
 * was made.
 *
 *   runs in    the front
 *   owns       an inventory owns its text
 *   trusts     no byte of a program's output, nor of an image's inventory
 */
#pragma once

#include "wire/language.h"

#include <stdbool.h>
#include <stddef.h>

#define INVENTORY_VERSION_MAX 64
#define INVENTORY_PACKAGES_MAX \
	4096u /* a host with all of Debian's Python packages has about so many */

enum inventory_state {
	INVENTORY_UNKNOWN, /* not looked at yet */
	INVENTORY_KNOWN,
	INVENTORY_MISSING, /* the toolchain is not installed: `why` */
	INVENTORY_FAILED   /* the program of the manifest was not run, or failed: `why` */
};

struct inventory {
	enum inventory_state state;
	char version[INVENTORY_VERSION_MAX]; /* "" when not known */
	char *packages;                      /* as JSON, an array; NULL: none are listed */
	char why[256];                       /* printable */
};

void inventory_clear(struct inventory *in) __attribute__((nonnull));

/* Take what the program has printed; or of an image its inventory (wire/image.h), of which each package
 * has a third word. 0 or -ENOMEM. */
int inventory_take(struct inventory *in, const char *text, size_t len, bool is_image)
	__attribute__((nonnull));

/* It is not known: why. */
void inventory_lack(struct inventory *in, enum inventory_state state, const char *why)
	__attribute__((nonnull));

/* The document. `warm`: a bit for each offer whose programs are forked from a warm interpreter. `of`
 * has one for each offer. NULL: out of memory. */
char *api_runtimes_json(const struct offers *offers, const struct settings *s, uint32_t warm,
	const struct inventory *of, size_t *ret_len) __attribute__((nonnull));
