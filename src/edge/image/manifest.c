#include "edge/image/manifest.h"

#include "base/check.h"
#include "base/fault.h"
#include "edge/config/document.h"
#include "edge/config/limits.h"
#include "edge/image/start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct manifest {
	char *name, *suite, *variant, *main_file;
	char **packages, **argv, **env, **preload;
	unsigned packages_count, argv_count, env_count, preload_count;
	struct limits_section *limits;
};

static const cyaml_schema_value_t text_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, RUNTIME_PATH_MAX - 1),
};
static const cyaml_schema_value_t package_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 2, PLAN_PACKAGE_MAX - 1),
};

#define LIST(key, member, entry, least, most)                                                   \
	CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | ((least) > 0 ? 0 : CYAML_FLAG_OPTIONAL), \
		struct manifest, member, entry, least, most)
#define TEXT(key, member, flags, most) \
	CYAML_FIELD_STRING_PTR(        \
		key, CYAML_FLAG_POINTER | (flags), struct manifest, member, 1, (most)-1)

/* One place less than the struct has: "" must end each list. */
static const cyaml_schema_field_t fields[] = {
	TEXT("name", name, 0, IMAGE_NAME_MAX),
	TEXT("suite", suite, CYAML_FLAG_OPTIONAL, PLAN_WORD_MAX),
	TEXT("variant", variant, CYAML_FLAG_OPTIONAL, PLAN_WORD_MAX),
	TEXT("main-file", main_file, 0, RUNTIME_PATH_MAX),
	LIST("packages", packages, &package_entry, 1, PLAN_PACKAGES_MAX - 1),
	LIST("argv", argv, &text_entry, 1, RUNTIME_ARGV_MAX - 1),
	LIST("env", env, &text_entry, 0, RUNTIME_ENV_MAX - 1),
	LIST("preload", preload, &text_entry, 0, PLAN_PACKAGES_MAX),
	CYAML_FIELD_MAPPING_PTR("limits", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct manifest,
		limits, limits_section_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct manifest, fields),
};

static void copy(char *to, size_t room, const char *text)
{
	CHECK(!text || strlen(text) < room);
	(void)snprintf(to, room, "%s", text ? text : "");
}

static void copy_list(char (*to)[RUNTIME_PATH_MAX], char *const *texts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		copy(to[i], RUNTIME_PATH_MAX, texts[i]);
}

/* What is said of what stands at a key. */
static int refuse(const struct document *text, const char *key, struct fault *f, const char *why,
	const char *what)
{
	struct document_place at =
		document_find(text, key, true, (struct document_place){ .line = 0 });

	return fault_say(f, -EINVAL, "%s line %u, column %u: %s: \"%.64s\" %s", text->name, at.line,
		at.column, key, what, why);
}

static int take_preload(const struct document *text, const struct manifest *m,
	struct image_start *to, struct fault *f)
{
	size_t used = 0;

	for (unsigned i = 0; i < m->preload_count; i++) {
		int n = snprintf(to->preload + used, sizeof(to->preload) - used, "%s%s",
			i ? "," : "", m->preload[i]);

		if (n < 0 || used + (size_t)n >= sizeof(to->preload))
			return refuse(text, "preload", f, "and what is before it is too long",
				m->preload[i]);
		used += (size_t)n;
		if (!is_modules(m->preload[i]) || strchr(m->preload[i], ','))
			return refuse(text, "preload", f, "is no name of a module", m->preload[i]);
	}
	return 0;
}

static int take_env(const struct document *text, const struct manifest *m, struct image_start *to,
	struct fault *f)
{
	for (unsigned i = 0; i < m->env_count; i++) {
		if (m->env[i][0] == '=' || !strchr(m->env[i], '='))
			return refuse(text, "env", f, "is not NAME=VALUE", m->env[i]);
		if (!start_has_room(to->env, m->env[i]))
			return refuse(text, "env", f,
				"is one too many: 12 fit beside PATH, HOME and LANG", m->env[i]);
		copy(to->env[i], RUNTIME_PATH_MAX, m->env[i]);
	}
	return 0;
}

static int convert(const struct document *text, const struct manifest *m, struct msg_plan *ret,
	struct fault *f)
{
	if (!image_name_is_valid(m->name))
		return refuse(text, "name", f,
			"is no name for an image: letters, digits, -, _ and .", m->name);
	copy(ret->name, sizeof(ret->name), m->name);
	copy(ret->suite, sizeof(ret->suite), m->suite);
	copy(ret->variant, sizeof(ret->variant), m->variant ? m->variant : "essential");
	copy(ret->start.main_file, RUNTIME_PATH_MAX, m->main_file);
	copy_list(ret->start.argv, m->argv, m->argv_count);
	for (unsigned i = 0; i < m->packages_count; i++) {
		if (!plan_package_is_valid(m->packages[i]))
			return refuse(
				text, "packages", f, "is no name of a package", m->packages[i]);
		copy(ret->packages[i], PLAN_PACKAGE_MAX, m->packages[i]);
	}
	if (take_env(text, m, &ret->start, f) < 0)
		return f->code;
	if (m->argv[0][0] != '/')
		return refuse(text, "argv", f, "is no absolute path", m->argv[0]);
	if (strchr(m->main_file, '/') || m->main_file[0] == '.')
		return refuse(text, "main-file", f, "is no plain name of a file", m->main_file);
	if (!plan_word_is_valid(ret->variant))
		return refuse(text, "variant", f, "is none of mmdebstrap", ret->variant);
	if (m->suite && !plan_word_is_valid(m->suite))
		return refuse(text, "suite", f, "is no name of a release", m->suite);
	if (m->limits && limits_take(text, m->limits, &ret->start.limits, f) < 0)
		return f->code;
	return take_preload(text, m, &ret->start, f);
}

int manifest_parse(const struct document *text, struct msg_plan *ret, struct fault *f)
{
	void *m = NULL;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = document_load(text, &schema, &m, f);
	if (r < 0)
		return r;
	if (!m)
		return fault_say(f, -EINVAL, "%s: is empty", text->name);
	r = convert(text, m, ret, f);
	document_free(&schema, m);
	if (r == 0 && plan_fault(ret))
		r = fault_say(f, -EINVAL, "%s: %s", text->name, plan_fault(ret));
	return r;
}
