/* The settings as texts with a source, turned into the checked struct: one place for
 * defaults, file, environment and flags, so that all four are read alike.
 *
 *   runs in    the config process; pure, so that tests run it anywhere
 *   owns       nothing
 *   trusts     no text
 */
#pragma once

#include "wire/network.h"
#include "wire/settings.h"

#include <stddef.h>
#include <stdint.h>

struct fault;

enum {
#define X(key, field, type, def, least, most, help) +1
	CONFIG_SETTINGS = 0 SETTINGS(X)
#undef X
};

enum config_origin {
	ORIGIN_DEFAULT,
	ORIGIN_FILE,
	ORIGIN_LIBRARY, /* options of gbx_open() */
	ORIGIN_ENVIRONMENT,
	ORIGIN_FLAG
};

struct config_source {
	enum config_origin origin;
	const char *file; /* ORIGIN_FILE: its name, borrowed */
	uint32_t line;    /* ORIGIN_FILE: 0 when not known */
	uint32_t column;  /* of an item of a list: where its text begins; else 0 */
};

struct config {
	struct settings settings;
	struct network_policy policy; /* of the settings network-…; complete once it is settled */
	struct config_source sources[CONFIG_SETTINGS]; /* in the order of SETTINGS */
};

/* What "0: by the size of the host" is computed from. */
struct config_host {
	uint32_t cpus;
	uint64_t memory_bytes;
};

/* Everything at its default. */
void config_init(struct config *c) __attribute__((nonnull));

/* Set one key from its text. The fault names key, value, what would be right, and the
 * source. A list of layers, or of rules, is one text with commas; a second one from the
 * same origin adds to it, one from another origin replaces it. */
int config_set(struct config *c, const char *key, const char *value,
	const struct config_source *from, struct fault *f) __attribute__((nonnull));

/* Read the records of the overrides: "SPELLING=VALUE", each ended by NUL, later ones win.
 * The spelling tells the source: GLOVEBOX_MAX_RUNS, --max-runs, or the bare key. */
int config_override(struct config *c, const char *records, size_t len, struct fault *f)
	__attribute__((nonnull));

/* Replace the zeros that mean "computed" and check what no key can check alone. */
int config_settle(struct config *c, const struct config_host *host, struct fault *f)
	__attribute__((nonnull));
