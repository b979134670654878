/* YAML with everything refused that could surprise: libcyaml against a schema in which
 * every scalar is a string, with its complaints turned into one fault that names the line.
 * No aliases, no second document, no unknown and no repeated keys.
 * (Not yaml.c: libyaml has a yaml_free() of its own, which ours would replace.)
 *
 *   runs in    the config process
 *   owns       what it returns, until document_free()
 *   trusts     no byte of the text
 */
#pragma once

#include "edge/config/parse.h"

#include <cyaml/cyaml.h>
#include <stdbool.h>
#include <stddef.h>

#define DOCUMENT_BYTES_MAX (1u << 20)

struct document {
	const char *bytes; /* terminated behind `len` bytes */
	size_t len;
	const char *name; /* for messages */
};

/* Load `text` as `schema` says. *ret stays NULL when the text holds no document. */
int document_load(const struct document *text, const cyaml_schema_value_t *schema, void **ret,
	struct fault *f) __attribute__((nonnull));
void document_free(const cyaml_schema_value_t *schema, void *loaded) __attribute__((nonnull(1)));

/* Read a config file's text into `c`. */
int document_configure(const struct document *text, struct config *c, struct fault *f)
	__attribute__((nonnull));

/* Lines and columns from 1; { 0, 0 }: not known. */
struct document_place {
	uint32_t line, column;
};

/* Where `key` stands as a key for the first time, behind `from` or at the beginning of a later line;
 * `top`: only as one of the document itself. { 0, 0 } when it is written in a way that this does not
 * see, as {a: 1}. */
struct document_place document_find(const struct document *text, const char *key, bool top,
	struct document_place from) __attribute__((nonnull));
