#define Py_BUILD_CORE_MODULE 1 /* for the place of sys.modules, and the collector's callbacks */
#include <Python.h>
#include <internal/pycore_interp.h>

#include "box/zygote/apart.h"

#include "box/zygote/remains.h"
#include "box/zygote/streams.h"

#include <stdbool.h>
#include <string.h>

static struct {
	PyObject *modules;  /* sys.modules after the last import */
	PyObject *sys_dict; /* and what is in sys and builtins */
	PyObject *builtins_dict;
	PyObject *modules_dict; /* sys.modules itself */
	PyObject *collect;
} made;

static PyObject *copy_of_dict(const char *module_name)
{
	PyObject *module = PyImport_ImportModule(module_name);
	PyObject *r = module ? PyDict_Copy(PyModule_GetDict(module)) : NULL;

	Py_XDECREF(module);
	return r;
}

int apart_init(void)
{
	PyObject *gc = PyImport_ImportModule("gc");

	made.collect = gc ? PyObject_GetAttrString(gc, "collect") : NULL;
	Py_XDECREF(gc);
	made.sys_dict = copy_of_dict("sys");
	made.builtins_dict = copy_of_dict("builtins");
	made.modules_dict = PyImport_GetModuleDict();
	made.modules = PyDict_Copy(made.modules_dict);
	return made.collect && made.sys_dict && made.builtins_dict && made.modules ? 0 : -1;
}

static void set_none(PyObject *dict, const char *name)
{
	if (PyDict_SetItemString(dict, name, Py_None) < 0)
		PyErr_Clear();
}

/* What the interpreter takes away first, so that finalizers find no way to import. */
static void take_special(PyObject *sys_dict)
{
	static const char *const names[] = { "path", "argv", "ps1", "ps2", "last_type",
		"last_value", "last_traceback", "path_hooks", "path_importer_cache", "meta_path",
		"__interactivehook__" };
	static const char *const streams[][2] = { { "stdin", "__stdin__" },
		{ "stdout", "__stdout__" }, { "stderr", "__stderr__" } };

	set_none(PyEval_GetBuiltins(), "_");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		set_none(sys_dict, names[i]);
	for (size_t i = 0; i < 3; i++) {
		PyObject *first = PyDict_GetItemString(sys_dict, streams[i][1]);

		if (PyDict_SetItemString(sys_dict, streams[i][0], first ? first : Py_None) < 0)
			PyErr_Clear();
	}
}

/* What `was`, of which all keys are plain text, holds by this name. A key of any other kind is
 * the run's, and to look for it would call its methods in the middle of this. */
static PyObject *known(PyObject *was, PyObject *name)
{
	return PyUnicode_CheckExact(name) ? PyDict_GetItem(was, name) : NULL;
}

static bool is_called(PyObject *name, const char *text)
{
	return PyUnicode_CheckExact(name) && PyUnicode_CompareWithASCIIString(name, text) == 0;
}

/* The names of sys.modules that go, in their order: those of the run, "__main__", and what
 * stands before it there (the zygote holds on to these). */
static PyObject *names_that_go(PyObject *modules)
{
	PyObject *list = PyList_New(0), *name, *module;
	bool after_main = false;
	Py_ssize_t at = 0;

	while (list && PyDict_Next(modules, &at, &name, &module)) {
		bool is_main = is_called(name, "__main__");

		if (after_main && known(made.modules, name) == module)
			continue;
		after_main |= is_main;
		if (PyModule_Check(module) && PyList_Append(list, name) < 0)
			PyErr_Clear();
	}
	return list;
}

/* Drop the modules; what comes back are weak references to them. */
static PyObject *drop_modules(PyObject *modules)
{
	PyObject *names = names_that_go(modules), *left = PyList_New(0);

	for (Py_ssize_t i = 0; names && left && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = PyList_GET_ITEM(names, i);
		PyObject *module = Py_XNewRef(PyDict_GetItem(modules, name)), *ref;

		if (module && module != Py_None && known(made.modules, name) != module) {
			ref = PyWeakref_NewRef(module, NULL);
			if (ref)
				(void)PyList_Append(left, ref);
			Py_XDECREF(ref);
		}
		if (module && module != Py_None && PyDict_SetItem(modules, name, Py_None) < 0)
			PyErr_Clear();
		Py_XDECREF(module);
		PyErr_Clear();
	}
	Py_XDECREF(names);
	return left;
}

/* Empty a module that something still holds, as the interpreter does: first the names that
 * begin with one underscore, then the rest. */
static void clear_module(PyObject *module)
{
	PyObject *dict = PyModule_GetDict(module), *name, *value;

	for (int pass = 0; pass < 2; pass++) {
		Py_ssize_t at = 0;

		while (PyDict_Next(dict, &at, &name, &value)) {
			const char *text =
				PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8(name) : NULL;
			bool private = text && text[0] == '_' && text[1] != '_';

			if (!text || value == Py_None || (pass == 0 && !private) ||
				strcmp(text, "__builtins__") == 0)
				continue;
			if (PyDict_SetItem(dict, name, Py_None) < 0)
				PyErr_Clear();
		}
	}
	PyErr_Clear();
}

/* What a weak reference refers to, as a new reference, or NULL. */
static PyObject *referent(PyObject *ref)
{
#if PY_VERSION_HEX >= 0x030D0000
	PyObject *object = NULL;

	if (PyWeakref_GetRef(ref, &object) < 0)
		PyErr_Clear();
	return object;
#else
	PyObject *object = PyWeakref_GetObject(ref);

	return object == Py_None ? NULL : Py_NewRef(object);
#endif
}

static void clear_modules(PyObject *left)
{
	for (Py_ssize_t i = left ? PyList_GET_SIZE(left) : 0; i > 0; i--) {
		PyObject *module = referent(PyList_GET_ITEM(left, i - 1));

		if (module)
			clear_module(module);
		Py_XDECREF(module);
	}
}

static void set_modules(PyObject *modules)
{
	PyInterpreterState *interp = PyThreadState_Get()->interp;

#if PY_VERSION_HEX >= 0x030C0000
	interp->imports.modules = modules;
#else
	interp->modules = modules;
#endif
}

/* From now on sys.modules is empty, but nothing in it is touched. */
static void hide_modules(PyObject *sys_dict)
{
	PyObject *none = PyDict_New();

	if (!none)
		return;
	set_modules(none);
	if (PyDict_SetItemString(sys_dict, "modules", none) < 0)
		PyErr_Clear();
}

/* The names whose values in `dict` are not those in `was`. Nothing else is touched: to hold
 * on to an object is to write into its page, and so to copy that. */
static PyObject *names_that_differ(PyObject *dict, PyObject *was)
{
	PyObject *list = PyList_New(0), *name, *value;
	Py_ssize_t at = 0;

	while (list && PyDict_Next(dict, &at, &name, &value)) {
		if (known(was, name) != value && PyList_Append(list, name) < 0)
			PyErr_Clear();
	}
	return list;
}

enum drop {
	DROP_PRIVATE, /* to None: names with one underscore, which come first */
	DROP_KNOWN,   /* names that there were: before the streams in the dictionary's order */
	DROP_ALL,
	RESTORE_ALL, /* to what was there */
};

static bool is_private(PyObject *name)
{
	const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;

	return text && text[0] == '_' && text[1] != '_';
}

/* What the run put into sys or builtins. */
static void drop_additions(PyObject *dict, PyObject *was, enum drop how)
{
	PyObject *names = names_that_differ(dict, was);

	for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = PyList_GET_ITEM(names, i);
		PyObject *first = how == RESTORE_ALL ? known(was, name) : Py_None;

		if ((how == DROP_PRIVATE && !is_private(name)) ||
			(how == DROP_KNOWN && !known(was, name)))
			continue;

		if ((first ? PyDict_SetItem(dict, name, first) : PyDict_DelItem(dict, name)) < 0)
			PyErr_Clear();
	}
	Py_XDECREF(names);
}

static PyObject *dict_of(const char *name)
{
	return PyModule_GetDict(PyDict_GetItemString(made.modules, name));
}

/* Beside the modules that were hidden. */
static bool has_additions(PyObject *dict, PyObject *was)
{
	PyObject *names = names_that_differ(dict, was);
	bool r = false;

	for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = PyList_GET_ITEM(names, i);

		r |= PyDict_GetItem(dict, name) != Py_None && !is_called(name, "modules");
	}
	Py_XDECREF(names);
	return r;
}

/* Also when the program has switched the collector off; its callbacks do not hear of it. */
static void collect_unseen(void)
{
	struct _gc_runtime_state *gc = &PyThreadState_Get()->interp->gc;
	PyObject *callbacks = gc->callbacks, *result;

	gc->callbacks = NULL;
	result = PyObject_CallNoArgs(made.collect);
	Py_XDECREF(result);
	PyErr_Clear();
	gc->callbacks = callbacks;
}

void apart_take(void)
{
	PyObject *modules = PyImport_GetModuleDict(), *sys_dict = dict_of("sys"), *left;

	take_special(sys_dict);
	left = drop_modules(modules);
	hide_modules(sys_dict);
	drop_additions(dict_of("builtins"), made.builtins_dict, RESTORE_ALL);
	collect_unseen();
	clear_modules(left);
	/* What lives still hangs on a module of the zygote's: if not on sys, whose turn is
	 * later, or on a thread. */
	if (!remains_have_threads() && !has_additions(sys_dict, made.sys_dict))
		remains_finalize();
	drop_additions(sys_dict, made.sys_dict, DROP_PRIVATE);
	drop_additions(sys_dict, made.sys_dict, DROP_KNOWN);
	/* Their end would flush them. From here on finalizers print to nowhere. */
	(void)streams_flush();
	set_none(sys_dict, "stdin");
	set_none(sys_dict, "stdout");
	set_none(sys_dict, "stderr");
	drop_additions(sys_dict, made.sys_dict, DROP_ALL);
	Py_XDECREF(left);
}

/* Make `dict` what it was. */
static void put_back(PyObject *dict, PyObject *was)
{
	PyObject *names = names_that_differ(was, dict);

	drop_additions(dict, was, RESTORE_ALL);
	for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names); i++) {
		PyObject *name = PyList_GET_ITEM(names, i);

		if (PyDict_SetItem(dict, name, PyDict_GetItem(was, name)) < 0)
			PyErr_Clear();
	}
	if (!names || PyErr_Occurred() || PyDict_GET_SIZE(dict) != PyDict_GET_SIZE(was))
		Py_FatalError("the rehearsal cannot be undone");
	Py_DECREF(names);
}

void apart_undo(void)
{
	set_modules(made.modules_dict);
	put_back(made.modules_dict, made.modules);
	put_back(dict_of("sys"), made.sys_dict);
	put_back(dict_of("builtins"), made.builtins_dict);
}
