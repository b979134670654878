#include "kernel/remap.h"

#include "base/fault.h"
#include "kernel/sys.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int copy(int fd, off_t at, const struct remap_range *r)
{
	size_t len = r->end - r->start, done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, (const char *)r->start + done, len - done, at + (off_t)done);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* Between the copy and the mapping nothing may be written: no call here allocates or has a
 * state of its own. */
static int replace(int fd, off_t at, const struct remap_range *r, struct fault *f)
{
	void *where = (void *)r->start;
	size_t len = r->end - r->start;
	int err = copy(fd, at, r);

	if (err < 0)
		return fault_set(f, err, "copy %zu bytes of memory", len);
	if (mmap(where, len, PROT_READ | (r->read_only ? 0 : PROT_WRITE), MAP_PRIVATE | MAP_FIXED,
		    fd, at) == MAP_FAILED)
		return fault_set(f, -errno, "map %zu bytes in place", len);
	/* What is mapped here is mapped in every child, without a fault. Before 5.14 it is
	 * not; that costs time and nothing else. */
	(void)madvise(where, len, MADV_POPULATE_READ);
	return 0;
}

int remap_onto_file(int fd, const struct remap_range *ranges, unsigned count, struct fault *f)
{
	off_t total = 0, at = 0;
	int r;

	for (unsigned i = 0; i < count; i++)
		total += (off_t)(ranges[i].end - ranges[i].start);
	/* First its size: large pages are used only below the end of a file. */
	r = sys.ftruncate(fd, total);
	if (r < 0)
		return fault_set(f, r, "size of the file");
	for (unsigned i = 0; i < count; i++) {
		r = replace(fd, at, &ranges[i], f);
		if (r < 0)
			return r;
		at += (off_t)(ranges[i].end - ranges[i].start);
	}
	return 0;
}
