/* The extension module of a zygote's agent (runtimes/python/agent.py), which imports what
 * the manifest says and then calls serve(), from where it never returns.
 *
 *   runs in    a zygote: one thread, host root
 *   blocks     in serve(), until the supervisor wants a child
 *   trusts     the supervisor
 */
#define Py_BUILD_CORE_MODULE 1 /* for the hooks of a fork */
#include <Python.h>
#include <internal/pycore_interp.h>

#include "base/check.h"
#include "base/fault.h"
#include "box/box.h"
#include "box/zygote/apart.h"
#include "box/zygote/begin.h"
#include "box/zygote/child.h"
#include "box/zygote/finish.h"
#include "box/zygote/program.h"
#include "box/zygote/python.h"
#include "box/zygote/rehearse.h"
#include "box/zygote/remains.h"
#include "box/zygote/report.h"
#include "box/zygote/settle.h"
#include "box/zygote/share.h"
#include "box/zygote/streams.h"
#include "kernel/sys.h"
#include "kernel/twin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

/* init is 1, and whom the zygote forks into the cell is next. */
#define CELL_MAIN_TID 2

static struct {
	struct twin twin;
	PyObject *fork_done, *reseed, *arrange, *scrub, *practice, *training; /* the agent's */
	bool preloads;      /* for its owner, more than the agent's own modules */
	bool strange_hooks; /* others than the modules' that after_fork() knows */
	int first_free_fd;
	struct msg_broken overdue; /* sent by a signal handler */
} zygote;

int python_fault(struct fault *f, const char *what)
{
	PyObject *type, *value, *traceback, *text = NULL;
	const char *say = NULL;

	PyErr_Fetch(&type, &value, &traceback);
	if (value)
		text = PyObject_Str(value);
	if (text)
		say = PyUnicode_AsUTF8(text);
	PyErr_Clear();
	(void)fault_say(f, -EINVAL, "%s: %s: %s", what,
		type ? ((PyTypeObject *)type)->tp_name : "no exception", say ? say : "");
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	return f->code;
}

static int send_fault(uint64_t cell, const struct fault *f)
{
	struct msg_broken m = { .cell = cell, .fault = *f };

	return channel_send(BOX_CHANNEL_FD, MSG_UNFORKED, &m, NULL);
}

/* ---- What the agent may say before it serves ---- */

static PyObject *module_fail(PyObject *self, PyObject *args)
{
	struct fault f = { 0 };
	const char *text;

	(void)self;
	if (!PyArg_ParseTuple(args, "s", &text))
		return NULL;
	(void)fault_say(&f, -EINVAL, "%s", text);
	(void)send_fault(0, &f);
	_exit(BOX_FAILED_STATUS);
}

static void overdue(int sig)
{
	(void)sig;
	(void)channel_send(BOX_CHANNEL_FD, MSG_UNFORKED, &zygote.overdue, NULL);
	_exit(BOX_FAILED_STATUS);
}

/* bound(name, seconds): what follows may take so long; 0 seconds end it. */
static PyObject *module_bound(PyObject *self, PyObject *args)
{
	struct sigaction act = { .sa_handler = overdue };
	const char *name;
	unsigned seconds;

	(void)self;
	if (!PyArg_ParseTuple(args, "sI", &name, &seconds))
		return NULL;
	(void)alarm(0);
	zygote.overdue = (struct msg_broken){ 0 };
	(void)fault_say(&zygote.overdue.fault, -ETIMEDOUT,
		"module %s: its import takes longer than %u s", name, seconds);
	if (seconds == 0)
		act.sa_handler = SIG_DFL;
	if (sigaction(SIGALRM, &act, NULL) < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	(void)alarm(seconds);
	Py_RETURN_NONE;
}

/* Nobody to tell: the supervisor is gone, and serve() finds that out. */
static void say_preloading(const char *what)
{
	struct msg_preloading m = { { 0 } };

	(void)snprintf(m.what, sizeof(m.what), "%s", what);
	(void)channel_send(BOX_CHANNEL_FD, MSG_PRELOADING, &m, NULL);
}

/* preloading(what): what follows is for the owner's preload. */
static PyObject *module_preloading(PyObject *self, PyObject *args)
{
	const char *what;

	(void)self;
	if (!PyArg_ParseTuple(args, "s", &what))
		return NULL;
	zygote.preloads = true;
	say_preloading(what);
	Py_RETURN_NONE;
}

static PyObject *module_threads(PyObject *self, PyObject *args)
{
	(void)self;
	(void)args;
	return PyLong_FromLong(twin_threads());
}

static PyObject *module_is_parent(PyObject *self, PyObject *args)
{
	(void)self;
	(void)args;
	return PyBool_FromLong(twin_children() != -ECHILD);
}

/* ---- Forking ---- */

static int call(PyObject *function)
{
	PyObject *r = PyObject_CallNoArgs(function);

	Py_XDECREF(r);
	return r ? 0 : -1;
}

/* Is a hook one of those that need not run? Locks are free in a zygote, which has one
 * thread and forks between two lines of C; random is in reseed(). */
static bool is_known_hook(PyObject *hook)
{
	static const char *const known[] = { "threading", "logging", "random" };
	PyObject *name = PyObject_GetAttrString(hook, "__module__");
	bool r = false;

	for (size_t i = 0; name && PyUnicode_Check(name) && i < ARRAY_LEN(known); i++)
		r |= PyUnicode_CompareWithASCIIString(name, known[i]) == 0;
	PyErr_Clear();
	Py_XDECREF(name);
	return r;
}

static bool has_strange_hooks(void)
{
	const PyInterpreterState *interp = PyThreadState_Get()->interp;
	PyObject *const lists[] = { interp->before_forkers, interp->after_forkers_parent,
		interp->after_forkers_child };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		for (Py_ssize_t at = 0; lists[i] && at < PyList_GET_SIZE(lists[i]); at++) {
			if (!is_known_hook(PyList_GET_ITEM(lists[i], at)))
				return true;
		}
	}
	return false;
}

static int fill_randomly(PyObject *address_and_bytes)
{
	unsigned char *at = PyLong_AsVoidPtr(PyTuple_GetItem(address_and_bytes, 0));
	size_t left = PyLong_AsSize_t(PyTuple_GetItem(address_and_bytes, 1));

	if (PyErr_Occurred())
		return -1;
	while (left > 0) {
		ssize_t n = getrandom(at, left, 0);

		if (n < 0) {
			(void)PyErr_SetFromErrno(PyExc_OSError);
			return -1;
		}
		at += n;
		left -= (size_t)n;
	}
	return 0;
}

/* What no two children may share: functions to call, and (address, bytes) of generators'
 * states where a function would copy many pages. */
static int reseed(void)
{
	int r = 0;

	for (Py_ssize_t i = 0; r == 0 && i < PyTuple_GET_SIZE(zygote.reseed); i++) {
		PyObject *item = PyTuple_GET_ITEM(zygote.reseed, i);

		r = PyTuple_CheckExact(item) ? fill_randomly(item) : call(item);
	}
	return r;
}

/* In the child. The thread, and with it the owner of every lock, is where it was in memory;
 * only the kernel's number for it is another one, mostly the one that the zygote wrote down
 * ahead. So what os.fork() would do is done only where somebody has hooked into it: it
 * copies 200 pages. */
static int after_fork(void)
{
#ifdef PY_HAVE_THREAD_NATIVE_ID
	PyThreadState_Get()->native_thread_id = PyThread_get_thread_native_id();
#endif
	if (zygote.strange_hooks)
		PyOS_AfterFork_Child();
	if ((zygote.strange_hooks || gettid() != CELL_MAIN_TID) && call(zygote.fork_done) < 0)
		return -1;
	return reseed();
}

static int scrub(void)
{
	return call(zygote.scrub);
}

static struct rehearsal rehearsal_of(PyObject *program, bool in_full)
{
	return (struct rehearsal){
		.source = PyBytes_AS_STRING(program),
		.bytes = (unsigned long)PyBytes_GET_SIZE(program),
		.scrub = scrub,
		.in_full = in_full,
	};
}

static int first_free_fd(void)
{
	int fd = sys.fcntl(0, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0)
		(void)sys.close(fd);
	return fd;
}

/* A child has what its zygote has: it must be alone, and own what it is known to own. */
static int check_quiet(unsigned received, struct fault *f)
{
	int threads = twin_threads(), children = twin_children(), fd = first_free_fd();

	if (threads < 0)
		return fault_set(f, threads, "count the zygote's threads");
	if (threads != 1)
		return fault_say(f, -EBUSY, "the zygote has %d threads", threads);
	if (children < 0 && children != -ECHILD)
		return fault_set(f, children, "look for children of the zygote");
	if (fd < 0)
		return fault_set(f, fd, "find the zygote's first free descriptor");
	if (children != -ECHILD)
		return fault_say(f, -EBUSY, "the zygote has a child process");
	if (fd != zygote.first_free_fd + (int)received)
		return fault_say(f, -EBUSY, "the zygote's descriptors have changed");
	return 0;
}

static void answer(const struct msg *m, pid_t pid, int pidfd, const struct fault *f)
{
	struct msg_forked forked = { .cell = m->as.FORK.cell, .pid = pid };
	int r;

	if (pid < 0)
		r = send_fault(m->as.FORK.cell, f);
	else
		r = channel_send(BOX_CHANNEL_FD, MSG_FORKED, &forked, &pidfd);
	if (pidfd >= 0)
		(void)sys.close(pidfd);
	if (r < 0)
		_exit(BOX_FAILED_STATUS);
}

static void fork_one(struct msg *m)
{
	const struct rehearsal training = rehearsal_of(zygote.training, false);
	const struct child_script script = {
		.after_fork = after_fork,
		.rehearsal = m->as.FORK.rehearse ? &training : NULL,
		.arrange = zygote.arrange,
	};
	struct fault f = { 0 };
	int pidfd = -1;
	pid_t pid = check_quiet(m->nfds, &f);

	if (pid == 0) {
		if (zygote.strange_hooks)
			PyOS_BeforeFork();
		pid = twin_fork(&zygote.twin, m->fds[0], m->fds[1], MAIN_PID, &pidfd, &f);
		if (pid == 0) {
			m->as.FORK.cell = 0; /* not the program's to know */
			child_live(m->fds[2], &script);
		}
		if (zygote.strange_hooks)
			PyOS_AfterFork_Parent();
	}
	answer(m, pid, pidfd, &f);
	msg_done(m);
}

/* The module knows the insides of one minor version of the interpreter. */
static int check_version(struct fault *f)
{
	const char *ours = PY_VERSION, *theirs = Py_GetVersion();
	size_t len = strcspn(ours, ".") + 1;

	len += strcspn(ours + len, ".") + 1;
	if (strncmp(ours, theirs, len) == 0)
		return 0;
	return fault_say(
		f, -ENOSYS, "glovebox was built for Python %s, this is %.20s", ours, theirs);
}

/* What a child does first, once here: what is bound, looked up or specialised on first use
 * then is so in what the children share. They go the same way with fewer pages of their own. */
static int practise(struct fault *f)
{
	const struct rehearsal practice = rehearsal_of(zygote.practice, true);
	int streams[3] = { -1, -1, -1 }, r = 0;

	zygote.strange_hooks = has_strange_hooks();
	if (reseed() < 0)
		return python_fault(f, "after the fork");
	if (program_prepare() < 0)
		return python_fault(f, "prepare");
	for (int i = 0; r >= 0 && i < 3; i++)
		r = streams[i] = sys.fcntl(i, F_DUPFD_CLOEXEC, 3);
	if (r < 0)
		return fault_set(f, r, "keep the streams");
	r = rehearse(&practice, f);
	for (int i = 0; i < 3; i++) {
		int err = sys.dup3(streams[i], i, 0);

		if (r >= 0 && err < 0)
			r = fault_set(f, err, "put back the streams");
		(void)sys.close(streams[i]);
	}
	if (r < 0)
		return r;
	return program_prepare() < 0 ? python_fault(f, "prepare") : 0;
}

/* What was preloaded may bend what the practice uses, is a part of it, and has its memory. */
static void say_stage(const char *what)
{
	if (zygote.preloads)
		say_preloading(what);
}

static int prepare(struct fault *f)
{
	int r = check_version(f);

	if (r == 0)
		r = twin_init(&zygote.twin, f);
	if (r < 0)
		return r;
	r = child_init();
	if (r < 0)
		return fault_set(f, r, "signals");
	if (program_init() < 0 || streams_init() < 0 || remains_init() < 0 || finish_init() < 0 ||
		apart_init() < 0 || report_init() < 0 || report_load() < 0)
		return python_fault(f, "zygote");
	begin_init();
	say_stage("the practice with what is preloaded");
	r = practise(f);
	if (r < 0)
		return r;
	say_stage("the memory of what is preloaded");
	settle_memory();
	r = share_memory(f);
	if (r < 0)
		return r;
	say_stage("");
	r = sys.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (r < 0)
		return fault_set(f, r, "prctl");
	zygote.first_free_fd = first_free_fd();
	return box_die_with_supervisor(f);
}

/* serve(version, fork_done, reseed, arrange, scrub, practice, training) */
static PyObject *module_serve(PyObject *self, PyObject *args)
{
	static struct msg m; /* static: too large for a careful stack */
	struct msg_warm warm = { .modules = (uint32_t)PyDict_Size(PyImport_GetModuleDict()) };
	struct fault f = { 0 };
	const char *version, *rule = "";
	int r;

	(void)self;
	if (!PyArg_ParseTuple(args, "sOO!OOSS", &version, &zygote.fork_done, &PyTuple_Type,
		    &zygote.reseed, &zygote.arrange, &zygote.scrub, &zygote.practice,
		    &zygote.training))
		return NULL;
	(void)snprintf(warm.version, sizeof(warm.version), "%s", version);
	if (prepare(&f) < 0) {
		(void)send_fault(0, &f);
		_exit(BOX_FAILED_STATUS);
	}
	r = channel_send(BOX_CHANNEL_FD, MSG_WARM, &warm, NULL);
	while (r >= 0) {
		r = channel_recv(BOX_CHANNEL_FD, ROLE_SUPERVISOR, ROLE_ZYGOTE, &m, &rule);
		if (r == 0)
			_exit(0); /* the supervisor has no more use for it */
		if (r > 0)
			fork_one(&m);
	}
	_exit(BOX_FAILED_STATUS);
}

static PyMethodDef methods[] = {
	{ "fail", module_fail, METH_VARARGS, NULL },
	{ "bound", module_bound, METH_VARARGS, NULL },
	{ "preloading", module_preloading, METH_VARARGS, NULL },
	{ "threads", module_threads, METH_NOARGS, NULL },
	{ "is_parent", module_is_parent, METH_NOARGS, NULL },
	{ "serve", module_serve, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static int module_exec(PyObject *self)
{
	(void)self;
	share_begin();
	return 0;
}

/* In two phases, so that it does not enter sys.modules by itself. */
static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, (void *)module_exec },
	{ 0, NULL },
};
static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_glovebox",
	.m_methods = methods,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__glovebox(void);
PyMODINIT_FUNC PyInit__glovebox(void)
{
	return PyModuleDef_Init(&definition);
}
