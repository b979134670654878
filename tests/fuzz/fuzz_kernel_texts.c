/* Fuzz target: the kernel's own texts and records, as strict as if they came from a stranger:
 * mountinfo, /proc/self/cgroup, control files, exit records, what a network namespace
 * remembers; and the one text of these with a word in it that a program chooses, its name in
 * /proc/PID/stat. The first byte chooses. Checks, beyond memory errors, that every text ends
 * inside of its room, that nothing is taken for a path that could climb, that a change is seen,
 * and that a name changes no number.
 */
#include "kernel/cgroup_internal.h"
#include "kernel/netstate.h"
#include "kernel/sys.h"
#include "kernel/taskstats.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FAMILY 25
#define PARENT 4711

static bool ends_within(const char *text, size_t room)
{
	return strnlen(text, room) < room;
}

static void read_mounts(const char *text)
{
	static struct cgroup_mounts m;
	int r = cgroup_parse_mountinfo(text, &m);

	CHECK(r == 0 || r == -EINVAL || r == -EFBIG || r == -ENAMETOOLONG || r == -ENOSPC);
	if (r < 0)
		return;
	CHECK(m.count <= CGROUP_MOUNTS_MAX);
	for (unsigned i = 0; i < m.count; i++) {
		CHECK(m.m[i].version == 1 || m.m[i].version == 2);
		CHECK(ends_within(m.m[i].root, CGROUP_PATH_MAX));
		CHECK(ends_within(m.m[i].point, CGROUP_PATH_MAX));
		CHECK((m.m[i].controllers >> CGROUP_CONTROLLER_MAX) == 0);
	}
	for (int c = 0; c < CGROUP_CONTROLLER_MAX; c++)
		CHECK(cgroup_find_v1(&m, (enum cgroup_controller)c) < (int)m.count);
}

static void read_own(const char *text)
{
	static struct cgroup_own own;
	char below[CGROUP_PATH_MAX];

	if (cgroup_parse_own(text, &own) < 0)
		return;
	CHECK(ends_within(own.unified, CGROUP_PATH_MAX));
	for (int c = 0; c < CGROUP_CONTROLLER_MAX; c++)
		CHECK(ends_within(own.v1[c], CGROUP_PATH_MAX));
	if (cgroup_relative(own.v1[0], own.unified, below))
		CHECK(below[0] == '/' && ends_within(below, sizeof(below)));
	cgroup_strip_instance(own.unified);
	CHECK(ends_within(own.unified, CGROUP_PATH_MAX));
}

static void read_values(const char *text)
{
	uint64_t value;
	unsigned number;

	(void)cgroup_parse_controllers(text);
	(void)cgroup_parse_key(text, "oom_kill", &value);
	(void)cgroup_parse_key(text, "usage_usec", &value);
	if (cgroup_instance_number(text, &number))
		CHECK(strncmp(text, CGROUP_PREFIX, sizeof(CGROUP_PREFIX) - 1) == 0);
	if (cgroup_check_path(text) == 0)
		CHECK(text[0] == '/' && !strstr(text, "/../") && !strstr(text, "//") &&
			strlen(text) < CGROUP_PATH_MAX);
}

static void read_record(struct fuzz *z)
{
	struct taskstats_exit end = { .pid = -1 };
	char *block = fuzz_block(z->at, z->len);
	int r = taskstats_parse(block, z->len, FAMILY, PARENT, &end);

	CHECK(r == 1 || r == 0 || r == -EBADMSG);
	CHECK(r == 1 || end.pid == -1);
	free(block);
}

static void put(int fd, const void *bytes, size_t len)
{
	CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, len, 0) == (ssize_t)len);
}

/* The first file tells of sockets, the others are counters. */
static void read_network(struct fuzz *z)
{
	static struct netstate n;
	static const char quiet[] = "sockets: used 0\nTCP: inuse 0 orphan 0 tw 0 alloc 0\n";
	static int files[NETSTATE_FILES];
	size_t len;
	const uint8_t *p;
	bool is_quiet;

	netstate_clear(&n);
	for (unsigned i = 0; i < NETSTATE_FILES; i++) {
		if (files[i] == 0)
			files[i] = memfd_create("net", MFD_CLOEXEC);
		n.fd[i] = files[i];
		p = fuzz_take(z, fuzz_u8(z), &len);
		put(n.fd[i], p, len);
		if (i == 0)
			continue;
		memcpy(n.text + n.len, p, len);
		n.len += len;
	}
	(void)netstate_is_as_made(&n);
	put(n.fd[0], quiet, sizeof(quiet) - 1);
	is_quiet = netstate_is_as_made(&n);
	CHECK(is_quiet == (n.len > 0));
	put(n.fd[1], "changed by a program", 20);
	CHECK(!netstate_is_as_made(&n) || memcmp(n.text, "changed by a program", 20) == 0);
}

static int no_program(int dir_fd, const char *path, int flags, mode_t mode)
{
	(void)dir_fd;
	(void)path;
	(void)flags;
	(void)mode;
	return -ENOENT;
}

/* Our own name, as a process would have it that has let go of its memory. */
static void read_name(struct fuzz *z)
{
	struct taskstats_exit plain = { .pid = getpid() }, named = plain;
	char name[16], before[16];

	fuzz_fill(z, name, sizeof(name) - 1);
	name[15] = '\0';
	CHECK(prctl(PR_GET_NAME, before) == 0);
	sys.openat = no_program; /* that is how it is told */
	CHECK(taskstats_add_children(&plain) == 0);
	CHECK(prctl(PR_SET_NAME, name) == 0);
	CHECK(taskstats_add_children(&named) == 0);
	CHECK(prctl(PR_SET_NAME, before) == 0);
	CHECK(named.minor_faults == plain.minor_faults && named.major_faults == plain.major_faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz z = { bytes, len };
	uint8_t what = fuzz_u8(&z);
	char *text;

	switch (what % 8) {
	case 3:
		read_record(&z);
		return 0;
	case 4:
		read_network(&z);
		return 0;
	case 5:
		read_name(&z);
		return 0;
	default:
		break;
	}
	text = malloc(z.len + 1);
	CHECK(text);
	memcpy(text, z.at, z.len);
	text[z.len] = '\0';
	if (what % 4 == 0)
		read_mounts(text);
	else if (what % 4 == 1)
		read_own(text);
	else
		read_values(text);
	free(text);
	return 0;
}
