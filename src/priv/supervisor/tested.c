#include "priv/supervisor/tested.h"

#include "base/build_id.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(SELFTEST_BUILD_MAX == BUILD_ID_BYTES, "a build id fits");

void tested_clear(struct tested *t)
{
	*t = (struct tested){ .watch_fd = -1 };
}

/* A file that only root can have written, of exactly that size. */
static int read_record(struct selftest_record *ret)
{
	cleanup_fd int fd = open(SELFTEST_DIR "/" SELFTEST_FILE,
		O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022))
		return -EPERM;
	if (st.st_size != sizeof(*ret))
		return -EPROTO;
	return io_read_all(fd, ret, sizeof(*ret)) == sizeof(*ret) ? 0 : -EIO;
}

static void take(struct tested *t)
{
	uint8_t own[BUILD_ID_BYTES];
	struct msg_selftest m = { 0 };
	int r = read_record(&m.record);
	const char *rule = r == 0 ? selftest_record_fault(&m.record) : strerrordesc_np(-r);

	t->last = (struct msg_selftest){ 0 };
	if (r == -ENOENT)
		return;
	if (rule) {
		log_warn("selftest", "why=\"the last result is not believed: %s\"", rule);
		return;
	}
	build_id(own);
	m.known = 1;
	m.this_build = memcmp(own, m.record.build, sizeof(own)) == 0;
	t->last = m;
}

void tested_open(struct tested *t)
{
	t->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	/* A result comes by rename(), and nothing else in there does. */
	if (t->watch_fd < 0 || inotify_add_watch(t->watch_fd, SELFTEST_DIR, IN_MOVED_TO) < 0) {
		log_warn("selftest", "why=\"no watch for results: %s\"", strerrordesc_np(errno));
		drop_fd(&t->watch_fd);
	}
	take(t); /* after that, so that none is missed */
}

bool tested_look(struct tested *t)
{
	struct msg_selftest before = t->last;
	char events[1024];

	while (read(t->watch_fd, events, sizeof(events)) > 0)
		continue;
	take(t);
	return memcmp(&before, &t->last, sizeof(before)) != 0;
}
