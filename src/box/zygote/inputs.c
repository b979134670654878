#include <Python.h> /* first: it may define what the C library's headers look at */

#include "box/zygote/inputs.h"

#include "base/fault.h"
#include "box/zygote/program.h"
#include "box/zygote/python.h"

#include <stdio.h>
#include <string.h>

/* Length of the part of `path` that is its directory, with the "/". */
static size_t directory_len(const char *path)
{
	const char *last = strrchr(path, '/');

	return last ? (size_t)(last + 1 - path) : 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

/* Is `name`, the rest of a path below the program's directory, a module or a package of a name
 * that the zygote has imported? A new interpreter would find it in the place of its own. (Also
 * a directory that is no package counts: that does no harm.) */
static bool hides_module(const char *name)
{
	size_t stem = strcspn(name, "./");
	char module[INPUTS_NAME_MAX + 1];

	if (name[stem] == '\0' || stem > INPUTS_NAME_MAX)
		return false;
	if (name[stem] == '.' &&
		(strchr(name + stem, '/') || !(ends_with(name, ".py") || ends_with(name, ".pyc") ||
						     ends_with(name, ".so"))))
		return false;
	memcpy(module, name, stem);
	module[stem] = '\0';
	return PyDict_GetItemString(PyImport_GetModuleDict(), module) != NULL;
}

/* An interpreter that is given a file looks first whether it is an archive of modules or compiled
 * code, and only then reads it as a program. Both have NULs in them, or another name. */
static bool is_plain_program(const struct inputs_item *item)
{
	return ends_with(item->path, ".py") && !memchr(item->bytes, '\0', (size_t)item->len);
}

bool zygote_inputs_need_cold(const struct inputs *in)
{
	size_t len = in->entry ? directory_len(in->entry) : 0;
	const char *at = in->files;
	struct inputs_item item;

	for (uint32_t i = 1; i <= in->head.files; i++) {
		inputs_take(&at, &item);
		if (i == in->head.entry && !is_plain_program(&item))
			return true;
		if (strlen(item.path) >= len &&
			memcmp(item.path, in->entry ? in->entry : "", len) == 0 &&
			hides_module(item.path + len))
			return true;
	}
	PyErr_Clear();
	return false;
}

static PyObject *list_of(const char *word, uint32_t count)
{
	PyObject *list = PyList_New(count);

	for (uint32_t i = 0; list && i < count; i++, word = inputs_next(word)) {
		PyObject *bytes = PyBytes_FromString(word);

		if (!bytes)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, i, bytes);
	}
	return list;
}

int zygote_inputs_arrange(PyObject *arrange, const struct inputs *in, struct fault *f)
{
	PyObject *args = list_of(in->args, in->head.args);
	PyObject *env = list_of(in->env, in->head.env), *r = NULL;

	if (args && env)
		r = PyObject_CallFunction(arrange, "OOy", args, env, in->entry ? in->entry : "");
	Py_XDECREF(args);
	Py_XDECREF(env);
	if (!r)
		return python_fault(f, "arrange the inputs");
	Py_DECREF(r);
	if (in->entry && program_move(in->entry) < 0)
		return python_fault(f, "name the program");
	return 0;
}
