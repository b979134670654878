#include "edge/config/runtime.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/quantity.h"
#include "edge/config/document.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct manifest {
	char *name, *main_file, *full_proc;
	char **argv, **env, **roots;
	unsigned argv_count, env_count, roots_count;
};

static const cyaml_schema_value_t text_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, RUNTIME_PATH_MAX - 1),
};

static const cyaml_schema_field_t fields[] = {
	CYAML_FIELD_STRING_PTR(
		"name", CYAML_FLAG_POINTER, struct manifest, name, 1, RUNTIME_NAME_MAX - 1),
	CYAML_FIELD_STRING_PTR("main-file", CYAML_FLAG_POINTER, struct manifest, main_file, 1,
		RUNTIME_PATH_MAX - 1),
	CYAML_FIELD_STRING_PTR("full-proc", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
		struct manifest, full_proc, 0, RUNTIME_NAME_MAX),
	/* One place less than the struct has: "" must end each list. */
	CYAML_FIELD_SEQUENCE("argv", CYAML_FLAG_POINTER, struct manifest, argv, &text_entry, 1,
		RUNTIME_ARGV_MAX - 1),
	CYAML_FIELD_SEQUENCE("env", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct manifest, env,
		&text_entry, 0, RUNTIME_ENV_MAX - 1),
	CYAML_FIELD_SEQUENCE("roots", CYAML_FLAG_POINTER, struct manifest, roots, &text_entry, 1,
		RUNTIME_ROOTS_MAX - 1),
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

static void copy_list(char (*to)[RUNTIME_PATH_MAX], size_t room, char *const *texts, size_t n)
{
	CHECK(n < room);
	for (size_t i = 0; i < n; i++)
		copy_text(to[i], RUNTIME_PATH_MAX, texts[i]);
}

static int convert(const struct manifest *m, struct runtime *ret)
{
	struct runtime r = { 0 };
	bool full_proc = false;

	if (m->full_proc && quantity_bool(m->full_proc, &full_proc) < 0)
		return -EINVAL;
	copy_text(r.name, sizeof(r.name), m->name);
	copy_text(r.main_file, sizeof(r.main_file), m->main_file);
	copy_list(r.argv, RUNTIME_ARGV_MAX, m->argv, m->argv_count);
	copy_list(r.env, RUNTIME_ENV_MAX, m->env, m->env_count);
	copy_list(r.roots, RUNTIME_ROOTS_MAX, m->roots, m->roots_count);
	r.full_proc = full_proc;
	*ret = r;
	return 0;
}

int runtime_parse(const struct document *text, struct runtime *ret, struct fault *f)
{
	void *m = NULL;
	int r;

	r = document_load(text, &schema, &m, f);
	if (r < 0)
		return r;
	if (!m)
		return fault_say(f, -EINVAL, "%s: is empty", text->name);
	r = convert(m, ret);
	if (r < 0)
		(void)fault_say(f, r, "%s: full-proc is neither true nor false", text->name);
	document_free(&schema, m);
	return r;
}
