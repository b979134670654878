#include <Python.h> /* first: it may define what the C library's headers look at */

#include "box/zygote/report.h"

#include "base/check.h"
#include "base/fault.h"
#include "wire/report.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

extern const char report_text_start[];

/* report.py's functions. */
static struct {
	PyObject *begin, *split, *error, *result, *figures;
} tell;

static PyObject *pylab_word; /* the module that knows the figures */

int report_init(void)
{
	pylab_word = PyUnicode_InternFromString("matplotlib._pylab_helpers");
	return pylab_word ? 0 : -1;
}

static PyObject *run_source(void)
{
	PyObject *own = PyDict_New(), *code, *done = NULL;

	code = own ? Py_CompileString(report_text_start, "report.py", Py_file_input) : NULL;
	if (code && PyDict_SetItemString(own, "__builtins__", PyEval_GetBuiltins()) == 0)
		done = PyEval_EvalCode(code, own, own);
	Py_XDECREF(code);
	if (!done)
		Py_CLEAR(own);
	Py_XDECREF(done);
	return own;
}

int report_load(void)
{
	struct {
		const char *name;
		PyObject **function;
	} const all[] = { { "begin", &tell.begin }, { "split", &tell.split },
		{ "error", &tell.error }, { "result", &tell.result },
		{ "figures", &tell.figures } };
	PyObject *own = run_source();

	for (size_t i = 0; own && i < ARRAY_LEN(all); i++) {
		*all[i].function = PyDict_GetItemString(own, all[i].name);
		Py_XINCREF(*all[i].function);
	}
	Py_XDECREF(own);
	return own && tell.figures ? 0 : -1;
}

int report_open(struct report *r, int fd, uint32_t flags, unsigned long process, struct fault *f)
{
	void *area;

	r->area = NULL;
	r->flags = flags;
	if (flags == 0)
		return 0;
	/* No descriptor stays: the program's are its own, and it may close all that there are. */
	area = mmap(NULL, REPORT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED)
		return fault_set(f, -errno, "map the report");
	r->area = area;
	r->process = process;
	return 0;
}

static bool is_wanted(const struct report *r, uint32_t flags)
{
	return r->area && (r->flags & flags) && (unsigned long)getpid() == r->process;
}

/* The first time: the functions are there, and know the memory. A run that tells nothing has no
 * object for it. */
static bool begin(const struct report *r)
{
	static bool begun;
	PyObject *area, *done;

	if (begun)
		return true;
	if (!tell.begin && report_load() < 0)
		return false;
	area = PyMemoryView_FromMemory(r->area, (Py_ssize_t)REPORT_BYTES, PyBUF_WRITE);
	done = area ? PyObject_CallFunction(tell.begin, "Os", area, r->path) : NULL;
	begun = done != NULL;
	Py_XDECREF(area);
	Py_XDECREF(done);
	return begun;
}

/* One of the functions with these arguments (taken). NULL, without an exception: it failed. */
static PyObject *call(PyObject *const *function, PyObject *args, const struct report *r)
{
	PyObject *value = args && begin(r) ? PyObject_CallObject(*function, args) : NULL;

	Py_XDECREF(args);
	if (!value)
		PyErr_Clear();
	return value;
}

static PyObject *source_of(const char *path)
{
	PyObject *io = PyImport_ImportModule("_io"), *file, *source = NULL, *closed;

	file = io ? PyObject_CallMethod(io, "open", "ss", path, "rb") : NULL;
	if (file) {
		source = PyObject_CallMethod(file, "read", NULL);
		closed = PyObject_CallMethod(file, "close", NULL);
		Py_XDECREF(closed);
	}
	Py_XDECREF(io);
	Py_XDECREF(file);
	PyErr_Clear();
	return source;
}

PyObject *report_split(const struct report *r)
{
	PyObject *source, *parts = NULL;

	if (!is_wanted(r, REPORT_LAST))
		return NULL;
	source = source_of(r->path);
	if (source)
		parts = call(&tell.split, Py_BuildValue("(Ns)", source, r->path), r);
	if (parts && (!PyTuple_Check(parts) || PyTuple_GET_SIZE(parts) != 2))
		Py_CLEAR(parts);
	return parts;
}

void report_result(const struct report *r, PyObject *value)
{
	if (is_wanted(r, REPORT_LAST))
		Py_XDECREF(call(&tell.result, Py_BuildValue("(O)", value), r));
}

void report_error(const struct report *r)
{
	PyObject *type, *value, *traceback;

	if (!is_wanted(r, REPORT_ERROR) || PyErr_ExceptionMatches(PyExc_SystemExit))
		return;
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	Py_XDECREF(call(&tell.error,
		Py_BuildValue("(OO)", value ? value : Py_None, traceback ? traceback : Py_None),
		r));
	PyErr_Restore(type, value, traceback);
}

/* The formats that are asked for, by matplotlib's names. */
static PyObject *formats(uint32_t flags)
{
	if ((flags & REPORT_PNG) && (flags & REPORT_SVG))
		return Py_BuildValue("((ss))", "png", "svg");
	return Py_BuildValue("((s))", flags & REPORT_PNG ? "png" : "svg");
}

bool report_may_have_figures(const struct report *r)
{
	bool there = r->area && PyDict_GetItemWithError(PyImport_GetModuleDict(), pylab_word);

	PyErr_Clear();
	return there;
}

void report_figures(const struct report *r)
{
	if (report_may_have_figures(r) && is_wanted(r, REPORT_PNG | REPORT_SVG))
		Py_XDECREF(call(&tell.figures, formats(r->flags), r));
}
