#include "edge/image/start.h"

#include "base/check.h"
#include "base/fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#elif defined(__aarch64__)
#define LOADER "/lib/ld-linux-aarch64.so.1"
#endif

#define USUAL_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char *find_value(const char (*env)[RUNTIME_PATH_MAX], const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < RUNTIME_ENV_MAX && env[i][0]; i++)
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
			return env[i] + len + 1;
	return NULL;
}

static const char *const usual[] = { USUAL_PATH, "HOME=/workspace", "LANG=C.UTF-8" };

/* One place of the list must stay empty. */
#define OTHERS_MAX (RUNTIME_ENV_MAX - 1 - ARRAY_LEN(usual))

static bool is_usual(const char *variable)
{
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		if (strncmp(variable, usual[i], strcspn(usual[i], "=") + 1) == 0)
			return true;
	return false;
}

bool start_has_room(const char (*env)[RUNTIME_PATH_MAX], const char *variable)
{
	size_t others = 0, name = strcspn(variable, "=") + 1;

	for (size_t i = 0; i < RUNTIME_ENV_MAX && env[i][0]; i++) {
		if (is_usual(variable) && strncmp(env[i], variable, name) == 0)
			return false;
		others += !is_usual(env[i]);
	}
	return is_usual(variable) || others < OTHERS_MAX;
}

/* Unless it has one of that name; a list that is full stays as it is. */
static void add_variable(struct image_start *s, const char *variable)
{
	char name[RUNTIME_PATH_MAX];
	size_t i = 0;

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(variable, "="), variable);
	if (find_value(s->env, name))
		return;
	while (s->env[i][0])
		i++;
	if (i < RUNTIME_ENV_MAX - 1)
		(void)snprintf(s->env[i], RUNTIME_PATH_MAX, "%s", variable);
}

/* The program called `name` in the directories of `path`, as its absolute path. */
static bool find_program(
	const struct tree *t, const char *path, const char *name, char ret[static RUNTIME_PATH_MAX])
{
	while (*path) {
		size_t len = strcspn(path, ":");
		const struct tree_inode *i;
		int n = snprintf(ret, RUNTIME_PATH_MAX, "%.*s/%s", (int)len, path, name);

		i = n > 0 && n < RUNTIME_PATH_MAX && ret[0] == '/' ? tree_resolve(t, ret) : NULL;
		if (i && i->kind == TREE_FILE && i->executable)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static int choose_program(const struct tree *t, struct image_start *s, struct fault *f)
{
	static const struct {
		const char *name, *argument, *main_file;
	} known[] = {
		/* -u: what the program has written counts as written when the deadline comes. */
		{ "python3", "-u", "main.py" },
		{ "sh", NULL, "main.sh" },
	};
	const char *path = find_value(s->env, "PATH");

	if (!path) /* the list is full of others */
		path = strchr(USUAL_PATH, '=') + 1;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const char *const args[] = { known[i].argument, known[i].main_file };
		unsigned n = 1;

		if (!find_program(t, path, known[i].name, s->argv[0]))
			continue;
		for (size_t k = 0; k < ARRAY_LEN(args); k++)
			if (args[k])
				(void)snprintf(s->argv[n++], RUNTIME_PATH_MAX, "%s", args[k]);
		(void)snprintf(s->main_file, sizeof(s->main_file), "%s", known[i].main_file);
		return 0;
	}
	return fault_say(f, -ENOENT,
		"the image has neither python3 nor sh in %.200s; --interpreter PATH names another "
		"program that runs a file",
		path);
}

static int check_program(const struct tree *t, const struct image_start *s, struct fault *f)
{
	const struct tree_inode *i = tree_resolve(t, s->argv[0]);

	if (!i || i->kind != TREE_FILE || !i->executable)
		return fault_say(f, -ENOENT, "the image has no program %s", s->argv[0]);
	return 0;
}

/* The warm interpreter's module is made for one version of Python and for this C library: the
 * program is that Python, and the library's loader is where this machine's is. */
static bool is_warm(const struct tree *t, const char *program)
{
	const struct tree_inode *i = tree_resolve(t, program);
	const struct tree_inode *loader = tree_resolve(t, LOADER);

	return i && loader && loader->kind == TREE_FILE &&
	       strcmp(LIST_FIRST(&i->names)->name, "python" GLOVEBOX_PYTHON) == 0;
}

int start_choose(const struct tree *t, const struct bundle *b, const struct image_start *wanted,
	struct image_start *ret, struct fault *f)
{
	int r;

	*ret = *wanted;
	if (!ret->env[0][0])
		memcpy(ret->env, b->env, sizeof(ret->env));
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		add_variable(ret, usual[i]);
	r = ret->argv[0][0] ? check_program(t, ret, f) : choose_program(t, ret, f);
	if (r == 0 && strstr(ret->argv[0], "python"))
		add_variable(ret, "PYTHONUNBUFFERED=1");
	/* What multiprocessing and os.sysconf() read, as for the host's interpreter. */
	ret->full_proc = 1;
	ret->warm = r == 0 && is_warm(t, ret->argv[0]);
	return r;
}
