/* The order is that of Py_FinalizeEx(), and what it shows to a program's own __del__
 * methods and exit functions is meant to be the same.
 */
#define Py_BUILD_CORE_MODULE 1 /* for the one flag that threads look at when it ends */
#include <Python.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>

#include "box/zygote/finish.h"

#include "box/zygote/remains.h"

#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_FAILED_STATUS 120 /* as python3 says it */

#if PY_VERSION_HEX >= 0x030C0000
#define LOW_FUNCTIONS (_PyRuntime.atexit.callbacks)
#define LOW_COUNT     (_PyRuntime.atexit.ncallbacks)
#else
#define LOW_FUNCTIONS (_PyRuntime.exitfuncs)
#define LOW_COUNT     (_PyRuntime.nexitfuncs)
#endif

/* What a preloaded module would do at exit, and how to tell that it has something to do. */
struct exit_function {
	const char *module_name, *name, *grows; /* a list that is longer when it is used */
	/* The same words, and what there is by these names, which is not asked for again in a
	 * way that writes to it. */
	PyObject *module_word, *word, *grows_word;
	PyObject *module, *function;
	Py_ssize_t length;
};

static struct {
	struct exit_function threading, logging;
	PyObject *modules;  /* sys.modules after the last import */
	PyObject *sys_dict; /* and what is in sys and builtins */
	PyObject *builtins_dict;
	PyObject *run_exit_functions, *collect;
	PyObject *flush_word, *closed_word;
	int low_exit_functions;       /* of Py_AtExit() */
	unsigned long long libraries; /* that were ever loaded */
} made = {
	.threading = { "threading", "_shutdown", "_threading_atexits" },
	.logging = { "logging", "shutdown", "_handlerList" },
};

static PyObject *attribute(const char *module_name, const char *name)
{
	PyObject *module = PyImport_ImportModule(module_name);
	PyObject *r = module ? PyObject_GetAttrString(module, name) : NULL;

	Py_XDECREF(module);
	return r;
}

static PyObject *copy_of_dict(const char *module_name)
{
	PyObject *module = PyImport_ImportModule(module_name);
	PyObject *r = module ? PyDict_Copy(PyModule_GetDict(module)) : NULL;

	Py_XDECREF(module);
	return r;
}

static Py_ssize_t length(PyObject *module, PyObject *name)
{
	PyObject *list = PyDict_GetItemWithError(PyModule_GetDict(module), name);

	return list && PyList_Check(list) ? PyList_GET_SIZE(list) : -1;
}

static void note(struct exit_function *e)
{
	e->module_word = PyUnicode_InternFromString(e->module_name);
	e->word = PyUnicode_InternFromString(e->name);
	e->grows_word = PyUnicode_InternFromString(e->grows);
	if (!e->module_word || !e->word || !e->grows_word)
		return;
	e->module = PyDict_GetItemWithError(PyImport_GetModuleDict(), e->module_word);
	if (!e->module)
		return;
	Py_INCREF(e->module);
	e->function = PyObject_GetAttr(e->module, e->word);
	e->length = length(e->module, e->grows_word);
}

/* The dynamic linker's count comes with the first library that it lists. */
static int take_count(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	*(unsigned long long *)ret = info->dlpi_adds;
	return 1;
}

static unsigned long long libraries(void)
{
	unsigned long long count = 0;

	(void)dl_iterate_phdr(take_count, &count);
	return count;
}

int finish_init(void)
{
	made.low_exit_functions = LOW_COUNT;
	made.libraries = libraries();
	note(&made.threading);
	note(&made.logging);
	made.flush_word = PyUnicode_InternFromString("flush");
	made.closed_word = PyUnicode_InternFromString("closed");
	made.run_exit_functions = attribute("atexit", "_run_exitfuncs");
	made.collect = attribute("gc", "collect");
	made.sys_dict = copy_of_dict("sys");
	made.builtins_dict = copy_of_dict("builtins");
	made.modules = PyDict_Copy(PyImport_GetModuleDict());
	return made.flush_word && made.closed_word && made.modules && made.sys_dict && made.builtins_dict && made.run_exit_functions &&
			       made.collect
		       ? 0
		       : -1;
}

static void call(PyObject *function)
{
	PyObject *r = PyObject_CallNoArgs(function);

	if (!r)
		PyErr_WriteUnraisable(function);
	Py_XDECREF(r);
}

/* Has the module been used in a way that makes its exit function do something? One that the
 * program did not even import must not be heard of at its end. */
static bool is_used(const struct exit_function *e)
{
	PyObject *module;

	if (!e->module)
		return false;
	module = PyDict_GetItemWithError(PyImport_GetModuleDict(), e->module_word);
	if (module != e->module)
		return module != NULL && module != Py_None;
	return PyDict_GetItemWithError(PyModule_GetDict(module), e->word) != e->function ||
	       length(module, e->grows_word) != e->length;
}

static void call_exit_function(const struct exit_function *e)
{
	PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), e->module_name), *r;

	if (!module)
		return;
	Py_INCREF(module);
	r = PyObject_CallMethod(module, e->name, NULL);
	if (!r)
		PyErr_WriteUnraisable(module);
	Py_XDECREF(r);
	Py_DECREF(module);
}

static bool has_threads(void)
{
	PyThreadState *now = PyThreadState_Get();
	PyThreadState *first = PyInterpreterState_ThreadHead(now->interp);

	return first != now || PyThreadState_Next(first);
}

static void join_threads(void)
{
	if (has_threads() || is_used(&made.threading))
		call_exit_function(&made.threading);
}

static bool is_closed(PyObject *stream)
{
	PyObject *closed = PyObject_GetAttr(stream, made.closed_word);
	int r = closed ? PyObject_IsTrue(closed) : -1;

	Py_XDECREF(closed);
	if (r < 0)
		PyErr_Clear();
	return r > 0;
}

static int flush_streams(void)
{
	static const char *const names[] = { "stdout", "stderr" };
	int status = 0;

	for (int i = 0; i < 2; i++) {
		PyObject *stream = PySys_GetObject(names[i]), *r;

		if (!stream || stream == Py_None || is_closed(stream))
			continue;
		r = PyObject_CallMethodNoArgs(stream, made.flush_word);
		if (!r) {
			if (i == 0)
				PyErr_WriteUnraisable(stream);
			else
				PyErr_Clear();
			status = -1;
		}
		Py_XDECREF(r);
	}
	return status;
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

/* The names of sys.modules that go, in their order: those of the run, "__main__", and what
 * stands before it there (the zygote holds on to these). */
static PyObject *names_that_go(PyObject *modules)
{
	PyObject *list = PyList_New(0), *name, *module;
	bool after_main = false;
	Py_ssize_t at = 0;

	while (list && PyDict_Next(modules, &at, &name, &module)) {
		bool is_main = PyUnicode_CompareWithASCIIString(name, "__main__") == 0;

		if (after_main && PyDict_GetItem(made.modules, name) == module)
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
		PyObject *module = PyDict_GetItem(modules, name), *ref;

		if (!module || module == Py_None)
			continue;
		if (PyDict_GetItem(made.modules, name) != module) {
			ref = PyWeakref_NewRef(module, NULL);
			if (ref)
				(void)PyList_Append(left, ref);
			Py_XDECREF(ref);
		}
		if (PyDict_SetItem(modules, name, Py_None) < 0)
			PyErr_Clear();
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
			const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
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
		if (PyDict_GetItem(was, name) != value && PyList_Append(list, name) < 0)
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
		PyObject *first = how == RESTORE_ALL ? PyDict_GetItem(was, name) : Py_None;

		if ((how == DROP_PRIVATE && !is_private(name)) ||
			(how == DROP_KNOWN && !PyDict_GetItem(was, name)))
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

		r |= PyDict_GetItem(dict, name) != Py_None &&
		     PyUnicode_CompareWithASCIIString(name, "modules") != 0;
	}
	Py_XDECREF(names);
	return r;
}

/* Also when the program has switched the collector off; its callbacks do not hear of it. */
static void collect_unseen(void)
{
	struct _gc_runtime_state *gc = &PyThreadState_Get()->interp->gc;
	PyObject *callbacks = gc->callbacks;

	gc->callbacks = NULL;
	call(made.collect);
	gc->callbacks = callbacks;
}

static void take_apart(void)
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
	if (!has_threads() && !has_additions(sys_dict, made.sys_dict))
		remains_finalize();
	drop_additions(sys_dict, made.sys_dict, DROP_PRIVATE);
	drop_additions(sys_dict, made.sys_dict, DROP_KNOWN);
	/* Their end would flush them. From here on finalizers print to nowhere. */
	(void)flush_streams();
	set_none(sys_dict, "stdin");
	set_none(sys_dict, "stdout");
	set_none(sys_dict, "stderr");
	drop_additions(sys_dict, made.sys_dict, DROP_ALL);
	Py_XDECREF(left);
}

static void set_finalizing(void)
{
	PyThreadState *now = PyThreadState_Get();

	_PyRuntimeState_SetFinalizing(&_PyRuntime, now);
#if PY_VERSION_HEX >= 0x030D0000
	_PyInterpreterState_SetFinalizing(now->interp, now);
#endif
}

static int end_run(bool for_good, bool *ret_plain)
{
	int failed;

	call(made.run_exit_functions);
	if (is_used(&made.logging))
		call_exit_function(&made.logging);
	/* Daemon threads that wake up from here on end. */
	if (for_good)
		set_finalizing();
	failed = flush_streams();
	*ret_plain = !has_threads() && remains_are_plain();
	if (!*ret_plain)
		(void)PyGC_Collect();
	return failed;
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

void finish_rehearse(bool in_full)
{
	PyObject *modules = PyImport_GetModuleDict();
	bool plain;

	(void)has_threads();
	(void)is_used(&made.threading);
	(void)end_run(false, &plain);
	if (in_full) {
		take_apart();
		set_modules(modules);
	}
	put_back(modules, made.modules);
	put_back(dict_of("sys"), made.sys_dict);
	put_back(dict_of("builtins"), made.builtins_dict);
}

/* What modules in C want to be called when the interpreter is gone: those that came with
 * the run. */
static void call_low_exit_functions(void)
{
	while (LOW_COUNT > made.low_exit_functions)
		LOW_FUNCTIONS[--LOW_COUNT]();
}

/* A library that the run has loaded may have left something to the C library's exit(), which
 * then calls those of the zygote's libraries too. These alone have nothing that could be
 * noticed, and many pages to take apart. */
static _Noreturn void leave(int status)
{
	if (libraries() != made.libraries)
		exit(status);
	(void)fflush(NULL); /* what extension modules print */
	_exit(status);
}

_Noreturn void finish(struct program_end end)
{
	bool plain;
	int failed;

	join_threads();
	(void)Py_MakePendingCalls();
	failed = end_run(true, &plain);
	if (!plain)
		take_apart();
	call_low_exit_functions();
	if (end.interrupted) {
		(void)signal(SIGINT, SIG_DFL);
		(void)kill(getpid(), SIGINT);
		end.status = 128 + SIGINT; /* it is blocked */
	}
	leave(failed ? FLUSH_FAILED_STATUS : end.status);
}
