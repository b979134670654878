#include "priv/supervisor/front.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "wire/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG     1024
#define LOG_PIECE   4096
#define LAST_WORDS  (64 * 1024) /* what the pipe holds */
#define SOCKET_MODE 0660        /* a Unix socket: root and its group; the operator may widen it */

void front_clear(struct front *fr)
{
	*fr = (struct front){
		.listen_fd = -1, .channel_fd = -1, .log_fd = -1, .log = { .from = "front" }
	};
	process_clear(&fr->process);
}

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

static socklen_t fill_address(const struct listen_address *a, union address *ret)
{
	memset(ret, 0, sizeof(*ret));
	switch ((enum listen_kind)a->kind) {
	case LISTEN_INET:
		ret->in.sin_family = AF_INET;
		ret->in.sin_port = htons((uint16_t)a->port);
		memcpy(&ret->in.sin_addr, a->ip, 4);
		return sizeof(ret->in);
	case LISTEN_INET6:
		ret->in6.sin6_family = AF_INET6;
		ret->in6.sin6_port = htons((uint16_t)a->port);
		memcpy(&ret->in6.sin6_addr, a->ip, 16);
		return sizeof(ret->in6);
	case LISTEN_UNIX:
	default:
		ret->un.sun_family = AF_UNIX;
		memcpy(ret->un.sun_path, a->path, sizeof(ret->un.sun_path));
		return sizeof(ret->un);
	}
}

/* A socket file that nobody listens on any more is in the way; anything else is left. */
static void remove_stale(const union address *a, socklen_t len)
{
	cleanup_fd int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (probe < 0 || lstat(a->un.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	if (connect(probe, &a->any, len) < 0 && errno == ECONNREFUSED)
		(void)unlink(a->un.sun_path);
}

static int prepare(int fd, const struct listen_address *a, const union address *sa, socklen_t len)
{
	const int on = 1;

	if (a->kind == LISTEN_UNIX)
		remove_stale(sa, len);
	else
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->kind == LISTEN_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	return bind(fd, &sa->any, len) < 0 ? -errno : 0;
}

/* Once it is bound. *ret_bound: to what. */
static int open_up(int fd, const struct listen_address *a, union address *ret_bound)
{
	socklen_t len = sizeof(*ret_bound);

	if (a->kind == LISTEN_UNIX && chmod(a->path, SOCKET_MODE) < 0)
		return -errno;
	if (listen(fd, BACKLOG) < 0 || getsockname(fd, &ret_bound->any, &len) < 0)
		return -errno;
	return 0;
}

int front_listen(struct front *fr, const struct settings *s, struct fault *f)
{
	union address a, bound = { 0 };
	socklen_t len = fill_address(&s->listen, &a);
	cleanup_fd int fd = -1;
	char url[160];
	int r;

	fr->port = s->listen.port;
	front_url(fr, s, url, sizeof(url));
	/* settings_fault() has let nothing else pass (boot.c). */
	CHECK(s->insecure || listen_is_local(&s->listen));
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fault_set(f, -errno, "socket for %s", url);
	r = prepare(fd, &s->listen, &a, len);
	if (r == -EADDRINUSE)
		return fault_say(f, r,
			"listen on %s: something else listens there; --listen ADDR:PORT, as "
			"127.0.0.1:8001, or unix:PATH takes another address",
			url);
	if (r < 0)
		return fault_set(f, r, "listen on %s", url);
	r = open_up(fd, &s->listen, &bound);
	if (r < 0) {
		if (s->listen.kind == LISTEN_UNIX)
			(void)unlink(s->listen.path); /* nobody will listen there */
		return fault_set(f, r, "listen on %s", url);
	}
	if (s->listen.kind == LISTEN_INET)
		fr->port = ntohs(bound.in.sin_port);
	else if (s->listen.kind == LISTEN_INET6)
		fr->port = ntohs(bound.in6.sin6_port);
	fr->listen_fd = take_fd(&fd);
	return 0;
}

/* A file without a name on the disk where runs' files are kept: new for each front, and gone with
 * it. *ret stays -1 when none is wanted, or there can be none: that front keeps none. A negative
 * errno: there will be one in a moment, and no front should be without for that. */
static int open_store(const struct settings *s, int *ret, struct fault *f)
{
	char path[SETTING_TEXT_MAX + 32];
	int fd;

	if (s->artifact_store == 0)
		return 0;
	fd = sys.openat(AT_FDCWD, s->artifact_dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -EOPNOTSUPP || fd == -EISDIR) {
		(void)snprintf(path, sizeof(path), "%s/glovebox-XXXXXX", s->artifact_dir);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			(void)unlink(path);
		else
			fd = -errno;
	}
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		return fault_set(f, fd, "front: a file in %s", s->artifact_dir);
	if (fd < 0)
		log_warn("artifacts", "dir=%s why=\"%s\"", LQ(s->artifact_dir),
			strerrordesc_np(-fd));
	else
		*ret = fd;
	return 0;
}

int front_start(struct front *fr, int self_fd, const struct settings *s, struct fault *f)
{
	cleanup_fd int ours = -1, theirs = -1, log_r = -1, log_w = -1, store = -1;
	struct process_plan plan = {
		.image_fd = self_fd,
		.argv = { "glovebox", "@front", NULL },
		.nfds = 3,
		.out_fd = -1,
		.pidns_of = -1,
		.cgroup_fd = -1,
		.new_session = 1,
	};
	int pair[2], r = channel_pair(pair, 1);

	if (r < 0)
		return fault_set(f, r, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	r = sys.pipe2(pair, O_CLOEXEC | O_NONBLOCK);
	if (r < 0)
		return fault_set(f, r, "pipe");
	log_r = pair[0];
	log_w = pair[1];
	plan.err_fd = log_w;
	plan.fds[0] = theirs;
	plan.fds[1] = fr->listen_fd;
	r = open_store(s, &store, f);
	if (r < 0)
		return r;
	plan.fds[2] = store;
	r = process_spawn(&plan, &fr->process, f);
	if (r == 0)
		r = process_release(&fr->process, f);
	if (r < 0) {
		if (fr->process.pid > 0)
			front_end(fr); /* it is there, held, and nobody would await it */
		return fault_wrap(f, "front");
	}
	fr->channel_fd = take_fd(&ours);
	fr->log_fd = take_fd(&log_r);
	fr->starts++;
	return 0;
}

bool front_relay_log(struct front *fr)
{
	char bytes[LOG_PIECE];
	ssize_t n = read(fr->log_fd, bytes, sizeof(bytes));

	if (n > 0)
		log_relay(&fr->log, clock_ns(), bytes, (size_t)n);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void front_end(struct front *fr)
{
	struct rusage usage;
	int status;

	process_kill(&fr->process);
	while (process_reap(&fr->process, &status, &usage) == 0) {
		struct pollfd p = { .fd = fr->process.pidfd, .events = POLLIN };

		(void)sys.poll(&p, 1, -1);
	}
	for (int left = fr->log_fd >= 0 ? LAST_WORDS / LOG_PIECE : 0; left > 0; left--)
		if (!front_relay_log(fr))
			break;
	log_relay_end(&fr->log, clock_ns());
	process_close(&fr->process);
	drop_fd(&fr->channel_fd);
	drop_fd(&fr->log_fd);
}

void front_unlisten(struct front *fr, const struct settings *s)
{
	/* First the name: it must never be another server's. */
	if (fr->listen_fd >= 0 && s->listen.kind == LISTEN_UNIX)
		(void)unlink(s->listen.path);
	drop_fd(&fr->listen_fd);
}

void front_url(const struct front *fr, const struct settings *s, char *ret, size_t room)
{
	char host[INET6_ADDRSTRLEN] = "";

	if (s->listen.kind == LISTEN_UNIX) {
		(void)snprintf(ret, room, "unix:%s", s->listen.path);
		return;
	}
	(void)inet_ntop(s->listen.kind == LISTEN_INET ? AF_INET : AF_INET6, s->listen.ip, host,
		sizeof(host));
	(void)snprintf(ret, room, s->listen.kind == LISTEN_INET ? "http://%s:%u" : "http://[%s]:%u",
		host, fr->port);
}

void front_print_banner(const struct front *fr, const struct settings *s)
{
	char url[160];

	front_url(fr, s, url, sizeof(url));
	(void)printf("Glovebox is listening on %s\n", url);
	if (s->listen.kind == LISTEN_UNIX)
		(void)printf(
			"Try:  curl --unix-socket %s http://localhost/execute -H 'Content-Type: "
			"application/json' -d '{\"code\": \"print(6 * 7)\"}'\n",
			s->listen.path);
	else
		(void)printf("Try:  curl %s/execute -H 'Content-Type: application/json' -d "
			     "'{\"code\": \"print(6 * 7)\"}'\n",
			url);
	(void)fflush(stdout);
}
