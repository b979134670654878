#include "priv/supervisor/boot.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/process.h"
#include "kernel/sys.h"
#include "wire/channel.h"
#include "wire/network.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The manifests, carried in the program (src/priv/meson.build). */
extern const unsigned char runtimes_start[], runtimes_end[];

/* A file whose bytes only the config process reads; one that is not there reads as empty. */
static int open_or_empty(const char *path)
{
	int fd = sys.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);

	return fd < 0 ? sys.openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0) : fd;
}

static int receive(int channel, struct msg *ret, struct fault *f)
{
	struct pollfd p = { .fd = channel, .events = POLLIN };
	const char *rule = "";
	int r = sys.poll(&p, 1, BOOT_TIMEOUT_MS);

	if (r <= 0)
		return fault_set(f, r < 0 ? r : -ETIMEDOUT, "the config process does not answer");
	r = channel_recv(channel, ROLE_CONFIG, ROLE_SUPERVISOR, ret, &rule);
	if (r == 0)
		return fault_say(f, -EPIPE, "the config process ended without an answer");
	return r < 0 ? fault_set(f, r, "config process: %s", rule) : 0;
}

static int take_language(struct languages *l, const struct language *new, struct fault *f)
{
	const char *rule = language_fault(new);

	if (!rule && l->count == LANGUAGES_MAX)
		rule = "too many languages";
	if (rule)
		return fault_say(f, -EPROTO, "%s", rule);
	l->of[l->count++] = *new;
	return 0;
}

/* Of which gates are sure that nobody changes it under their eyes. */
static const char *policy_fault(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & IO_SEALS) != IO_SEALS)
		return "the network's policy is not sealed memory";
	if (fstat(fd, &st) < 0 || st.st_size != (off_t)sizeof(struct network_policy))
		return "the network's policy is not of its size";
	return NULL;
}

static int take_config(struct boot *ret, struct msg *m, struct fault *f)
{
	const struct settings *new = &m->as.CONFIG.settings;
	const char *rule = settings_fault(new);

	if (!rule && ret->languages->count == 0)
		rule = "there is no language";
	if (!rule)
		rule = policy_fault(m->fds[0]);
	if (!rule) {
		*ret->settings = *new;
		ret->policy_fd = take_fd(&m->fds[0]);
	}
	msg_done(m);
	return rule ? fault_say(f, -EPROTO, "settings: %s", rule) : 0;
}

static int await_config(int channel, struct boot *ret, struct fault *f)
{
	static struct msg m;
	int r;

	ret->languages->count = 0;
	for (;;) {
		r = receive(channel, &m, f);
		if (r < 0)
			return r;
		if (m.type == MSG_CONFIG_BAD) {
			*f = m.as.CONFIG_BAD.fault;
			return fault_launder(f);
		}
		if (m.type == MSG_CONFIG)
			return take_config(ret, &m, f);
		r = take_language(ret->languages, &m.as.LANGUAGE.language, f);
		if (r < 0)
			return r;
	}
}

static void end_child(struct process *p)
{
	struct rusage usage;
	int status;

	process_kill(p);
	while (process_reap(p, &status, &usage) == 0) {
		struct pollfd wait = { .fd = p->pidfd, .events = POLLIN };

		(void)sys.poll(&wait, 1, -1);
	}
	process_close(p);
}

int boot_settings(int self_fd, struct boot *ret, struct fault *f)
{
	cleanup_fd int ours = -1, theirs = -1, manifests = -1;
	cleanup_fd int passwd = open_or_empty("/etc/passwd"), group = open_or_empty("/etc/group");
	cleanup_fd int subuid = open_or_empty("/etc/subuid");
	struct process_plan plan = {
		.image_fd = self_fd,
		.argv = { "glovebox", "@config", NULL },
		.nfds = 7,
		.out_fd = -1,
		.err_fd = STDERR_FILENO,
		.pidns_of = -1,
		.cgroup_fd = -1,
		.new_session = 1,
	};
	struct process child;
	int pair[2], r = channel_pair(pair, 0);

	if (r < 0)
		return fault_set(f, r, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	r = process_image(
		"runtimes", runtimes_start, (size_t)(runtimes_end - runtimes_start), &manifests, f);
	if (r < 0)
		return r;
	memcpy(plan.fds,
		(int[]){ theirs, BOOT_OVERRIDES, BOOT_CONFIG, manifests, passwd, group, subuid },
		7 * sizeof(int));
	process_clear(&child);
	r = process_spawn(&plan, &child, f);
	if (r == 0)
		r = process_release(&child, f);
	drop_fd(&theirs);
	if (r == 0)
		r = await_config(ours, ret, f);
	if (child.pid > 0)
		end_child(&child);
	(void)close(BOOT_OVERRIDES);
	(void)close(BOOT_CONFIG);
	return r;
}
