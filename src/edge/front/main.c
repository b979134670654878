/* The front process. It is started by the supervisor with an empty environment, takes
 * its settings from the first message, gets what must be got from the file system, gives
 * everything up, and only then touches what clients send.
 *
 * Not handled here on purpose: SIGTERM and SIGINT. Both reach the whole process group or
 * cgroup; it is the supervisor that turns them into DRAIN, and this process must live to
 * answer. When the supervisor dies the channel ends, and so does this process.
 */
#include "edge/front/main.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "edge/front/front.h"
#include "kernel/confine.h"
#include "wire/channel.h"

#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define CHANNEL_FD 3
#define LISTEN_FD  4

/* The supervisor sends HELLO right after the start; this is for a machine in trouble. */
#define HELLO_MS 30000

static void ignore_signals(void)
{
	static const int ignored[] = { SIGPIPE, SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
}

static int await_hello(struct msg_hello *ret, struct fault *f)
{
	struct pollfd p = { .fd = CHANNEL_FD, .events = POLLIN };
	const char *rule = NULL;
	struct msg m;
	int r;

	do
		r = poll(&p, 1, HELLO_MS);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return fault_set(f, r < 0 ? -errno : -ETIMEDOUT, "wait for settings");
	r = channel_recv(CHANNEL_FD, ROLE_SUPERVISOR, ROLE_CLIENT, &m, &rule);
	if (r <= 0)
		return fault_set(f, r < 0 ? r : -EPIPE, "receive settings%s%s", rule ? ": " : "",
			rule ? rule : "");
	msg_done(&m);
	if (m.type != MSG_HELLO)
		return fault_say(f, -EPROTO, "%s came before HELLO", msg_name(m.type));
	*ret = m.as.HELLO;
	return 0;
}

static void free_base(struct event_base **base)
{
	if (*base)
		event_base_free(*base);
}

static int serve(struct fault *f)
{
	CLEANUP(free_base) struct event_base *base = NULL;
	struct front_plan plan = { .channel_fd = CHANNEL_FD, .listen_fd = LISTEN_FD };
	struct confine_plan confined = { .filter = CONFINE_FRONT };
	struct msg_hello hello;
	struct front *fr;
	int r;

	r = await_hello(&hello, f);
	if (r < 0)
		return r;
	log_setup("front", (enum log_level)hello.settings.log_level);

	/* Before the confinement: epoll is made, libevent looks at its clocks; jansson
	 * seeds its hash tables from /dev/urandom. The log line above all else reads the
	 * time zone, once, for all lines to come. */
	log_info("start", "uid=%u", hello.settings.uid_base);
	base = event_base_new();
	if (!base)
		return fault_set(f, -ENOMEM, "event loop");
	json_object_seed(0);

	/* No limit on the size of files: the code is one, in memory. */
	confined.uid = hello.settings.uid_base;
	confined.open_files = front_open_files(&hello.settings);
	r = confine(&confined, f);
	if (r < 0)
		return fault_wrap(f, "confine");

	plan.base = base;
	plan.hello = &hello;
	fr = front_create(&plan, f);
	if (!fr)
		return f->code;
	r = front_run(fr);
	front_destroy(fr);
	return r;
}

int role_front(void)
{
	struct fault f = { 0 };
	int r;

	log_setup("front", LOG_LEVEL_INFO);
	ignore_signals();
	/* Whatever else came along was not meant for a process that strangers talk to. */
	(void)close_range(LISTEN_FD + 1, ~0u, 0);
	r = serve(&f);
	if (r < 0) {
		log_err("front", "why=%s", LQ(f.text));
		return 1;
	}
	log_info("stop", "status=%d", r);
	return r;
}
