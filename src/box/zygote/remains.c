#define Py_BUILD_CORE_MODULE 1 /* for the collector's lists */
#include <Python.h>
#include <internal/pycore_gc.h>
#include <internal/pycore_interp.h>

#include "box/zygote/remains.h"

#define FEW_OBJECTS 4096 /* of more, looking at all would cost more than it saves */

static PyTypeObject *loader_type; /* of "__main__" */

int remains_init(void)
{
	PyObject *module = PyImport_ImportModule("_frozen_importlib_external");
	PyObject *type = module ? PyObject_GetAttrString(module, "SourceFileLoader") : NULL;

	Py_XDECREF(module);
	loader_type = (PyTypeObject *)type;
	return type ? 0 : -1;
}

/* Types whose objects run nothing when they die, and hold nothing that does. */
static bool is_value(const PyTypeObject *t)
{
	return t == &PyUnicode_Type || t == &PyLong_Type || t == &PyFloat_Type ||
	       t == &PyBool_Type || t == &PyBytes_Type || t == &PyComplex_Type ||
	       t == &PyCode_Type || t == &PyRange_Type || t == Py_TYPE(Py_None) ||
	       t == Py_TYPE(Py_Ellipsis) || t == Py_TYPE(Py_NotImplemented);
}

/* Types whose objects run nothing when they die, but for what they hold. */
static bool is_holder(const PyTypeObject *t)
{
	return t == &PyDict_Type || t == &PyList_Type || t == &PyTuple_Type || t == &PySet_Type ||
	       t == &PyFrozenSet_Type || t == &PyFunction_Type || t == &PyCell_Type ||
	       t == &PyModule_Type || t == &PyMethod_Type || t == &PyCFunction_Type ||
	       t == &PySlice_Type || t == loader_type;
}

static bool is_static_type(PyObject *object)
{
	return PyType_Check(object) &&
	       !PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE);
}

/* A visitor for tp_traverse(): 0 to go on. `nested` is not NULL in an object that the
 * collector does not look at. */
static int has_more(PyObject *object, void *nested)
{
	static int yes;
	PyTypeObject *t = Py_TYPE(object);

	if (is_value(t) || is_static_type(object))
		return 0;
	if (!PyObject_IS_GC(object))
		return 1;
	if (_PyObject_GC_IS_TRACKED(object))
		return 0; /* the zygote's, or looked at by itself */
	/* The collector leaves out dictionaries and tuples that hold no holder. */
	if (nested || (t != &PyDict_Type && t != &PyTuple_Type))
		return 1;
	return t->tp_traverse(object, has_more, &yes);
}

static bool is_plain(PyObject *object)
{
	PyTypeObject *t = Py_TYPE(object);

	return is_holder(t) && t->tp_traverse(object, has_more, NULL) == 0;
}

/* What runs code when it dies is known to the collector itself, or is held by what is. */
bool remains_are_plain(void)
{
	struct _gc_runtime_state *gc = &PyThreadState_Get()->interp->gc;
	int count = 0;

	if (gc->debug || (gc->callbacks && PyList_GET_SIZE(gc->callbacks) > 0))
		return false;
	for (int i = 0; i < NUM_GENERATIONS; i++) {
		PyGC_Head *list = &gc->generations[i].head;

		for (PyGC_Head *g = _PyGCHead_NEXT(list); g != list; g = _PyGCHead_NEXT(g)) {
			if (++count > FEW_OBJECTS || !is_plain((PyObject *)(g + 1)))
				return false;
		}
	}
	return true;
}

/* Those that have a finalizer: the list holds on to them. */
static PyObject *with_finalizers(void)
{
	struct _gc_runtime_state *gc = &PyThreadState_Get()->interp->gc;
	PyObject *list = PyList_New(0);

	for (int i = 0; list && i < NUM_GENERATIONS; i++) {
		PyGC_Head *head = &gc->generations[i].head;

		for (PyGC_Head *g = _PyGCHead_NEXT(head); g != head; g = _PyGCHead_NEXT(g)) {
			PyObject *object = (PyObject *)(g + 1);

			if (Py_TYPE(object)->tp_finalize && !_PyGCHead_FINALIZED(g) &&
				PyList_Append(list, object) < 0)
				PyErr_Clear();
		}
	}
	return list;
}

void remains_finalize(void)
{
	int was_enabled = PyGC_Disable(); /* nothing may move between the lists meanwhile */
	PyObject *list = with_finalizers();

	for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++)
		PyObject_CallFinalizer(PyList_GET_ITEM(list, i));
	Py_XDECREF(list);
	if (was_enabled)
		(void)PyGC_Enable();
}

bool remains_have_threads(void)
{
	PyThreadState *now = PyThreadState_Get();
	PyThreadState *first = PyInterpreterState_ThreadHead(now->interp);

	return first != now || PyThreadState_Next(first);
}
