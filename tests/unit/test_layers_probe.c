/* What is found out about a host that has all of it, and about one that lacks something: the
 * answers of the kernel are ours (-Wl,--wrap), so that every host can be asked. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "kernel/sys.h"
#include "priv/launch/cell.h"
#include "priv/supervisor/layers.h"
#include "tests/unit/api_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int __wrap_process_try_namespaces(uint64_t namespaces);
int __wrap_landlock_abi(void);
ssize_t __wrap_io_read_text(int dir_fd, const char *path, char *text, size_t room);
int __wrap_faccessat(int dir_fd, const char *path, int mode, int flags);
int __wrap_cell_create(struct cell *c, const struct cell_factory *factory, uint32_t slot,
	uint64_t id, struct fault *f);
int __wrap_cell_hear(struct cell *c, const struct cell_factory *factory);
void __wrap_cell_kill(struct cell *c);
bool __wrap_cell_is_empty(struct cell *c);
bool __wrap_cell_remove(struct cell *c, const struct cell_factory *factory);
uint64_t __wrap_clock_ns(void);
uint64_t __real_clock_ns(void);

static struct {
	uint64_t no_namespace;
	int abi;
	const char *core_pattern, *swaps; /* NULL: no such file */
	bool many_swaps;
	bool cgroup_kill;
	int limit_fails;
	rlim_t files;
	int create_fails, hear_fails, speaks;
	bool never_empty;
	unsigned killed, removed;
	uint64_t skipped_ns;
} host;

static struct sys_ops real;
static struct layers l;
static const struct cell_factory factory;

int __wrap_process_try_namespaces(uint64_t namespaces)
{
	return namespaces == host.no_namespace ? -EPERM : 0;
}

int __wrap_landlock_abi(void)
{
	return host.abi;
}

ssize_t __wrap_io_read_text(int dir_fd, const char *path, char *text, size_t room)
{
	const char *from = strcmp(path, "/proc/swaps") == 0 ? host.swaps : host.core_pattern;

	(void)dir_fd;
	if (host.many_swaps)
		return -EFBIG;
	if (!from)
		return -ENOENT;
	(void)snprintf(text, room, "%s", from);
	return (ssize_t)strlen(text);
}

int __wrap_faccessat(int dir_fd, const char *path, int mode, int flags)
{
	(void)dir_fd;
	(void)flags;
	assert_string_equal(path, "cgroup.kill");
	assert_int_equal(mode, W_OK);
	errno = ENOENT;
	return host.cgroup_kill ? 0 : -1;
}

int __wrap_cell_create(struct cell *c, const struct cell_factory *with, uint32_t slot, uint64_t id,
	struct fault *f)
{
	(void)with;
	(void)slot;
	(void)id;
	c->init_channel = c->main_channel = c->leaf.events_fd = -1;
	c->state = CELL_BUILDING;
	return host.create_fails ? fault_set(f, host.create_fails, "cell c0: mounts: overlay") : 0;
}

int __wrap_cell_hear(struct cell *c, const struct cell_factory *with)
{
	(void)with;
	if (host.hear_fails)
		return fault_set(&c->fault, host.hear_fails, "cell c0: init: pivot: pivot_root");
	c->state = c->state == CELL_BUILDING ? CELL_ENTERING : CELL_READY;
	return 0;
}

void __wrap_cell_kill(struct cell *c)
{
	(void)c;
	host.killed++;
}

bool __wrap_cell_is_empty(struct cell *c)
{
	(void)c;
	host.skipped_ns += NS_PER_S;
	return !host.never_empty;
}

bool __wrap_cell_remove(struct cell *c, const struct cell_factory *with)
{
	(void)c;
	(void)with;
	return ++host.removed > 1; /* a leaf is busy a moment longer */
}

uint64_t __wrap_clock_ns(void)
{
	return __real_clock_ns() + host.skipped_ns;
}

static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	(void)fds;
	(void)count;
	(void)timeout_ms;
	return host.speaks;
}

static int fake_prlimit(pid_t pid, int resource, const struct rlimit *set, struct rlimit *ret)
{
	(void)pid;
	assert_int_equal(resource, RLIMIT_NOFILE);
	assert_null(set);
	*ret = (struct rlimit){ host.files, host.files };
	return host.limit_fails;
}

static int begin(void **state)
{
	(void)state;
	log_setup("test", LOG_LEVEL_ERR);
	memset(&host, 0, sizeof(host));
	memset(&l, 0, sizeof(l));
	host.abi = 7;
	host.core_pattern = "core\n";
	host.swaps = "Filename\t\t\t\tType\n";
	host.cgroup_kill = true;
	host.files = 1 << 20;
	host.speaks = 1;
	real = sys;
	sys.poll = fake_poll;
	sys.prlimit = fake_prlimit;
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	return 0;
}

static bool is_in_force(enum layer layer)
{
	return l.tried & l.in_force & LAYER_BIT(layer);
}

/* It was tried, and what is said about it has these words. */
static void is_missing(enum layer layer, const char *words)
{
	assert_true(l.tried & LAYER_BIT(layer));
	assert_false(l.in_force & LAYER_BIT(layer));
	if (!strstr(l.why[layer].text, words))
		fail_msg("%s: %s", layer_word(layer), l.why[layer].text);
}

static void look(void)
{
	struct settings s = api_settings;

	layers_probe_kernel(&l, &s);
}

static void a_host_that_has_everything_is_found_to_have_it(void **state)
{
	struct cgroup_tree t = { .swap_accounting = true };

	(void)state;
	look();
	layers_probe_cgroups(&l, &t);
	assert_int_equal(layers_probe_cell(&l, &factory), 0);
	assert_int_equal(host.killed, 1);
	assert_int_equal(host.removed, 2);
	l.in_force |= LAYER_BIT(LAYER_CAPS);
	for (unsigned i = 0; i < LAYER_MAX; i++)
		if (!(l.in_force & LAYER_BIT(i)))
			fail_msg("%s: %s", layer_word(i), l.why[i].text);
	assert_false(l.core_pattern_piped);
}

static void what_the_kernel_refuses_is_missing(void **state)
{
	(void)state;
	host.no_namespace = UINT64_C(0x20000000); /* CLONE_NEWPID */
	host.abi = 0;
	look();
	is_missing(LAYER_PID_NS, "clone(CLONE_NEWPID): Operation not permitted");
	is_missing(LAYER_LANDLOCK, "landlock_create_ruleset");
	assert_true(is_in_force(LAYER_USER_NS));
}

static void too_few_files_are_said_with_their_number(void **state)
{
	(void)state;
	host.files = 255;
	look();
	is_missing(LAYER_RLIMITS, "open files is 255");
	host.limit_fails = -EPERM;
	look();
	is_missing(LAYER_RLIMITS, "hard limit of open files: Operation not permitted");
}

static void ids_that_somebody_has_are_said_with_their_range(void **state)
{
	struct settings s = api_settings;

	(void)state;
	s.uid_base = 100000;
	s.uid_range_taken = 1;
	layers_probe_kernel(&l, &s);
	is_missing(LAYER_UIDS, "lies in 100000-165535");
}

static void a_pipe_as_core_pattern_is_noticed(void **state)
{
	const char *const piped[] = { "|/usr/lib/a-program %p", "@/run/a.socket" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		l.core_pattern_piped = false;
		host.core_pattern = piped[i];
		look();
		assert_true(l.core_pattern_piped);
	}
	l.core_pattern_piped = false;
	host.core_pattern = NULL; /* a /proc that does not have it */
	look();
	assert_false(l.core_pattern_piped);
}

static void swap_counts_only_where_there_is_some(void **state)
{
	struct cgroup_tree t = { .swap_accounting = false };

	(void)state;
	layers_probe_cgroups(&l, &t);
	assert_true(is_in_force(LAYER_SWAP));
	l = (struct layers){ 0 };
	host.swaps = NULL; /* a kernel without swap */
	layers_probe_cgroups(&l, &t);
	assert_true(is_in_force(LAYER_SWAP));
	l = (struct layers){ 0 };
	host.swaps = "Filename\n/swap file 1 0 -2\n";
	layers_probe_cgroups(&l, &t);
	is_missing(LAYER_SWAP, "there is swap");
	l = (struct layers){ 0 };
	host.many_swaps = true; /* more than is read */
	layers_probe_cgroups(&l, &t);
	is_missing(LAYER_SWAP, "there is swap");
}

static void controllers_and_files_that_are_not_there_are_named(void **state)
{
	struct cgroup_tree t = { .of = { -1, -1, -1, -1 } };

	(void)state;
	host.cgroup_kill = false;
	layers_probe_cgroups(&l, &t);
	is_missing(LAYER_MEMORY, "no hierarchy offers the memory controller");
	is_missing(LAYER_CPU, "no hierarchy offers the cpu controller");
	is_missing(LAYER_PIDS, "no hierarchy offers the pids controller");
	is_missing(LAYER_KILL, "cgroup.kill: No such file");
}

static void a_cell_that_cannot_be_made_is_said_and_ended(void **state)
{
	(void)state;
	host.create_fails = -ENODEV;
	assert_int_equal(layers_probe_cell(&l, &factory), -ENODEV);
	is_missing(LAYER_ROOT, "overlay");
	assert_int_equal(host.killed, 1);
	/* For want of descriptors no layer is missing. */
	l = (struct layers){ 0 };
	host.create_fails = -EMFILE;
	assert_int_equal(layers_probe_cell(&l, &factory), -EMFILE);
	assert_false(l.tried & LAYER_BIT(LAYER_ROOT));
	assert_int_equal(l.cell.code, -EMFILE);
}

static void a_cell_that_breaks_or_says_nothing_is_said_and_ended(void **state)
{
	(void)state;
	host.hear_fails = -EPERM;
	assert_int_equal(layers_probe_cell(&l, &factory), -EPERM);
	is_missing(LAYER_ROOT, "pivot_root");
	host.hear_fails = 0;
	host.speaks = 0;
	assert_int_equal(layers_probe_cell(&l, &factory), -ETIMEDOUT);
	assert_non_null(strstr(l.cell.text, "10000 ms"));
	assert_int_equal(host.killed, 2);
}

static void a_cell_that_does_not_end_keeps_no_start_from_going_on(void **state)
{
	(void)state;
	host.never_empty = true;
	assert_int_equal(layers_probe_cell(&l, &factory), 0);
	assert_int_equal(host.removed, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_host_that_has_everything_is_found_to_have_it),
		CASE(what_the_kernel_refuses_is_missing),
		CASE(too_few_files_are_said_with_their_number),
		CASE(ids_that_somebody_has_are_said_with_their_range),
		CASE(a_pipe_as_core_pattern_is_noticed),
		CASE(swap_counts_only_where_there_is_some),
		CASE(controllers_and_files_that_are_not_there_are_named),
		CASE(a_cell_that_cannot_be_made_is_said_and_ended),
		CASE(a_cell_that_breaks_or_says_nothing_is_said_and_ended),
		CASE(a_cell_that_does_not_end_keeps_no_start_from_going_on),
	};

	return cmocka_run_group_tests_name("layers_probe", tests, NULL, NULL);
}
