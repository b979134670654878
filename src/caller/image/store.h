/* The store of images: a folder with a folder for each. Only root writes there; whoever makes
 * or removes an image holds its lock. What is not complete has another name (".new-…") until it is
 * renamed into its place.
 *
 *   runs in    the command line
 *   owns       a struct store owns its descriptor, and with it the lock
 *   blocks     store_lock(), until another command is done
 */
#pragma once

#include "wire/image.h"

#include <stdbool.h>
#include <stddef.h>

struct fault;

#define STORE_DEFAULT "/var/lib/glovebox/images"

struct store {
	int fd; /* the folder */
	const char *path;
};

/* Open the store at `path` (borrowed). With `make` it is made when it is not there; without,
 * -ENOENT says so. Refused when others than root may write there. */
int store_open(struct store *s, const char *path, bool make, struct fault *f)
	__attribute__((nonnull));
void store_close(struct store *s) __attribute__((nonnull));

/* Hold the lock, and sweep what a command that was killed has left. -EWOULDBLOCK: another command has
 * it, and we are not to wait. */
int store_lock(struct store *s, bool wait, struct fault *f) __attribute__((nonnull));

/* The record of the image `name`. -ENOENT: there is none. */
int store_read(const struct store *s, const char *name, struct image_record *ret, struct fault *f)
	__attribute__((nonnull));

/* The file with the image's root, opened for reading. */
int store_open_root(const struct store *s, const char *name, struct fault *f)
	__attribute__((nonnull));
/* The one with its inventory. */
int store_open_inventory(const struct store *s, const char *name, struct fault *f)
	__attribute__((nonnull));

/* The names, sorted, in a list that ends with NULL: store_free_names(). */
int store_names(const struct store *s, char ***ret, struct fault *f) __attribute__((nonnull));
void store_free_names(char **names);

/* Begin an image in a folder of its own, `ret` its name in the store. */
#define STORE_FRESH_MAX 32
int store_begin(const struct store *s, char ret[static STORE_FRESH_MAX], struct fault *f)
	__attribute__((nonnull));
/* Put its inventory beside the root. The file, to be read, or a negative errno. */
int store_put_inventory(const struct store *s, const char *fresh, const char *text, size_t len,
	struct fault *f) __attribute__((nonnull));
/* Put the record beside the root, and both in the place of the image that the record names, which
 * is replaced if there is one. */
int store_commit(const struct store *s, const char *fresh, const struct image_record *record,
	struct fault *f) __attribute__((nonnull));

/* Remove an image, or what was begun. */
int store_remove(const struct store *s, const char *name, struct fault *f) __attribute__((nonnull));
