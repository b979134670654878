/* The order is that of Py_FinalizeEx(), and what it shows to a program's own __del__
 * methods and exit functions is meant to be the same.
 */
#define Py_BUILD_CORE_MODULE 1 /* for the one flag that threads look at when it ends */
#include <Python.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>

#include "box/zygote/finish.h"

#include "box/zygote/apart.h"
#include "box/zygote/remains.h"
#include "box/zygote/report.h"
#include "box/zygote/streams.h"
#include "wire/cell.h"

#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
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
	PyObject *run_exit_functions;
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
	made.run_exit_functions = attribute("atexit", "_run_exitfuncs");
	return made.run_exit_functions && !PyErr_Occurred() ? 0 : -1;
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

static void join_threads(void)
{
	if (remains_have_threads() || is_used(&made.threading))
		call_exit_function(&made.threading);
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
	failed = streams_flush();
	*ret_plain = !remains_have_threads() && remains_are_plain();
	if (!*ret_plain)
		(void)PyGC_Collect();
	return failed;
}

void finish_rehearse(bool in_full)
{
	bool plain;

	(void)remains_have_threads();
	(void)is_used(&made.threading);
	(void)end_run(false, &plain);
	if (in_full)
		apart_take();
	apart_undo();
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
	struct timespec used;

	if (libraries() != made.libraries)
		exit(status);
	(void)fflush(NULL); /* what extension modules print */
	/* To ask is what makes the kernel add up what has been used until now: the answer is
	 * given before it does so by itself. The name says that it was done. */
	(void)prctl(PR_SET_NAME, CELL_TOLD_NAME);
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	_exit(status);
}

_Noreturn void finish(struct program_end end, const struct report *r)
{
	bool plain;
	int failed;

	join_threads();
	(void)Py_MakePendingCalls();
	report_figures(r); /* matplotlib's own exit function closes them */
	failed = end_run(true, &plain);
	if (!plain)
		apart_take();
	call_low_exit_functions();
	if (end.interrupted) {
		(void)signal(SIGINT, SIG_DFL);
		(void)kill(getpid(), SIGINT);
		end.status = 128 + SIGINT; /* it is blocked */
	}
	leave(failed ? FLUSH_FAILED_STATUS : end.status);
}
