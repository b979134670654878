/* `glovebox serve`: gather settings, then become the supervisor. */
#include "caller/cli/options.h"
#include "caller/cli/roles.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "caller/image/store.h"
#include "caller/lib/manifests.h"
#include "caller/lib/overrides.h"
#include "caller/lib/spawn.h"
#include "wire/channel.h"

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* since Linux 6.3; older ones refuse it and need it not */
#endif

/* The manifests of our languages, carried in the program (src/priv/meson.build). */
extern const unsigned char runtimes_start[], runtimes_end[];

#define FIRST_FD 3
#define HIGH_FD  16

enum {
	OPTION_CONFIG = OPTION_VERB,
	OPTION_CONFIG_CHECK,
	OPTION_RUNTIMES
};

struct serve {
	const char *config;   /* borrowed from argv or the environment */
	const char *runtimes; /* so, too */
	bool check;
	struct records records;
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
	struct serve *s = state->input;

	if (options_add_flag(&s->records, key, arg))
		return 0;
	if (key == OPTION_CONFIG)
		s->config = arg;
	else if (key == OPTION_RUNTIMES)
		s->runtimes = arg;
	else if (key == OPTION_CONFIG_CHECK)
		s->check = true;
	else if (key == ARGP_KEY_ARG)
		options_refuse(state->name, "\"%s\": serve takes options only", arg);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static void parse(int argc, char **argv, struct serve *s)
{
	static struct argp_option options[64] = {
		{ .name = "config",
			.key = OPTION_CONFIG,
			.arg = "FILE",
			.doc = "YAML file of settings (default: " CONFIG_FILE_DEFAULT
			       ", if it is there)" },
		{ .name = "config-check",
			.key = OPTION_CONFIG_CHECK,
			.doc = "only say whether the settings and the manifests are right" },
		{ .name = "runtimes",
			.key = OPTION_RUNTIMES,
			.arg = "DIR",
			.doc = "folder of further languages (default: " RUNTIMES_DEFAULT
			       ", if it is there)" },
	};
	static const struct argp argp = {
		.options = options,
		.parser = on_option,
		.doc = "Answer POST /execute over HTTP."
		       "\vEvery option but --config-check is also an environment variable "
		       "(--max-runs: GLOVEBOX_MAX_RUNS), and a key of the file except "
		       "for --config and --runtimes. Options win over the environment, that over "
		       "the file.",
	};
	const struct argp_option *from = options_settings();
	size_t n = 3;

	for (; from->name; from++) {
		CHECK(n + 1 < ARRAY_LEN(options));
		options[n++] = *from;
	}
	options_parse(&argp, argc, argv, s);
}

/* What runs as root must not change under it, whatever happens to the file on disk. */
static int copy_self(int *ret_fd, struct fault *f)
{
	cleanup_fd int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = -1;
	struct stat st;
	int r;

	if (from < 0 || fstat(from, &st) < 0)
		return fault_set(f, -errno, "open the program");
	to = memfd_create("glovebox", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (to < 0 && errno == EINVAL)
		to = memfd_create("glovebox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (to < 0)
		return fault_set(f, -errno, "memfd for the program");
	for (off_t done = 0; done < st.st_size;) {
		ssize_t n = sendfile(to, from, &done, (size_t)(st.st_size - done));

		if (n <= 0)
			return fault_set(f, n < 0 ? -errno : -EIO, "copy the program");
	}
	r = io_seal(to);
	if (r < 0)
		return fault_set(f, r, "seal the program");
	*ret_fd = take_fd(&to);
	return 0;
}

/* Put `fds` at FIRST_FD and up, and close everything above them on exec. Lifted first,
 * because one may lie where another has to go. */
static int place(const int *fds, unsigned n, struct fault *f)
{
	int lifted[SPAWN_FDS_MAX];

	for (unsigned i = 0; i < n; i++) {
		lifted[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
		if (lifted[i] < 0)
			return fault_set(f, -errno, "place descriptors");
	}
	for (unsigned i = 0; i < n; i++)
		if (dup2(lifted[i], FIRST_FD + (int)i) < 0)
			return fault_set(f, -errno, "place descriptors");
	if (close_range(FIRST_FD + n, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return fault_set(f, -errno,
			"close_range (Linux 5.9 or later), which keeps descriptors from the "
			"server");
	return 0;
}

/* Returns only on failure. No client on channel 3: that is what makes it a server. */
static int become_supervisor(int overrides_fd, int file_fd, struct fault *f)
{
	char name[] = "glovebox", role[] = "@supervisor";
	char *const argv[] = { name, role, NULL }, *const envp[] = { NULL };
	cleanup_fd int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC), self = -1, high = -1;
	int r;

	if (geteuid() != 0)
		return fault_say(f, -EPERM,
			"building cages needs root: run this as root, for example with sudo");
	if (null_fd < 0)
		return fault_set(f, -errno, "/dev/null");
	r = copy_self(&self, f);
	if (r < 0)
		return r;
	high = fcntl(self, F_DUPFD_CLOEXEC, HIGH_FD); /* out of the way of place() */
	if (high < 0 || dup2(null_fd, STDIN_FILENO) < 0)
		return fault_set(f, -errno, "place descriptors");
	r = place((const int[]){ null_fd, overrides_fd, file_fd }, 3, f);
	if (r < 0)
		return r;
	(void)fexecve(high, argv, envp);
	return fault_set(f, -errno, "start the supervisor");
}

static int open_ids(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : fd;
}

/* Wait for the config process's answer. That it tells its languages is enough to know of them. */
static int await_config(int channel_fd, struct msg *ret, struct fault *f)
{
	struct pollfd p = { .fd = channel_fd, .events = POLLIN };
	int r;

	do {
		(void)poll(&p, 1, -1);
		r = channel_recv(channel_fd, ROLE_CONFIG, ROLE_SUPERVISOR, ret, NULL);
	} while (r == -EAGAIN || r == -EINTR || (r == 1 && ret->type == MSG_LANGUAGE));
	if (r == 0)
		return fault_say(f, -EPIPE, "the config process ended without a word");
	return r < 0 ? fault_set(f, r, "receive from the config process") : 0;
}

static int open_manifests(struct fault *f)
{
	cleanup_fd int fd = memfd_create("runtimes", MFD_CLOEXEC);
	int r = fd < 0 ? -errno
		       : io_write_all(fd, runtimes_start, (size_t)(runtimes_end - runtimes_start));

	return r < 0 ? fault_set(f, r, "memfd for the manifests") : take_fd(&fd);
}

/* Have the settings read as the supervisor would, by the same confined process. */
static int read_config(int overrides_fd, int file_fd, struct settings *ret, struct fault *f)
{
	cleanup_fd int ours = -1, theirs = -1, passwd = open_ids("/etc/passwd"),
		       group = open_ids("/etc/group"), subuid = open_ids("/etc/subuid"),
		       manifests = open_manifests(f);
	struct msg m;
	int pair[2], r;
	pid_t pid;

	if (manifests < 0)
		return manifests;
	r = channel_pair(pair, 0);
	if (r < 0)
		return fault_set(f, r, "socket pair");
	ours = pair[0];
	theirs = pair[1];
	r = spawn_role(
		&(struct spawn_plan){
			.program = "/proc/self/exe",
			.role = "@config",
			.fds = (const int[]){ theirs, overrides_fd, file_fd, manifests, passwd,
				group, subuid },
			.nfds = 7,
			.log_fd = STDERR_FILENO,
		},
		&pid, f);
	if (r < 0)
		return r;
	drop_fd(&theirs);
	r = await_config(ours, &m, f);
	(void)spawn_wait(pid);
	if (r == 0 && m.type == MSG_CONFIG_BAD) {
		*f = m.as.CONFIG_BAD.fault;
		return fault_launder(f);
	}
	if (r == 0)
		*ret = m.as.CONFIG.settings;
	return r;
}

static int check_image(const struct settings *s, struct fault *f)
{
	CLEANUP(store_close) struct store store = { .fd = -1 };
	struct image_record record;
	int r;

	if (!s->image[0])
		return 0;
	r = store_open(&store, s->image_dir, false, f);
	if (r == 0)
		r = store_read(&store, s->image, &record, f);
	return r < 0 ? fault_wrap(f, "image") : 0;
}

/* A server starts without it, and keeps no files: more than a misspelt path is meant to do. */
static int check_artifact_dir(const struct settings *s, struct fault *f)
{
	struct stat st;

	if (s->artifact_store == 0)
		return 0;
	if (stat(s->artifact_dir, &st) < 0)
		return fault_set(f, -errno, "artifact-dir: %.200s", s->artifact_dir);
	if (!S_ISDIR(st.st_mode))
		return fault_set(f, -ENOTDIR, "artifact-dir: %.200s", s->artifact_dir);
	return 0;
}

/* What the settings name on this host; not what only a start can show. */
static int check_config(int overrides_fd, int file_fd, struct fault *f)
{
	struct settings s;
	int r = read_config(overrides_fd, file_fd, &s, f);

	if (r == 0)
		r = check_image(&s, f);
	if (r == 0)
		r = check_artifact_dir(&s, f);
	if (r == 0 && s.uid_range_taken)
		(void)puts("warning: uid-base: ids of the range belong to somebody on this host");
	return r;
}

static int serve(const struct serve *s, struct fault *f)
{
	cleanup_fd int overrides_fd = -1, file_fd = -1;
	int r;

	r = overrides_open_file(s->config, &file_fd, f);
	if (r == 0)
		r = overrides_make(NULL, records_list(&s->records), s->runtimes, &overrides_fd, f);
	if (r < 0)
		return r;
	return s->check ? check_config(overrides_fd, file_fd, f)
			: become_supervisor(overrides_fd, file_fd, f);
}

static void serve_done(struct serve *s)
{
	records_done(&s->records);
}

int serve_main(int argc, char **argv)
{
	CLEANUP(serve_done)
	struct serve s = { .config = options_config_file(), .runtimes = getenv(RUNTIMES_VARIABLE) };
	struct fault f = { 0 };

	options_add_environment(&s.records); /* first, so that the flags win */
	parse(argc, argv, &s);
	if (serve(&s, &f) < 0) {
		error(0, 0, "%s", f.text);
		return EXIT_FAILURE;
	}
	(void)puts("glovebox: the settings and the manifests are right");
	return EXIT_SUCCESS;
}
