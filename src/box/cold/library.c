/* A cold interpreter is what `python3 main.py` makes it, up to the moment at which it would open
 * the program's file. It tells of that moment to whoever asks to audit it, which is this library:
 * no frame is on the stack, and everything is ready. From here on the program runs as in a warm
 * interpreter (zygote/program.c), and ends as in any.
 *
 *   runs in    the interpreter, as the program's user; loaded by LD_PRELOAD
 *   threads    the main one
 *   trusts     nothing: the process is the program's from here on
 */
#include <Python.h> /* first: it may define what the C library's headers look at */

#include "box/cold/library.h"
#include "box/zygote/program.h"
#include "box/zygote/report.h"

#include "base/fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_FAILED_STATUS 120 /* as python3 says it */

static struct report report;
static char path[sizeof("/workspace/") + INPUTS_PATH_MAX];

/* The library was built for one minor version, and leaves any other alone. */
static bool is_ours(void)
{
	const char *ours = PY_VERSION, *theirs = Py_GetVersion();
	size_t len = strcspn(ours, ".") + 1;

	len += strcspn(ours + len, ".") + 1;
	return strncmp(ours, theirs, len) == 0;
}

/* Source, as far as the interpreter can see that before it reads it as such: neither its name nor
 * its first bytes are those of compiled code. (An archive does not come here.) */
static bool is_source(const char *name)
{
	size_t len = strlen(name);
	unsigned char first[2] = { 0 };
	FILE *file;
	bool has_two;

	if (len < 3 || strcmp(name + len - 3, ".py") != 0 || len >= sizeof(path))
		return false;
	file = fopen(name, "rbe");
	if (!file)
		return false;
	has_two = fread(first, sizeof(first), 1, file) == 1;
	(void)fclose(file);
	return !has_two || (first[0] | first[1] << 8) != (PyImport_GetMagicNumber() & 0xffff);
}

/* As the interpreter does first when it ends, and not again then (unless somebody has replaced the
 * function). Only where there may be figures, which have to wait for it. */
static void join_threads(void)
{
	PyObject *threading = PyDict_GetItemString(PyImport_GetModuleDict(), "threading"), *done;

	if (!threading)
		return;
	Py_INCREF(threading);
	done = PyObject_CallMethod(threading, "_shutdown", NULL);
	if (!done)
		PyErr_WriteUnraisable(threading);
	Py_XDECREF(done);
	Py_DECREF(threading);
}

static _Noreturn void run(void)
{
	struct program_end end = program_run(&report);
	int status = end.status;

	if (report_may_have_figures(&report)) {
		join_threads();
		report_figures(&report);
	}
	if (Py_FinalizeEx() < 0)
		status = FLUSH_FAILED_STATUS;
	if (end.interrupted) {
		(void)signal(SIGINT, SIG_DFL);
		(void)kill(getpid(), SIGINT);
		status = 128 + SIGINT; /* it is blocked */
	}
	exit(status);
}

static int on_event(const char *event, PyObject *args, void *context)
{
	static bool done;
	const char *name;

	(void)context;
	if (done || strcmp(event, "cpython.run_file") != 0)
		return 0;
	done = true;
	name = PyTuple_Check(args) && PyTuple_GET_SIZE(args) == 1
		       ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(args, 0))
		       : NULL;
	if (name && is_ours() && is_source(name)) {
		memcpy(path, name, strlen(name) + 1);
		report.path = path;
		if (report_init() == 0 && program_adopt(path) == 0)
			run();
	}
	PyErr_Clear();
	return 0;
}

/* Also what /proc shows of it. */
static void forget(const char *name)
{
	char *value = getenv(name);
	size_t len = strlen(name) + 1;

	(void)unsetenv(name);
	if (value)
		memset(value - len, 0, len + strlen(value));
}

/* What the manifest calls an interpreter may be a program that becomes one, or none: all names of
 * Python are weak here, and there are none then (src/box/meson.build). */
static bool is_python(void)
{
	return Py_GetVersion && PySys_AddAuditHook;
}

/* Digits. Not strtoul(): newer headers make it a symbol that older C libraries do not have. */
static uint32_t number(const char *text)
{
	uint32_t n = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		n = n * 10 + (uint32_t)(*text - '0');
	return n;
}

/* Before the interpreter begins: it finds neither descriptors nor variables of ours. */
__attribute__((constructor)) static void begin(void)
{
	const char *flags = getenv(COLD_REPORT);
	struct fault f = { 0 };

	if (!flags)
		return;
	if (is_python() &&
		report_open(&report, COLD_REPORT_FD, number(flags), (unsigned long)getpid(), &f) ==
			0 &&
		report.area)
		(void)PySys_AddAuditHook(on_event, NULL);
	(void)close(COLD_LIBRARY_FD);
	(void)close(COLD_REPORT_FD);
	forget(COLD_REPORT);
	forget("LD_PRELOAD");
}
