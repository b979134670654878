/* What is installed in an image, by what its package managers have written down: dpkg's status, apk's
 * database, and the metadata of Python's distributions. Nobody has run anything to find it out, and
 * nothing depends on it: it is shown.
 *
 * Their files are read in passing, while the second pass copies them. All three have lines
 * "Key: value", in stanzas that an empty line ends.
 *
 *   runs in    the process that reads archives; pure
 *   owns       what it has listed, until inventory_done()
 *   trusts     no byte
 */
#pragma once

#include "edge/image/tree.h"
#include "wire/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which of the three files; the word that is shown is in inventory.c. */
enum inventory_kind {
	INVENTORY_NONE,
	INVENTORY_DPKG,
	INVENTORY_APK,
	INVENTORY_PYTHON,
	INVENTORY_KINDS
};

#define INVENTORY_LINE_MAX 512 /* longer lines say nothing that is wanted */
#define INVENTORY_WORD_MAX 100 /* a name or a version, with its end */

struct inventory_package {
	enum inventory_kind kind;
	char *name, *version; /* one allocation, which is the name's */
};

struct inventory_list {
	const struct tree_inode *dpkg, *apk; /* the files; NULL: there is none */
	struct inventory_package *of;
	size_t count;
	uint32_t lost; /* not listed: no names, too long, or more than there is room for */

	/* Of the file that is read now. */
	enum inventory_kind kind;
	bool skips; /* this line is too long */
	bool ended; /* a distribution's headers, behind which it describes itself */
	char line[INVENTORY_LINE_MAX];
	size_t line_len;
	char name[INVENTORY_WORD_MAX], version[INVENTORY_WORD_MAX];
	bool installed;
};

/* Find the package managers' files in a tree that is complete. */
void inventory_init(struct inventory_list *v, const struct tree *t) __attribute__((nonnull));
void inventory_done(struct inventory_list *v) __attribute__((nonnull));

/* The contents of a file: all of it, in pieces, between the two others. */
void inventory_begin(struct inventory_list *v, const struct tree_inode *i) __attribute__((nonnull));
void inventory_feed(struct inventory_list *v, const void *bytes, size_t len)
	__attribute__((nonnull));
void inventory_end(struct inventory_list *v) __attribute__((nonnull));

/* The version of the interpreter `s->argv[0]`, which is the file `i` (NULL: it is not known): that of
 * the package that has its name; or what a variable of the image says (PYTHON_VERSION, as official images
 * have it); or what its name does. "": not known. */
void inventory_version(const struct inventory_list *v, const struct image_start *s,
	const struct tree_inode *i, char ret[static INVENTORY_WORD_MAX])
	__attribute__((nonnull(1, 2, 4)));

/* All of it as the text of IMAGE_INVENTORY_FILE (wire/image.h), sorted; what does not fit counts as
 * lost. To be freed; NULL: out of memory. */
char *inventory_text(struct inventory_list *v, const char *version, size_t *ret_len)
	__attribute__((nonnull));
