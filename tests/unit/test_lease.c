/* What an instance leaves when it dies is found by the next one, wherever that lives: by
 * the record in its lease. As root; the groups are made below one of our own name in every
 * hierarchy, and no other is touched. */
#include "tests/unit/unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/cgroup.h"
#include "priv/supervisor/lease.h"
#include "tests/lib/flaky.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER    4000000000u /* no instance has it: they end at LEASE_MAX */
#define CALLS_MAX 2000

static char top[64], path[96]; /* "/gbx-lease-PID", and a group in it */

static void full(char ret[700], const struct cgroup_hierarchy *h, const char *tail)
{
	(void)snprintf(ret, 700, "%s%s", h->mount, tail);
}

static bool is_there(const struct cgroup_hierarchy *h, const char *tail)
{
	char name[700];

	full(name, h, tail);
	return access(name, F_OK) == 0;
}

static unsigned count(const struct cgroup_tree *t, const char *tail)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->count; i++)
		n += is_there(&t->h[i], tail);
	return n;
}

static void open_tree(struct cgroup_tree *t, const char *where)
{
	struct fault f = { 0 };

	if (cgroup_tree_open(t, NUMBER, where, &f) < 0)
		fail_msg("%s", f.text);
	/* The paths below are told by the mount; a private one has none. */
	assert_true(t->h[0].mount[0] == '/');
}

/* As if the process had died: nothing is undone. */
static void abandon(struct cgroup_tree *t)
{
	for (unsigned i = 0; i < t->count; i++)
		drop_fd(&t->h[i].dir_fd);
}

static void what_was_made_for_a_path_goes_with_the_instance(void **state)
{
	struct cgroup_tree t, was;

	(void)state;
	open_tree(&t, path);
	was = t;
	assert_int_equal(count(&was, path), t.count);
	cgroup_tree_close(&t);
	assert_int_equal(count(&was, top), 0);
}

static void a_path_that_was_there_stays(void **state)
{
	struct cgroup_tree t, was;
	char name[700];

	(void)state;
	open_tree(&t, path);
	was = t;
	cgroup_tree_close(&t);
	for (unsigned i = 0; i < was.count; i++) {
		full(name, &was.h[i], top);
		assert_int_equal(mkdir(name, 0755), 0);
	}
	open_tree(&t, path);
	cgroup_tree_close(&t);
	assert_int_equal(count(&was, path), 0);
	assert_int_equal(count(&was, top), was.count);
	for (unsigned i = 0; i < was.count; i++) {
		full(name, &was.h[i], top);
		assert_int_equal(rmdir(name), 0);
	}
}

static void a_path_that_another_uses_stays_until_the_last(void **state)
{
	struct cgroup_tree first, second, was;
	struct fault f = { 0 };
	char record[CGROUP_RECORD_MAX];

	(void)state;
	open_tree(&first, path);
	was = first;
	cgroup_record(&first, record);
	assert_int_equal(cgroup_tree_open(&second, NUMBER + 1, path, &f), 0);
	cgroup_tree_close(&first);
	assert_int_equal(count(&was, path), was.count);
	assert_true(cgroup_sweep_record(record, NUMBER) < 0); /* not done: keep it */
	assert_int_equal(count(&was, path), was.count);
	cgroup_tree_close(&second);
	/* Its maker's record outlived it in the lease, and is swept again. */
	assert_int_equal(cgroup_sweep_record(record, NUMBER), 0);
	assert_int_equal(count(&was, top), 0);
}

static void whichever_call_of_the_start_fails_no_group_is_left(void **state)
{
	struct cgroup_tree t, was;
	unsigned n, failed = 0;

	(void)state;
	open_tree(&was, path);
	t = was;
	cgroup_tree_close(&t);
	for (n = 0; n < CALLS_MAX; n++) {
		struct fault f = { 0 };
		bool reached;
		int r;

		flaky_arm(n, EIO);
		r = cgroup_tree_open(&t, NUMBER, path, &f);
		reached = flaky_disarm();
		if (r == 0)
			cgroup_tree_close(&t);
		failed += r < 0;
		if (count(&was, top) > 0)
			fail_msg("call %u (%s) leaves a group", n, flaky_name());
		if (!reached)
			break;
	}
	assert_in_range(n, 20, CALLS_MAX - 1);
	assert_in_range(failed, 5, n);
}

static pid_t sleeper_in(const struct cgroup_tree *t, const char *leaf)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (unsigned i = 0; i < t->count; i++) {
			char name[64];
			int fd;

			(void)snprintf(name, sizeof(name), "%s/cgroup.procs", leaf);
			fd = openat(t->h[i].dir_fd, name, O_WRONLY | O_CLOEXEC);
			if (fd < 0 || write(fd, "0", 1) != 1)
				_exit(1);
		}
		(void)raise(SIGSTOP);
		_exit(2);
	}
	return pid;
}

static void a_record_leads_to_what_runs_elsewhere_and_ends_it(void **state)
{
	char record[CGROUP_RECORD_MAX];
	struct cgroup_tree t;
	int status;
	pid_t pid;

	(void)state;
	open_tree(&t, path);
	cgroup_record(&t, record);
	for (unsigned i = 0; i < t.count; i++)
		assert_int_equal(mkdirat(t.h[i].dir_fd, "c1", 0755), 0);
	pid = sleeper_in(&t, "c1");
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	abandon(&t);

	assert_int_equal(cgroup_sweep_record(record, NUMBER), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(count(&t, top), 0);
}

static void a_record_touches_nothing_but_the_groups_of_its_number(void **state)
{
	char record[CGROUP_RECORD_MAX], plain[] = "/tmp/gbx-lease-XXXXXX", line[256], dir[128];
	struct cgroup_tree t, was;

	(void)state;
	open_tree(&t, path);
	was = t;
	cgroup_record(&t, record);
	assert_int_equal(cgroup_sweep_record(record, NUMBER - 1), 0);
	assert_int_equal(count(&was, path), was.count);

	/* Another name, a relative path, no group at all, a line that was cut off. */
	(void)snprintf(line, sizeof(line), "0 %s%s\n0 glovebox.%u\nnonsense\n\n0 %s%s/glovebox.%u",
		t.h[0].mount, path, NUMBER, t.h[0].mount, path, NUMBER);
	assert_int_equal(cgroup_sweep_record(line, NUMBER), 0);
	assert_int_equal(count(&was, path), was.count);
	cgroup_tree_close(&t);

	assert_non_null(mkdtemp(plain));
	(void)snprintf(dir, sizeof(dir), "%s/glovebox.%u", plain, NUMBER);
	assert_int_equal(mkdir(dir, 0700), 0);
	(void)snprintf(line, sizeof(line), "9 %s\n", dir);
	assert_int_equal(cgroup_sweep_record(line, NUMBER), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(rmdir(plain), 0);
}

/* For lease_sweep(): other instances may live on this host, whose records are not ours. */
static struct {
	unsigned number, calls;
	const char *busy; /* the line that cannot be cleaned yet */
	char text[64];
} heard;

static int hear(const char *line, unsigned number)
{
	if (number != heard.number)
		return -EBUSY;
	heard.calls++;
	(void)snprintf(heard.text + strlen(heard.text), sizeof(heard.text) - strlen(heard.text),
		"%s", line);
	return heard.busy && strcmp(line, heard.busy) == 0 ? -EBUSY : 0;
}

static void expect_heard(const struct lease *sweeper, const char *text)
{
	heard.text[0] = '\0';
	(void)lease_sweep(sweeper, hear);
	assert_string_equal(heard.text, text);
}

static void a_line_is_read_after_its_writers_death_until_it_is_clean(void **state)
{
	struct lease dying, next;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(lease_take(&dying, &f), 0);
	assert_int_equal(lease_take(&next, &f), 0);
	heard.number = dying.number;
	heard.busy = NULL;
	(void)lease_sweep(&dying, hear); /* what an earlier test run may have left */
	assert_int_equal(lease_record(&dying, "0 /a\n"), 0);
	assert_int_equal(lease_record(&dying, "0 /b\n0 /c\n"), 0);

	expect_heard(&next, ""); /* it lives */
	lease_release(&dying);
	heard.busy = "0 /b\n";
	expect_heard(&next, "0 /a\n0 /b\n0 /c\n");
	expect_heard(&next, "0 /b\n");
	heard.busy = NULL;
	expect_heard(&next, "0 /b\n");
	expect_heard(&next, "");
	lease_release(&next);
}

static void the_next_holder_of_the_number_reads_it_too(void **state)
{
	struct lease l;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(lease_take(&l, &f), 0);
	heard.number = l.number;
	heard.busy = NULL;
	(void)lease_sweep(&l, hear);
	assert_int_equal(lease_record(&l, "0 /c\n"), 0);
	expect_heard(&l, "0 /c\n");
	lease_release(&l);
}

static void a_line_that_stays_does_not_fill_the_record(void **state)
{
	struct lease l;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(lease_take(&l, &f), 0);
	heard.number = l.number;
	heard.busy = NULL;
	(void)lease_sweep(&l, hear);
	heard.busy = "1 /stays\n";
	assert_int_equal(lease_record(&l, heard.busy), 0);
	for (unsigned i = 0; i < LEASE_RECORD_MAX / 8; i++) { /* a line has more than 8 bytes */
		assert_int_equal(lease_record(&l, "0 /of-one-run\n"), 0);
		expect_heard(&l, "1 /stays\n0 /of-one-run\n");
	}
	assert_int_equal(lease_record(&l, "0 /cut off"), 0);
	heard.busy = NULL;
	expect_heard(&l, "1 /stays\n");
	expect_heard(&l, "");
	lease_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_made_for_a_path_goes_with_the_instance),
		cmocka_unit_test(a_path_that_was_there_stays),
		cmocka_unit_test(a_path_that_another_uses_stays_until_the_last),
		cmocka_unit_test(whichever_call_of_the_start_fails_no_group_is_left),
		cmocka_unit_test(a_record_leads_to_what_runs_elsewhere_and_ends_it),
		cmocka_unit_test(a_record_touches_nothing_but_the_groups_of_its_number),
		cmocka_unit_test(a_line_is_read_after_its_writers_death_until_it_is_clean),
		cmocka_unit_test(the_next_holder_of_the_number_reads_it_too),
		cmocka_unit_test(a_line_that_stays_does_not_fill_the_record),
	};

	(void)snprintf(top, sizeof(top), "/gbx-lease-%d", (int)getpid());
	(void)snprintf(path, sizeof(path), "%s/inner", top);
	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
