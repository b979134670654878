/* The extension module of a zygote's agent (runtimes/python/agent.py), which imports what
 * the manifest says and then calls serve(), from where it never returns.
 *
 *   runs in    a zygote: one thread, host root
 *   blocks     in serve(), until the supervisor wants a child
 *   trusts     the supervisor
 */
#include <Python.h>

#include "base/fault.h"
#include "box/box.h"
#include "box/zygote/begin.h"
#include "box/zygote/child.h"
#include "box/zygote/finish.h"
#include "box/zygote/program.h"
#include "box/zygote/python.h"
#include "box/zygote/share.h"
#include "kernel/sys.h"
#include "kernel/twin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static struct {
	struct twin twin;
	PyObject *fork_done, *scrub, *training; /* the agent's */
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

static PyObject *module_threads(PyObject *self, PyObject *args)
{
	(void)self;
	(void)args;
	return PyLong_FromLong(twin_threads());
}

/* ---- Forking ---- */

static int call(PyObject *function)
{
	PyObject *r = PyObject_CallNoArgs(function);

	Py_XDECREF(r);
	return r ? 0 : -1;
}

static int fork_done(void)
{
	return call(zygote.fork_done);
}

static int scrub(void)
{
	return call(zygote.scrub);
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

	if (threads != 1)
		return fault_say(f, -EBUSY, "the zygote has %d threads", threads);
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
	const struct child_script script = {
		.fork_done = fork_done,
		.scrub = scrub,
		.training = m->as.FORK.rehearse ? PyBytes_AS_STRING(zygote.training) : NULL,
		.training_bytes = (unsigned long)PyBytes_GET_SIZE(zygote.training),
	};
	struct fault f = { 0 };
	int pidfd = -1;
	pid_t pid = check_quiet(m->nfds, &f);

	if (pid == 0) {
		PyOS_BeforeFork();
		pid = twin_fork(&zygote.twin, m->fds[0], m->fds[1],
			m->as.FORK.renewed ? MAIN_PID : 0, &pidfd, &f);
		if (pid == 0) {
			m->as.FORK.cell = 0; /* not the program's to know */
			child_live(m->fds[2], &script);
		}
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
	if (program_init() < 0 || finish_init() < 0)
		return python_fault(f, "zygote");
	begin_init();
	r = share_memory(f);
	if (r < 0)
		return r;
	r = sys.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (r < 0)
		return fault_set(f, r, "prctl");
	zygote.first_free_fd = first_free_fd();
	return box_die_with_supervisor(f);
}

/* serve(version, fork_done, scrub, training) */
static PyObject *module_serve(PyObject *self, PyObject *args)
{
	static struct msg m; /* static: too large for a careful stack */
	struct msg_warm warm = { .modules = (uint32_t)PyDict_Size(PyImport_GetModuleDict()) };
	struct fault f = { 0 };
	const char *version, *rule = "";
	int r;

	(void)self;
	if (!PyArg_ParseTuple(
		    args, "sOOS", &version, &zygote.fork_done, &zygote.scrub, &zygote.training))
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
	{ "threads", module_threads, METH_NOARGS, NULL },
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
