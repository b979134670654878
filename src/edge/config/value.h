/* One setting's text turned into its field, by type; and back, for messages.
 *
 *   runs in    the config process; pure
 *   trusts     no text
 */
#pragma once

#include "wire/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_type {
	VALUE_SIZE,
	VALUE_COUNT,
	VALUE_DURATION,
	VALUE_CPUS,
	VALUE_BOOL,
	VALUE_SWITCH,
	VALUE_RULES,
	VALUE_TEXT,
	VALUE_MODULES,
	VALUE_IMAGE,
	VALUE_LAYER_SET,
	VALUE_LISTEN,
	VALUE_LEVEL
};

/* What is right for a type, for messages: "a size such as 64M or 1.5G". */
const char *value_expectation(enum value_type type);

/* Has the type an order, so that a range can be out of? */
bool value_is_number(enum value_type type);

/* Parse a text of a type for which value_is_number(). 0, -EINVAL or -ERANGE. */
int value_parse_number(enum value_type type, const char *text, uint64_t *ret)
	__attribute__((nonnull));

/* A path as cgroup and unix: take it: absolute, printable, no "..", "" not allowed. */
bool value_is_path(const char *text) __attribute__((nonnull));

/* "a,b" to LAYER_BIT()s; "" is none of them. 0 or -EINVAL. */
int value_parse_layers(const char *text, uint64_t *ret) __attribute__((nonnull));

/* ADDR:PORT, [ADDR6]:PORT, localhost:PORT or unix:PATH. 0 or -EINVAL. */
int value_parse_listen(const char *text, struct listen_address *ret) __attribute__((nonnull));

/* A number as people write it ("64M", "1.5s"); the text lies in `room`. */
#define VALUE_TEXT_MAX 32
const char *value_format(enum value_type type, uint64_t value, char room[static VALUE_TEXT_MAX]);

/* `text` for a message: clipped, with '?' for what is not printable ASCII. */
#define VALUE_QUOTE_MAX 64
const char *value_quote(const char *text, char room[static VALUE_QUOTE_MAX]);
