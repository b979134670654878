/* What is read out of an exit record, whoever made it. */
#include "tests/unit/unit.h"

#include "kernel/taskstats.h"
#include "tests/unit/taskstats_message.h"
#include "wire/cell.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FAMILY 0x1234

/* The end of a page that cannot be read on: a message lies right before it, so that a byte too
 * many is a crash. */
static unsigned char *wall;

static int build_wall(void **state)
{
	unsigned char *pages = mmap(
		NULL, 2 * MESSAGE_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (pages == MAP_FAILED)
		return -1;
	wall = pages + MESSAGE_ROOM;
	return mprotect(wall, MESSAGE_ROOM, PROT_NONE);
}

static int parse(const struct message *m, struct taskstats_exit *ret)
{
	return taskstats_parse(m->bytes, m->len, FAMILY, MESSAGE_PARENT, ret);
}

static int parse_stats(const struct taskstats *s)
{
	struct taskstats_exit e;
	struct message m;

	message_make(&m, FAMILY, s, false);
	return parse(&m, &e);
}

static void a_record_gives_number_status_and_faults(void **state)
{
	struct taskstats s = message_usual();
	struct taskstats_exit e;
	struct message m;

	(void)state;
	message_make(&m, FAMILY, &s, false);
	assert_int_equal(parse(&m, &e), 1);
	assert_int_equal(e.pid, MESSAGE_CHILD);
	assert_int_equal(e.status, 7 << 8);
	assert_int_equal(e.minor_faults, 11);
	assert_int_equal(e.major_faults, 2);
	assert_false(e.had_threads || e.told);
	memcpy(s.ac_comm, CELL_TOLD_NAME, sizeof(CELL_TOLD_NAME));
	message_make(&m, FAMILY, &s, true);
	assert_int_equal(parse(&m, &e), 1);
	assert_true(e.had_threads && e.told);
}

static void a_record_that_is_cut_off_is_refused_at_every_length(void **state)
{
	struct taskstats s = message_usual();
	struct taskstats_exit e;
	struct message m;

	(void)state;
	message_make(&m, FAMILY, &s, true);
	for (size_t len = 0; len < m.len; len++) {
		unsigned char *at = wall - len;

		memcpy(at, m.bytes, len);
		assert_int_equal(taskstats_parse(at, len, FAMILY, MESSAGE_PARENT, &e), -EBADMSG);
		/* The same with a header that claims no more than there is. */
		if (len < NLMSG_HDRLEN)
			continue;
		memcpy(at, &(uint32_t){ (uint32_t)len }, sizeof(uint32_t));
		assert_true(taskstats_parse(at, len, FAMILY, MESSAGE_PARENT, &e) != 1 ||
			    (e.pid == MESSAGE_CHILD && e.status == 7 << 8));
	}
}

static void no_byte_that_is_changed_leads_out_of_the_message(void **state)
{
	struct taskstats s = message_usual();
	struct taskstats_exit e;
	struct message m;
	unsigned seed = 1;

	(void)state;
	message_make(&m, FAMILY, &s, true);
	for (unsigned i = 0; i < 200000; i++) {
		unsigned char *at = wall - m.len;

		memcpy(at, m.bytes, m.len);
		for (int k = 0; k < 3; k++)
			at[(unsigned)rand_r(&seed) % (k ? 48 : m.len)] =
				(unsigned char)rand_r(&seed);
		(void)taskstats_parse(at, m.len, FAMILY, MESSAGE_PARENT, &e);
	}
}

static void other_families_and_commands_are_passed_over(void **state)
{
	struct taskstats s = message_usual();
	struct taskstats_exit e;
	struct message m;

	(void)state;
	message_make(&m, FAMILY, &s, false);
	assert_int_equal(taskstats_parse(m.bytes, m.len, FAMILY + 1, MESSAGE_PARENT, &e), 0);
	m.bytes[NLMSG_HDRLEN] = TASKSTATS_CMD_GET;
	assert_int_equal(parse(&m, &e), 0);
}

static void only_the_main_thread_as_the_last_one_of_a_child_counts(void **state)
{
	struct taskstats s = message_usual();

	(void)state;
	s.ac_flag = 0;
	assert_int_equal(parse_stats(&s), 0);
	s = message_usual();
	s.ac_tgid = MESSAGE_CHILD - 1;
	assert_int_equal(parse_stats(&s), 0);
	s = message_usual();
	s.ac_ppid = MESSAGE_PARENT + 1;
	assert_int_equal(parse_stats(&s), 0);
}

static void a_structure_that_is_laid_out_otherwise_is_refused(void **state)
{
	struct taskstats s = message_usual();

	(void)state;
	s.version = 11;
	assert_int_equal(parse_stats(&s), -EBADMSG);
	s.version = 15;
	assert_int_equal(parse_stats(&s), -EBADMSG);
	s.version = 17;
	assert_int_equal(parse_stats(&s), 1);
	s.ac_pid = MESSAGE_CHILD + 1; /* and not where the attribute says */
	assert_int_equal(parse_stats(&s), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_gives_number_status_and_faults),
		cmocka_unit_test(a_record_that_is_cut_off_is_refused_at_every_length),
		cmocka_unit_test(no_byte_that_is_changed_leads_out_of_the_message),
		cmocka_unit_test(other_families_and_commands_are_passed_over),
		cmocka_unit_test(only_the_main_thread_as_the_last_one_of_a_child_counts),
		cmocka_unit_test(a_structure_that_is_laid_out_otherwise_is_refused),
	};

	return cmocka_run_group_tests(tests, build_wall, NULL);
}
