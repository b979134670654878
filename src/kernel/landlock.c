#include "kernel/landlock.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Everything of <linux/landlock.h> that is used here: the header of an older distribution
 * has less of it than the kernel that it may run on. */
#define RIGHT(n) (UINT64_C(1) << (n))

enum {
	CREATE_RULESET_VERSION = 1,
	RULE_PATH_BENEATH = 1,
	LOG_SAME_EXEC_OFF = 1 << 0,
	LOG_SUBDOMAINS_OFF = 1 << 2
};

#define FS_EXECUTE    RIGHT(0)
#define FS_WRITE_FILE RIGHT(1)
#define FS_READ_FILE  RIGHT(2)
#define FS_READ_DIR   RIGHT(3)
#define FS_MAKE_CHAR  RIGHT(6)
#define FS_MAKE_BLOCK RIGHT(11)
#define FS_ABI_1      (RIGHT(13) - 1)
#define FS_REFER      RIGHT(13) /* ABI 2 */
#define FS_TRUNCATE   RIGHT(14) /* ABI 3 */
#define FS_IOCTL_DEV  RIGHT(15) /* ABI 5 */

#define NET_BIND_TCP    RIGHT(0) /* ABI 4 */
#define NET_CONNECT_TCP RIGHT(1)

#define SCOPE_ABSTRACT_UNIX_SOCKET RIGHT(0) /* ABI 6 */
#define SCOPE_SIGNAL               RIGHT(1)

/* A kernel that knows only the beginning takes it all as long as the rest is zero. */
struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};

struct path_attr {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

/* Where a cell's program may do what, beyond reading and executing. */
struct place {
	const char *path;
	uint64_t allowed;
};

/* Directories, files, links, sockets, FIFOs: everything but device nodes. */
#define FS_USE_AND_MAKE \
	((FS_ABI_1 & ~(FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_EXECUTE)) | FS_REFER | FS_TRUNCATE)

static const struct place places[] = {
	{ "/", FS_EXECUTE | FS_READ_FILE | FS_READ_DIR }, { "/workspace", FS_USE_AND_MAKE },
	{ "/tmp", FS_USE_AND_MAKE }, { "/dev/shm", FS_USE_AND_MAKE },
	{ "/dev", FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV },
	{ "/build", FS_USE_AND_MAKE }, /* of a compiler only: the last one */
};

static int create_ruleset(const struct ruleset_attr *attr, size_t size, unsigned flags)
{
	long r = syscall(SYS_landlock_create_ruleset, attr, size, flags);

	return r < 0 ? -errno : (int)r;
}

static int add_rule(int ruleset_fd, const struct path_attr *attr)
{
	return syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, attr, 0) < 0 ? -errno
											  : 0;
}

int landlock_abi(void)
{
	int r = create_ruleset(NULL, 0, CREATE_RULESET_VERSION);

	return r < 0 ? 0 : r;
}

/* All file-system rights that ABI `abi` knows. What a later one adds (pathname sockets)
 * stays unhandled until it has been tried. */
static uint64_t fs_rights(int abi)
{
	return FS_ABI_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
	       (abi >= 5 ? FS_IOCTL_DEV : 0);
}

static int open_ruleset(int abi, uint64_t net, struct fault *f)
{
	struct ruleset_attr attr = {
		.handled_fs = fs_rights(abi),
		.handled_net = abi >= 4 ? net : 0,
		.scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0,
	};
	int fd = create_ruleset(&attr, sizeof(attr), 0);

	return fd < 0 ? fault_set(f, fd, "landlock: create the rule set") : fd;
}

static int allow(int ruleset_fd, const struct place *p, uint64_t handled, struct fault *f)
{
	cleanup_fd int fd = sys.openat(AT_FDCWD, p->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	struct path_attr attr = { .allowed = p->allowed & handled, .parent_fd = fd };
	int r;

	if (fd < 0)
		return fault_set(f, fd, "landlock: open %s", p->path);
	r = add_rule(ruleset_fd, &attr);
	return r < 0 ? fault_set(f, r, "landlock: rule for %s", p->path) : 0;
}

static int restrict_self(int ruleset_fd, int abi, struct fault *f)
{
	/* Refusals are the daily bread of a cell: the host's audit log is not for them. */
	unsigned flags = abi >= 7 ? LOG_SAME_EXEC_OFF | LOG_SUBDOMAINS_OFF : 0;

	if (syscall(SYS_landlock_restrict_self, ruleset_fd, flags) < 0)
		return fault_set(f, -errno, "landlock: restrict self");
	return 0;
}

int landlock_deny_all(int readable_fd, bool connects, struct fault *f)
{
	cleanup_fd int fd = -1;
	int abi = landlock_abi();

	if (abi == 0)
		return fault_set(f, -EOPNOTSUPP, "landlock");
	fd = open_ruleset(abi, NET_BIND_TCP | (connects ? 0 : NET_CONNECT_TCP), f);
	if (fd < 0)
		return fd;
	if (readable_fd > 0) {
		const struct path_attr attr = { .allowed = FS_READ_FILE | FS_READ_DIR,
			.parent_fd = readable_fd };
		int r = add_rule(fd, &attr);

		if (r < 0)
			return fault_set(f, r, "landlock: rule for the readable directory");
	}
	return restrict_self(fd, abi, f);
}

int landlock_cell(bool builds, struct fault *f)
{
	cleanup_fd int fd = -1;
	int abi = landlock_abi();

	if (abi < 2)
		return fault_set(f, -EOPNOTSUPP, "landlock");
	fd = open_ruleset(abi, 0, f);
	if (fd < 0)
		return fd;
	for (size_t i = 0; i < ARRAY_LEN(places) - !builds; i++) {
		int r = allow(fd, &places[i], fs_rights(abi), f);

		if (r < 0)
			return r;
	}
	return restrict_self(fd, abi, f);
}
