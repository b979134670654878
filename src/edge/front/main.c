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
#define STORE_FD   5 /* a file without a name, or /dev/null */

/* The supervisor sends HELLO right after the start; this is for a machine in trouble. */
#define HELLO_MS 30000

static void ignore_signals(void)
{
	static const int ignored[] = { SIGPIPE, SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
}

static int await(enum msg_type type, struct msg *ret, struct fault *f)
{
	struct pollfd p = { .fd = CHANNEL_FD, .events = POLLIN };
	const char *rule = NULL;
	int r;

	do
		r = poll(&p, 1, HELLO_MS);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return fault_set(f, r < 0 ? -errno : -ETIMEDOUT, "wait for settings");
	r = channel_recv(CHANNEL_FD, ROLE_SUPERVISOR, ROLE_CLIENT, ret, &rule);
	if (r <= 0)
		return fault_set(f, r < 0 ? r : -EPIPE, "receive settings%s%s", rule ? ": " : "",
			rule ? rule : "");
	msg_done(ret);
	if (ret->type != type)
		return fault_say(
			f, -EPROTO, "%s came before %s", msg_name(ret->type), msg_name(type));
	return 0;
}

/* HELLO, and the OFFERs that follow it. */
static int await_hello(struct msg_hello *ret, struct offers *ret_offers, struct fault *f)
{
	static struct msg m; /* static: too large for a careful stack */
	const char *rule;
	int r = await(MSG_HELLO, &m, f);

	if (r < 0)
		return r;
	*ret = m.as.HELLO;
	if (ret->languages > LANGUAGES_MAX)
		return fault_say(f, -EPROTO, "too many languages");
	for (uint32_t i = 0; i < ret->languages; i++) {
		r = await(MSG_OFFER, &m, f);
		if (r < 0)
			return r;
		rule = offers_put(ret_offers, i, m.as.OFFER.edition, &m.as.OFFER.offer);
		if (rule)
			return fault_say(f, -EPROTO, "%s", rule);
	}
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
	struct front_plan plan = {
		.channel_fd = CHANNEL_FD, .listen_fd = LISTEN_FD, .store_fd = STORE_FD
	};
	struct confine_plan confined = { .filter = CONFINE_FRONT };
	static struct offers offers;
	struct msg_hello hello;
	struct front *fr;
	int r;

	r = await_hello(&hello, &offers, f);
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

	/* Files are what is kept of runs, and the code with what goes in beside it, in memory. */
	confined.file_bytes = front_file_bytes(&hello.settings);
	confined.uid = hello.settings.uid_base;
	confined.open_files = front_open_files(&hello.settings);
	r = confine(&confined, f);
	if (r < 0)
		return fault_wrap(f, "confine");

	plan.base = base;
	plan.hello = &hello;
	plan.offers = &offers;
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
	(void)close_range(STORE_FD + 1, ~0u, 0);
	r = serve(&f);
	if (r < 0) {
		log_err("front", "why=%s", LQ(f.text));
		return 1;
	}
	log_info("stop", "status=%d", r);
	return r;
}
