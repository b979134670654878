/* `glovebox image build`: Debian's packages, put together by mmdebstrap. */
#include "caller/cli/image.h"
#include "caller/cli/image_make.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "caller/image/command.h"
#include "caller/image/imager.h"
#include "caller/image/source.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PACKAGES_TEXT_MAX (PLAN_PACKAGES_MAX * PLAN_PACKAGE_MAX + 16)
#define SOURCES_MAX       32
#define OS_RELEASE_MAX    8192

/* The manifests that are carried in the program (src/caller/meson.build). */
extern const unsigned char image_python_data_start[], image_python_data_end[];

static const struct {
	const char *name;
	const unsigned char *start, *end;
} shipped[] = {
	{ "python-data", image_python_data_start, image_python_data_end },
};

/* ---- The manifest ---- */

static int open_shipped(size_t i, struct fault *f)
{
	cleanup_fd int fd = memfd_create("manifest", MFD_CLOEXEC);
	int r = fd < 0 ? -errno
		       : io_write_all(
				 fd, shipped[i].start, (size_t)(shipped[i].end - shipped[i].start));

	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return fault_set(f, r < 0 ? r : -errno, "the manifest %s", shipped[i].name);
	return take_fd(&fd);
}

/* A name is one of those that are shipped; everything else is a file. */
static int open_manifest(const char *what, struct fault *f)
{
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(shipped); i++)
		if (strcmp(shipped[i].name, what) == 0)
			return open_shipped(i, f);
	fd = open(what, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT && !strchr(what, '/'))
		return fault_say(f, -ENOENT,
			"%.200s is neither a manifest that is shipped (python-data) nor a file",
			what);
	return fault_set(f, -errno, "%.200s", what);
}

static int read_manifest(const char *what, struct msg_plan *ret, struct fault *f)
{
	static struct msg m;
	cleanup_fd int fd = open_manifest(what, f);
	struct imager imager = { .channel_fd = -1 };
	const char *rule;
	int r;

	if (fd < 0)
		return fd;
	r = imager_start(&imager, "manifest", fd, -1, f);
	if (r == 0)
		r = imager_hear(&imager, &m, f);
	imager_end(&imager);
	if (r < 0)
		return fault_wrap(f, "%.200s", what);
	rule = m.type == MSG_PLAN ? plan_fault(&m.as.PLAN) : "another answer";
	if (rule)
		return fault_say(f, -EINVAL, "%.200s: %s", what, rule);
	*ret = m.as.PLAN;
	return 0;
}

/* ---- The packages ---- */

/* VERSION_CODENAME of os-release(5): the release that this host's own packages are of. */
static int host_suite(char ret[static PLAN_WORD_MAX], struct fault *f)
{
	static const char key[] = "\nVERSION_CODENAME=";
	char text[OS_RELEASE_MAX];
	const char *at;
	size_t len;

	if (io_read_text(AT_FDCWD, "/etc/os-release", text, sizeof(text)) < 0)
		text[0] = '\0';
	at = strstr(text, key);
	at = at ? at + strlen(key) : "";
	len = strcspn(at, "\n");
	(void)snprintf(ret, PLAN_WORD_MAX, "%.*s", (int)len, at);
	if (len >= PLAN_WORD_MAX || !plan_word_is_valid(ret))
		return fault_say(f, -ENOENT,
			"which Debian release? /etc/os-release has no "
			"VERSION_CODENAME; the manifest's suite names one");
	return 0;
}

static void join_packages(const struct msg_plan *p, char ret[static PACKAGES_TEXT_MAX])
{
	size_t used = (size_t)snprintf(ret, PACKAGES_TEXT_MAX, "--include=");

	for (unsigned i = 0; i < PLAN_PACKAGES_MAX && p->packages[i][0]; i++)
		used += (size_t)snprintf(
			ret + used, PACKAGES_TEXT_MAX - used, "%s%s", i ? "," : "", p->packages[i]);
}

#define FETCHING "fetching and unpacking packages"

static void on_second(void *ctx, unsigned seconds)
{
	const struct msg_plan *p = ctx;
	char step[64];

	(void)snprintf(step, sizeof(step), FETCHING ", %u s", seconds);
	image_say_step(p->name, step);
}

/* It works for minutes: when this command is ended, it is to end as well, and clean up. */
static int mmdebstrap(struct msg_plan *p, const glob_t *sources, int out_fd, struct fault *f)
{
	char include[PACKAGES_TEXT_MAX], variant[PLAN_WORD_MAX + 16];
	const char *const head[] = { "setpriv", "--pdeathsig", "TERM", "mmdebstrap", "--quiet",
		"--format=tar", variant, include, "--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*", "--", p->suite, "-" };
	const char *argv[ARRAY_LEN(head) + SOURCES_MAX + 1] = { NULL };
	struct command c;
	int r;

	(void)snprintf(variant, sizeof(variant), "--variant=%s", p->variant);
	join_packages(p, include);
	memcpy(argv, head, sizeof(head));
	for (size_t i = 0; i < sources->gl_pathc && i < SOURCES_MAX; i++)
		argv[ARRAY_LEN(head) + i] = sources->gl_pathv[i];
	r = command_start(&c, argv, -1, out_fd, f);
	c.name = "mmdebstrap";
	if (r == 0)
		r = command_watch(&c, on_second, p, f);
	command_end(&c);
	return r;
}

/* From the sources of packages that apt has on this host. */
static int fetch(struct msg_plan *p, int out_fd, struct fault *f)
{
	CLEANUP(globfree) glob_t sources = { 0 };
	const char *const patterns[] = { "/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list",
		"/etc/apt/sources.list.d/*.sources" };

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		(void)glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &sources);
	if (sources.gl_pathc == 0)
		return fault_say(f, -ENOENT, "there are no sources of packages in /etc/apt");
	return mmdebstrap(p, &sources, out_fd, f);
}

/* What the command line says goes before what the manifest does. */
static void take_limits(struct run_limits *to, const struct run_limits *given)
{
	if (given->timeout_us)
		to->timeout_us = given->timeout_us;
	if (given->memory_bytes)
		to->memory_bytes = given->memory_bytes;
	if (given->cpu_milli)
		to->cpu_milli = given->cpu_milli;
	if (given->pids)
		to->pids = given->pids;
}

int image_build(struct image_command *c, struct fault *f)
{
	static struct msg_plan plan;
	cleanup_fd int root = -1;
	int r = read_manifest(c->operands[0], &plan, f);

	if (r == 0 && !plan.suite[0])
		r = host_suite(plan.suite, f);
	if (r < 0)
		return r;
	r = image_prepare(c, plan.name, f);
	root = r < 0 ? r : source_nameless(&c->store, f);
	if (root < 0)
		return root;
	image_say_step(plan.name, FETCHING);
	r = fetch(&plan, root, f);
	image_say_step(plan.name, NULL);
	if (r < 0)
		return fault_wrap(f, "%s", plan.name);
	c->ask.source = IMAGE_SOURCE_ROOT;
	take_limits(&plan.start.limits, &c->ask.wanted.limits);
	c->ask.wanted = plan.start;
	/* Packages of the host's own sources have run as root already, to be put together. */
	c->trusted = true;
	return image_make(c, plan.name, root, f);
}
