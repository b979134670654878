#include <Python.h>

#include "box/zygote/streams.h"

#include <stdbool.h>

static PyObject *flush_word, *closed_word;

int streams_init(void)
{
	flush_word = PyUnicode_InternFromString("flush");
	closed_word = PyUnicode_InternFromString("closed");
	return flush_word && closed_word ? 0 : -1;
}

static bool is_closed(PyObject *stream)
{
	PyObject *closed = PyObject_GetAttr(stream, closed_word);
	int r = closed ? PyObject_IsTrue(closed) : -1;

	Py_XDECREF(closed);
	if (r < 0)
		PyErr_Clear();
	return r > 0;
}

int streams_flush(void)
{
	static const char *const names[] = { "stdout", "stderr" };
	int status = 0;

	for (int i = 0; i < 2; i++) {
		PyObject *stream = PySys_GetObject(names[i]), *r;

		if (!stream || stream == Py_None || is_closed(stream))
			continue;
		r = PyObject_CallMethodNoArgs(stream, flush_word);
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
