#include "caller/lib/overrides.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "caller/lib/manifests.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

static int write_record(int fd, const char *record, struct fault *f)
{
	int r;

	if (!strchr(record, '='))
		return fault_say(f, -EINVAL, "setting \"%.64s\" has no \"=\"", record);
	r = io_write_all(fd, record, strlen(record) + 1);
	return r < 0 ? fault_set(f, r, "write settings") : 0;
}

int overrides_make(const char *first, const char *const *records, const char *runtimes, int *ret_fd,
	struct fault *f)
{
	cleanup_fd int fd = memfd_create("overrides", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = 0;

	if (fd < 0)
		return fault_set(f, -errno, "memfd for settings");
	if (first)
		r = write_record(fd, first, f);
	for (; r == 0 && records && *records; records++)
		r = write_record(fd, *records, f);
	if (r == 0)
		r = manifests_write(fd, runtimes, f);
	if (r < 0)
		return r;
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : io_seal(fd);
	if (r < 0)
		return fault_set(f, r, "seal settings");
	*ret_fd = take_fd(&fd);
	return 0;
}

int overrides_open_file(const char *path, int *ret_fd, struct fault *f)
{
	const char *name = path ? path : CONFIG_FILE_DEFAULT;
	int fd;

	if (path && !*path)
		name = "/dev/null";
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT && !path)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fault_set(f, -errno, "config file %.100s", name);
	*ret_fd = fd;
	return 0;
}
