#define Py_BUILD_CORE_MODULE 1 /* for the collector's counters */
#include <Python.h>
#include <internal/pycore_interp.h>

#include "box/zygote/begin.h"

#include <time.h>

/* What the collector counts is visible, and decides when it runs: also for what a program's
 * __del__ methods do. */
static struct {
	int count[NUM_GENERATIONS];
	struct gc_generation_stats stats[NUM_GENERATIONS];
	Py_ssize_t long_lived_total, long_lived_pending;
} collector;

static PyObject *logging;
/* A number that nobody but logging has, and so can be changed where it is: putting another
 * one in its place would copy a dozen pages. */
static PyFloatObject *logging_start;

static void note_logging(void)
{
	PyObject *was;

	logging = PyDict_GetItemString(PyImport_GetModuleDict(), "logging");
	Py_XINCREF(logging);
	was = logging ? PyObject_GetAttrString(logging, "_startTime") : NULL;
	if (was && PyFloat_CheckExact(was)) {
		PyObject *own = PyFloat_FromDouble(PyFloat_AS_DOUBLE(was));

		if (own && PyObject_SetAttrString(logging, "_startTime", own) == 0)
			logging_start = (PyFloatObject *)own;
	}
	PyErr_Clear();
	Py_XDECREF(was);
}

void begin_init(void)
{
	const struct _gc_runtime_state *gc = &PyThreadState_Get()->interp->gc;

	for (int i = 0; i < NUM_GENERATIONS; i++) {
		collector.count[i] = gc->generations[i].count;
		collector.stats[i] = gc->generation_stats[i];
	}
	collector.long_lived_total = gc->long_lived_total;
	collector.long_lived_pending = gc->long_lived_pending;
	note_logging();
}

static void restore_collector(void)
{
	struct _gc_runtime_state *gc = &PyThreadState_Get()->interp->gc;

	for (int i = 0; i < NUM_GENERATIONS; i++) {
		gc->generations[i].count = collector.count[i];
		gc->generation_stats[i] = collector.stats[i];
	}
	gc->long_lived_total = collector.long_lived_total;
	gc->long_lived_pending = collector.long_lived_pending;
}

/* logging says how long ago it was imported: in seconds, from Python 3.13 on in
 * nanoseconds. */
static void restart_logging(void)
{
	PyObject *now;
	struct timespec t;

	if (!logging)
		return;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	if (logging_start) {
		logging_start->ob_fval = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
		return;
	}
	now = PyLong_FromLongLong((long long)t.tv_sec * 1000000000 + t.tv_nsec);
	if (now)
		(void)PyObject_SetAttrString(logging, "_startTime", now);
	PyErr_Clear();
	Py_XDECREF(now);
}

void begin(void)
{
	restart_logging();
	restore_collector();
}
