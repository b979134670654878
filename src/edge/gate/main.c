/* The gate: one for each run that has a network, between the cell's interface and the world. It gets
 * what must be got from the host, gives everything up but its network namespace, and only then
 * touches what programs and resolvers send. When the cell or the supervisor is gone, it ends.
 */
#include "base/fault.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "edge/gate/lookups.h"
#include "edge/gate/rules.h"
#include "edge/gate/special.h"
#include "edge/gate/stack.h"
#include "kernel/confine.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CHANNEL_FD 3

#define RESOLV_CONF           "/etc/resolv.conf"
#define RESOLV_CONF_BYTES_MAX 4096u

struct host {
	struct rules_own own[RULES_OWN_MAX];
	unsigned own_count;
	char resolv_conf[RESOLV_CONF_BYTES_MAX];
	size_t resolv_conf_len;
};

static bool address_of(const struct sockaddr *a, struct network_address *ret)
{
	if (a && a->sa_family == AF_INET) {
		*ret = (struct network_address){ { [10] = 0xff, [11] = 0xff } };
		memcpy(ret->bytes + 12, &((const struct sockaddr_in *)(const void *)a)->sin_addr,
			4);
		return true;
	}
	if (a && a->sa_family == AF_INET6) {
		memcpy(ret->bytes, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
		return true;
	}
	return false;
}

/* The bits of the network that an address is in, however few; all, where it has none. */
static uint8_t bits_of(const struct network_address *a, const struct sockaddr *netmask)
{
	struct network_address mask;
	uint8_t bits = network_is_ipv4(a) ? NETWORK_MAPPED_BITS : 0;

	if (!address_of(netmask, &mask))
		return 128;
	while (bits < 128 && mask.bytes[bits / 8] & (0x80u >> bits % 8))
		bits++;
	return bits;
}

/* The machine's own addresses: whoever connects to one has arrived without leaving it. And their
 * networks: who is there trusts the machine as a neighbour, whatever its address. */
static int look_at_interfaces(struct host *ret, struct fault *f)
{
	struct ifaddrs *all;

	if (getifaddrs(&all) < 0)
		return fault_set(f, -errno, "the machine's addresses");
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct network_address a;

		/* Those of the loopback are known without being looked at. */
		if (!address_of(i->ifa_addr, &a) || network_special(&a) == NETWORK_LOOPBACK)
			continue;
		if (ret->own_count == RULES_OWN_MAX) {
			freeifaddrs(all);
			return fault_say(f, -E2BIG,
				"the machine has more than %u addresses: not all could be "
				"denied",
				RULES_OWN_MAX);
		}
		ret->own[ret->own_count++] = (struct rules_own){ a, bits_of(&a, i->ifa_netmask) };
	}
	freeifaddrs(all);
	return 0;
}

/* Its text; what it says is looked at when nothing is left to lose. Without one there is no resolver. */
static int look_at_resolvers(struct host *ret, struct fault *f)
{
	cleanup_fd int fd = open(RESOLV_CONF, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? 0 : fault_set(f, -errno, "open " RESOLV_CONF);
	n = io_read_all(fd, ret->resolv_conf, sizeof(ret->resolv_conf));
	if (n < 0)
		return fault_set(f, (int)n, "read " RESOLV_CONF);
	ret->resolv_conf_len =
		(size_t)n < sizeof(ret->resolv_conf) ? (size_t)n : sizeof(ret->resolv_conf);
	return 0;
}

static int receive(struct msg *ret, struct fault *f)
{
	const char *rule = "";
	int r = channel_recv(CHANNEL_FD, ROLE_SUPERVISOR, ROLE_GATE, ret, &rule);

	return r <= 0 ? fault_set(f, r < 0 ? r : -EPIPE, "receive what to do") : 0;
}

/* Into its group of each v1 hierarchy, as a cell's processes go there (wire/cell.h); then its work. */
static int await_order(struct msg *ret, struct fault *f)
{
	int r = receive(ret, f);

	while (r == 0 && ret->type == MSG_GATE_JOIN) {
		r = io_write_all(ret->fds[0], "0", 1);
		msg_done(ret);
		r = r < 0 ? fault_set(f, r, "join a group") : receive(ret, f);
	}
	return r;
}

static int open_memory(int fd, struct network_memory **ret, struct fault *f)
{
	void *at = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return fault_set(f, -errno, "map the record");
	*ret = at;
	return 0;
}

/* Into a copy: who shares the memory could change it while it is looked at. */
static int read_policy(const struct network_policy *shared, const char *whose,
	struct network_policy *ret, struct fault *f)
{
	const char *rule;

	memcpy(ret, shared, sizeof(*ret));
	rule = network_policy_fault(ret);
	return rule ? fault_say(f, -EPROTO, "the %s's policy: %s", whose, rule) : 0;
}

/* The operator's, which is sealed. */
static int read_ceiling(int fd, struct network_policy *ret, struct fault *f)
{
	void *at = mmap(NULL, sizeof(*ret), PROT_READ, MAP_PRIVATE, fd, 0);
	int r;

	if (at == MAP_FAILED)
		return fault_set(f, -errno, "map the operator's policy");
	r = read_policy(at, "operator", ret, f);
	(void)munmap(at, sizeof(*ret));
	return r;
}

static int carry(const struct msg *m, const struct host *host, struct fault *f)
{
	static struct network_policy ceiling, asked;
	struct network_address servers[LOOKUPS_SERVERS_MAX];
	struct network_memory *memory = NULL;
	struct stack_plan plan = {
		.tun_fd = m->fds[0],
		.channel_fd = CHANNEL_FD,
		.ceiling = &ceiling,
		.asked = &asked,
		.servers = servers,
		.own = host->own,
		.own_count = host->own_count,
	};
	struct stack *s;
	int r = open_memory(m->fds[1], &memory, f);

	if (r == 0)
		r = read_policy(&memory->asked, "request", &asked, f);
	if (r == 0)
		r = read_ceiling(m->fds[2], &ceiling, f);
	if (r < 0)
		return r;
	plan.shared = &memory->record;
	plan.server_count = lookups_read_servers(host->resolv_conf, host->resolv_conf_len, servers);
	s = stack_open(&plan, f);
	if (!s)
		return f->code;
	return stack_run(s, f);
}

static int run(struct fault *f)
{
	static struct host host;
	static struct msg m;
	struct confine_plan plan = {
		.filter = CONFINE_GATE,
		.open_files = STACK_FILES_MAX,
		.forbid_new_files = 1,
		.keeps_network = 1,
	};
	int r = await_order(&m, f);

	if (r == 0)
		r = look_at_interfaces(&host, f);
	if (r == 0)
		r = look_at_resolvers(&host, f);
	if (r < 0)
		return r;
	plan.uid = m.as.GATE.uid;
	r = confine(&plan, f);
	return r < 0 ? r : carry(&m, &host, f);
}

int main(void)
{
	struct fault f = { 0 };

	log_setup("gate", LOG_LEVEL_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	/* confine() keeps it; if the supervisor has died before, the channel is closed. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (run(&f) == 0)
		return 0;
	(void)channel_send(CHANNEL_FD, MSG_GATE_BAD, &(struct msg_broken){ .fault = f }, NULL);
	return 1;
}
