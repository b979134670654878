#include "edge/config/runtime.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/quantity.h"
#include "edge/config/document.h"
#include "edge/config/limits.h"
#include "edge/config/value.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct manifest_compile {
	char **argv;
	unsigned argv_count;
	struct limits_section *limits;
};

struct manifest {
	char *name, *main_file, *full_proc, *reports, *package, *inventory;
	char **aliases, **suffixes, **argv, **env, **roots;
	unsigned aliases_count, suffixes_count, argv_count, env_count, roots_count;
	struct limits_section *limits;
	struct manifest_compile *compile;
};

static const cyaml_schema_value_t text_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, RUNTIME_PATH_MAX - 1),
};
static const cyaml_schema_value_t name_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, RUNTIME_NAME_MAX - 1),
};
static const cyaml_schema_value_t suffix_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, LANGUAGE_SUFFIX_MAX - 1),
};

#define OPTIONAL (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)

static const cyaml_schema_field_t compile_fields[] = {
	CYAML_FIELD_SEQUENCE("argv", CYAML_FLAG_POINTER, struct manifest_compile, argv, &text_entry,
		1, RUNTIME_ARGV_MAX - 1),
	CYAML_FIELD_MAPPING_PTR(
		"limits", OPTIONAL, struct manifest_compile, limits, limits_section_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t fields[] = {
	CYAML_FIELD_STRING_PTR(
		"name", CYAML_FLAG_POINTER, struct manifest, name, 1, RUNTIME_NAME_MAX - 1),
	/* One place less than each struct has: "" must end each list. */
	CYAML_FIELD_SEQUENCE("aliases", OPTIONAL, struct manifest, aliases, &name_entry, 0,
		LANGUAGE_ALIASES_MAX - 1),
	CYAML_FIELD_STRING_PTR("main-file", CYAML_FLAG_POINTER, struct manifest, main_file, 1,
		RUNTIME_PATH_MAX - 1),
	CYAML_FIELD_SEQUENCE("suffixes", OPTIONAL, struct manifest, suffixes, &suffix_entry, 0,
		LANGUAGE_SUFFIXES_MAX - 1),
	CYAML_FIELD_STRING_PTR(
		"package", OPTIONAL, struct manifest, package, 1, LANGUAGE_PACKAGE_MAX - 1),
	CYAML_FIELD_STRING_PTR(
		"full-proc", OPTIONAL, struct manifest, full_proc, 0, RUNTIME_NAME_MAX),
	CYAML_FIELD_STRING_PTR("reports", OPTIONAL, struct manifest, reports, 0, RUNTIME_NAME_MAX),
	CYAML_FIELD_SEQUENCE("argv", CYAML_FLAG_POINTER, struct manifest, argv, &text_entry, 1,
		RUNTIME_ARGV_MAX - 1),
	CYAML_FIELD_SEQUENCE(
		"env", OPTIONAL, struct manifest, env, &text_entry, 0, RUNTIME_ENV_MAX - 1),
	CYAML_FIELD_SEQUENCE("roots", CYAML_FLAG_POINTER, struct manifest, roots, &text_entry, 1,
		RUNTIME_ROOTS_MAX - 1),
	CYAML_FIELD_STRING_PTR("inventory", CYAML_FLAG_POINTER, struct manifest, inventory, 1,
		LANGUAGE_INVENTORY_MAX - 1),
	CYAML_FIELD_MAPPING_PTR("limits", OPTIONAL, struct manifest, limits, limits_section_fields),
	CYAML_FIELD_MAPPING_PTR("compile", OPTIONAL, struct manifest, compile, compile_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct manifest, fields),
};

/* The schema bounds every length; this says so to whoever changes the one without the
 * other. */
static void copy_text(char *to, size_t room, const char *text)
{
	size_t len = strlen(text);

	CHECK(len < room);
	memcpy(to, text, len + 1);
}

/* `to` has `room` places of `size` bytes. */
static void copy_list(void *to, size_t room, size_t size, char *const *texts, size_t n)
{
	CHECK(n < room);
	for (size_t i = 0; i < n; i++)
		copy_text((char *)to + i * size, size, texts[i]);
}

/* A value that the schema cannot judge. */
static int refuse(const struct document *text, const char *key, const char *value, struct fault *f)
{
	const struct document_place begin = { 0, 0 };
	struct document_place at = document_find(text, key, true, begin);
	char quoted[VALUE_QUOTE_MAX];

	return fault_say(f, -EINVAL, "%s line %u, column %u: %s: \"%s\" is not true or false",
		text->name, at.line, at.column, key, value_quote(value, quoted));
}

static int convert(const struct document *text, const struct manifest *m, struct language *ret,
	struct fault *f)
{
	struct runtime *r = &ret->runtime;
	struct offer *o = &ret->offer;
	bool full_proc = false, reports = false;

	if (m->reports && quantity_bool(m->reports, &reports) < 0)
		return refuse(text, "reports", m->reports, f);
	if (m->full_proc && quantity_bool(m->full_proc, &full_proc) < 0)
		return refuse(text, "full-proc", m->full_proc, f);
	copy_text(r->name, sizeof(r->name), m->name);
	copy_text(r->main_file, sizeof(r->main_file), m->main_file);
	copy_list(r->argv, RUNTIME_ARGV_MAX, RUNTIME_PATH_MAX, m->argv, m->argv_count);
	copy_list(r->env, RUNTIME_ENV_MAX, RUNTIME_PATH_MAX, m->env, m->env_count);
	copy_list(r->roots, RUNTIME_ROOTS_MAX, RUNTIME_PATH_MAX, m->roots, m->roots_count);
	r->full_proc = full_proc;
	r->reports = reports;
	o->reports = reports;
	copy_text(o->name, sizeof(o->name), m->name);
	copy_text(o->main_file, sizeof(o->main_file), m->main_file);
	copy_list(o->aliases, LANGUAGE_ALIASES_MAX, RUNTIME_NAME_MAX, m->aliases, m->aliases_count);
	copy_list(o->suffixes, LANGUAGE_SUFFIXES_MAX, LANGUAGE_SUFFIX_MAX, m->suffixes,
		m->suffixes_count);
	copy_text(o->inventory, sizeof(o->inventory), m->inventory);
	if (m->package)
		copy_text(o->package, sizeof(o->package), m->package);
	if (m->compile) {
		o->compiled = 1;
		copy_list(ret->compile_argv, RUNTIME_ARGV_MAX, RUNTIME_PATH_MAX, m->compile->argv,
			m->compile->argv_count);
	}
	if (m->limits && limits_take(text, m->limits, &o->limits, f) < 0)
		return f->code;
	return m->compile && m->compile->limits
		       ? limits_take(text, m->compile->limits, &o->compile_limits, f)
		       : 0;
}

/* A rule that the wire has too, which knows no lines: the key that it speaks of has one. */
static int refuse_whole(const struct document *text, const char *rule, struct fault *f)
{
	static const struct {
		const char *words, *key;
	} keys[] = { { "main-file", "main-file" }, { "argv", "argv" }, { "env", "env" },
		{ "roots", "roots" }, { "an alias", "aliases" }, { "a suffix", "suffixes" },
		{ "package", "package" }, { "inventory", "inventory" }, { "a name", "name" } };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct document_place at = { 0, 0 };

		if (!strstr(rule, keys[i].words))
			continue;
		at = document_find(text, keys[i].key, true, at);
		if (at.line > 0)
			return fault_say(f, -EINVAL, "%s line %u, column %u: %s", text->name,
				at.line, at.column, rule);
	}
	return fault_say(f, -EINVAL, "%s: %s", text->name, rule);
}

int runtime_parse(const struct document *text, struct language *ret, struct fault *f)
{
	const char *broken;
	void *m = NULL;
	int r;

	r = document_load(text, &schema, &m, f);
	if (r < 0)
		return r;
	if (!m)
		return fault_say(f, -EINVAL, "%s: is empty", text->name);
	*ret = (struct language){ 0 };
	r = convert(text, m, ret, f);
	document_free(&schema, m);
	if (r < 0)
		return r;
	broken = language_fault(ret);
	return broken ? refuse_whole(text, broken, f) : 0;
}
