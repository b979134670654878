#include <Python.h> /* first: it may define what the C library's headers look at */

#include "box/zygote/program.h"

#include "box/zygote/report.h"
#include "wire/report.h"

#include <stdio.h>

static PyObject *loader_type; /* SourceFileLoader, which says where __main__ came from */
static PyObject *builtin_loader;
static PyObject *own_path; /* where every program is, and the agent is in the zygote */
static PyObject *flush_name;

static PyObject *agents_path(void)
{
	PyObject *agent = PyDict_GetItemString(PyImport_GetModuleDict(), "__main__");

	return agent ? PyObject_GetAttrString(agent, "__file__") : NULL;
}

static int look_up(void)
{
	PyObject *external = PyImport_ImportModule("_frozen_importlib_external");
	PyObject *frozen = PyImport_ImportModule("_frozen_importlib");

	if (external && frozen) {
		loader_type = PyObject_GetAttrString(external, "SourceFileLoader");
		builtin_loader = PyObject_GetAttrString(frozen, "BuiltinImporter");
	}
	Py_XDECREF(external);
	Py_XDECREF(frozen);
	flush_name = PyUnicode_InternFromString("flush");
	return loader_type && builtin_loader && flush_name ? 0 : -1;
}

int program_init(void)
{
	if (look_up() < 0)
		return -1;
	own_path = agents_path();
	return own_path ? 0 : -1;
}

/* The interpreter believes that it is called from nowhere: no frame of the agent shows in
 * a traceback, and the depth of recursion counts from zero. */
static void hide_frames(void)
{
	PyThreadState *ts = PyThreadState_Get();

#if PY_VERSION_HEX >= 0x030D0000
	ts->current_frame = NULL;
#else
	ts->root_cframe.current_frame = NULL;
	ts->cframe = &ts->root_cframe;
#endif
#if PY_VERSION_HEX >= 0x030C0000
	ts->py_recursion_remaining = ts->py_recursion_limit;
	ts->c_recursion_remaining = Py_C_RECURSION_LIMIT;
#else
	ts->recursion_remaining = ts->recursion_limit;
#endif
}

/* What the interpreter puts into "__main__" when it starts, in that order. */
static int fill_main(PyObject *dict)
{
	PyObject *annotations = PyDict_New();
	PyObject *builtins = PyImport_ImportModule("builtins");
	int r = annotations && builtins ? 0 : -1;

	if (r == 0)
		r = PyDict_SetItemString(dict, "__annotations__", annotations);
	if (r == 0)
		r = PyDict_SetItemString(dict, "__builtins__", builtins);
	if (r == 0)
		r = PyDict_SetItemString(dict, "__loader__", builtin_loader);
	Py_XDECREF(annotations);
	Py_XDECREF(builtins);
	return r;
}

/* Where it comes from, as the interpreter says it before it runs a file. */
static int place_main(PyObject *dict)
{
	PyObject *loader = NULL;
	int r = PyDict_SetItemString(dict, "__file__", own_path);

	if (r == 0)
		r = PyDict_SetItemString(dict, "__cached__", Py_None);
	if (r == 0)
		loader = PyObject_CallFunction(loader_type, "sO", "__main__", own_path);
	if (!loader || PyDict_SetItemString(dict, "__loader__", loader) < 0)
		r = -1;
	Py_XDECREF(loader);
	return r;
}

/* What exists is not the program's: its collections need not look at it. The collection
 * empties the lists of freed objects, which otherwise tell what went before. */
static int freeze(void)
{
	PyObject *gc = PyImport_ImportModule("gc");
	PyObject *r;

	(void)PyGC_Collect();
	r = gc ? PyObject_CallMethod(gc, "freeze", NULL) : NULL;
	Py_XDECREF(gc);
	Py_XDECREF(r);
	return r ? 0 : -1;
}

int program_prepare(void)
{
	PyObject *module, *modules = PyImport_GetModuleDict();
	int r;

	hide_frames();
	if (freeze() < 0)
		return -1;
	module = PyModule_New("__main__");
	if (!module)
		return -1;
	r = fill_main(PyModule_GetDict(module));
	if (r == 0)
		r = place_main(PyModule_GetDict(module));
	if (r == 0)
		r = PyDict_SetItemString(modules, "__main__", module);
	Py_DECREF(module);
	return r;
}

int program_move(const char *path)
{
	PyObject *module = PyImport_AddModule("__main__");
	PyObject *text = PyUnicode_DecodeFSDefault(path), *whole = NULL;

	if (text)
		whole = PyUnicode_FromFormat("/workspace/%U", text);
	Py_XDECREF(text);
	if (!module || !whole)
		return -1;
	Py_SETREF(own_path, whole);
	return place_main(PyModule_GetDict(module));
}

int program_adopt(const char *path)
{
	PyObject *module = PyImport_AddModule("__main__");

	if (!module || look_up() < 0)
		return -1;
	own_path = PyUnicode_DecodeFSDefault(path);
	return own_path ? place_main(PyModule_GetDict(module)) : -1;
}

static void flush_stream(const char *name)
{
	PyObject *type, *value, *traceback, *stream, *r;

	PyErr_Fetch(&type, &value, &traceback);
	stream = PySys_GetObject(name);
	if (stream) {
		r = PyObject_CallMethodNoArgs(stream, flush_name);
		if (!r)
			PyErr_Clear();
		Py_XDECREF(r);
	}
	PyErr_Restore(type, value, traceback);
}

/* SystemExit's argument as text on stderr, where it is not a number. */
static void say_exit(PyObject *code)
{
	PyObject *err = PySys_GetObject("stderr");

	PyErr_Clear();
	if (err && err != Py_None) {
		(void)PyFile_WriteObject(code, err, Py_PRINT_RAW);
	} else {
		(void)PyObject_Print(code, stderr, Py_PRINT_RAW);
		(void)fflush(stderr);
	}
	PySys_WriteStderr("\n");
}

static int exit_status(void)
{
	PyObject *type, *value, *traceback, *code;
	int status = 0;

	(void)fflush(stdout);
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	code = value ? PyObject_GetAttrString(value, "code") : NULL;
	if (!code) {
		code = value; /* without the attribute it is printed itself */
		Py_XINCREF(code);
	}
	if (code && code != Py_None) {
		if (PyLong_Check(code)) {
			status = (int)PyLong_AsLong(code);
		} else {
			say_exit(code);
			status = 1;
		}
	}
	/* Also of what the conversion of a large number raised. */
	PyErr_Clear();
	Py_XDECREF(code);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	return status;
}

static struct program_end unhandled(const struct report *r)
{
	struct program_end end = { .status = 1 };

	if (PyErr_ExceptionMatches(PyExc_SystemExit)) {
		end.exited = true;
		end.status = exit_status();
		return end;
	}
	end.interrupted = PyErr_Occurred() == PyExc_KeyboardInterrupt;
	report_error(r); /* first: a hook of the program's may do anything */
	PyErr_Print();
	return end;
}

/* All but its last expression, and that for its value. */
static PyObject *run_parts(const struct report *r, PyObject *parts, PyObject *dict)
{
	PyObject *done = PyEval_EvalCode(PyTuple_GetItem(parts, 0), dict, dict), *value = NULL;

	if (done)
		value = PyEval_EvalCode(PyTuple_GetItem(parts, 1), dict, dict);
	if (value)
		report_result(r, value);
	Py_XDECREF(done);
	return value;
}

struct program_end program_run(const struct report *r)
{
	struct program_end end = { .status = 0 };
	PyCompilerFlags flags = _PyCompilerFlags_INIT;
	PyObject *module = PyImport_AddModule("__main__"), *dict, *result, *parts;
	FILE *file = fopen(r->path, "rbe");

	if (!module || !file)
		Py_FatalError("the program cannot be started");
	dict = PyModule_GetDict(module);
	Py_INCREF(module);
	Py_INCREF(dict);
	parts = r->flags & REPORT_LAST ? report_split(r) : NULL;
	if (parts) {
		(void)fclose(file);
		result = run_parts(r, parts, dict);
		Py_DECREF(parts);
	} else {
		result = PyRun_FileExFlags(file, r->path, Py_file_input, dict, dict, 1, &flags);
	}
	flush_stream("stderr");
	flush_stream("stdout");
	if (!result) {
		Py_CLEAR(module);
		end = unhandled(r);
	}
	Py_XDECREF(result);
	/* After SystemExit the interpreter does not come here. */
	if (!end.exited && (PyDict_DelItemString(dict, "__file__") < 0 ||
				   PyDict_DelItemString(dict, "__cached__") < 0))
		PyErr_Clear();
	Py_DECREF(dict);
	Py_XDECREF(module);
	return end;
}
