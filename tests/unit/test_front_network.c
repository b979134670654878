/* The front's part in a run with a network: the memory that it shares with the gate. */
#include "front_world.h"
#include "unit.h"

#include "base/own.h"
#include "wire/network.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BODY "{\"code\":\"x\",\"allow_network\":true}"

/* Number 1 is compiled. */
static struct offers offers = {
	.count = 2,
	.of = { { .name = "python", .main_file = "main.py" },
		{ .name = "c", .main_file = "main.c", .compiled = 1 } },
};

static void begin(struct world *w, uint32_t max_runs)
{
	struct msg_hello hello = world_hello_of(max_runs, 4);

	hello.settings.network = 1;
	hello.settings.network_connections = 64;
	hello.settings.network_bytes = hello.settings.network_rate = 1 << 20;
	world_start_as(w, &hello, &offers);
	world_tell(w, MSG_HEALTH, &(struct msg_health){ .ready = 1 });
}

static int ask(const struct world *w, const char *body)
{
	return world_ask(w, "POST /execute", "Content-Type: application/json\r\n", body);
}

/* The NETWORK and the SUBMIT of a run: its number, and the memory of which this is the only other
 * descriptor. */
static uint64_t take_run(const struct world *w, int *ret_memory)
{
	static struct msg m;
	uint64_t run;

	world_expect(w, MSG_NETWORK, &m);
	run = m.as.NETWORK.run;
	*ret_memory = take_fd(&m.fds[0]);
	world_expect(w, MSG_SUBMIT, &m);
	assert_int_equal(m.as.SUBMIT.run, run);
	assert_int_equal(m.as.SUBMIT.allow_network, 1);
	msg_done(&m);
	return run;
}

/* How many descriptors of this process, in which the front runs too, are of that memory. */
static unsigned count_of(int memory)
{
	struct stat want, st;
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	unsigned n = 0;

	assert_int_equal(fstat(memory, &want), 0);
	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += fstat(atoi(e->d_name), &st) == 0 && e->d_name[0] != '.' &&
		     st.st_ino == want.st_ino && st.st_dev == want.st_dev;
	assert_int_equal(closedir(dir), 0);
	return n;
}

/* The front goes on before it frees a run: what it answers next comes after that. */
static void expect_only_ours(const struct world *w, int memory)
{
	world_expect_load(w, 0, 0);
	for (unsigned i = 0; i < 1000 && count_of(memory) > 1; i++)
		world_expect_load(w, 0, 0);
	assert_int_equal(count_of(memory), 1);
	(void)close(memory);
}

static struct network_memory *map(int memory)
{
	struct network_memory *at =
		mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static void the_memory_holds_what_the_request_asks_for(void **state)
{
	struct network_memory *at;
	struct world w;
	uint64_t run;
	int memory, client;
	struct reply r;

	(void)state;
	begin(&w, 1);
	client = ask(&w,
		"{\"code\":\"x\",\"network\":{\"allow\":[\"example.org:443\"],\"deny\":[\"*:25\"],"
		"\"max_connections\":2,\"max_bytes\":4096,\"max_rate\":2048}}");
	run = take_run(&w, &memory);
	at = map(memory);
	assert_null(network_policy_fault(&at->asked));
	assert_int_equal(at->asked.allow_count, 1);
	assert_int_equal(at->asked.allow[0].match, NETWORK_NAME);
	assert_string_equal(at->asked.allow[0].name, "example.org");
	assert_int_equal(at->asked.deny_count, 1);
	assert_int_equal(at->asked.deny[0].port_min, 25);
	assert_int_equal(at->asked.max_connections, 2);
	assert_int_equal(at->asked.max_bytes, 4096);
	assert_int_equal(at->asked.max_rate, 2048);
	(void)munmap(at, sizeof(*at));
	world_end_run(&w, run, CAUSE_EXIT);
	world_hear(client, &r);
	assert_int_equal(r.status, 200);
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(json_object_get(r.body, "limits"), "network"),
				 "max_bytes")),
		4096);
	json_decref(r.body);
	expect_only_ours(&w, memory);
	world_finish(&w);
}

static void the_memory_is_as_agreed_and_asks_for_everything(void **state)
{
	struct network_memory *at;
	struct world w;
	struct stat st;
	uint64_t run;
	int memory, client;

	(void)state;
	begin(&w, 1);
	client = ask(&w, BODY);
	run = take_run(&w, &memory);
	assert_int_equal(fcntl(memory, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(fstat(memory, &st), 0);
	assert_int_equal(st.st_size, sizeof(struct network_memory));
	at = map(memory);
	assert_null(network_policy_fault(&at->asked));
	assert_int_equal(at->asked.allow_count, 1);
	assert_int_equal(at->asked.allow[0].match, NETWORK_ANY);
	assert_int_equal(at->asked.allow[0].port_max, UINT16_MAX);
	assert_int_equal(at->asked.deny_count, 0);
	assert_int_equal(at->record.magic, 0);
	(void)munmap(at, sizeof(*at));
	world_end_run(&w, run, CAUSE_EXIT);
	world_expect_status(client, 200);
	expect_only_ours(&w, memory);
	world_finish(&w);
}

static void what_the_gate_has_written_is_in_the_reply(void **state)
{
	struct network_memory *at;
	struct reply r;
	struct world w;
	uint64_t run;
	json_t *network, *line;
	int memory, client;

	(void)state;
	begin(&w, 1);
	client = ask(&w, BODY);
	run = take_run(&w, &memory);
	at = map(memory);
	at->record = (struct network_record){
		.magic = NETWORK_RECORD_MAGIC, .count = 1, .connections = 1, .bytes_in = 5
	};
	at->record.lines[0] = (struct network_connection){
		.address = { { [10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1 } },
		.port = 80,
		.protocol = NETWORK_TCP,
		.times = 1,
		.bytes_in = 5
	};
	(void)munmap(at, sizeof(*at));
	world_end_run(&w, run, CAUSE_EXIT);
	world_hear(client, &r);
	assert_int_equal(r.status, 200);
	network = json_object_get(r.body, "network");
	assert_int_equal(json_integer_value(json_object_get(network, "bytes_in")), 5);
	line = json_array_get(json_object_get(network, "connections"), 0);
	assert_string_equal(json_string_value(json_object_get(line, "address")), "192.0.2.1");
	assert_int_equal(json_array_size(json_object_get(r.body, "warnings")), 0);
	assert_true(
		json_is_true(json_object_get(json_object_get(r.body, "limits"), "allow_network")));
	json_decref(r.body);
	expect_only_ours(&w, memory);
	world_finish(&w);
}

/* Nor is what a gate has written that was taken over, by whoever it was. */
static void what_no_gate_writes_is_not_shown(void **state)
{
	struct network_memory *at;
	struct reply r;
	struct world w;
	uint64_t run;
	int memory, client;

	(void)state;
	begin(&w, 1);
	client = ask(&w, BODY);
	run = take_run(&w, &memory);
	at = map(memory);
	at->record.magic = NETWORK_RECORD_MAGIC;
	at->record.count = UINT32_MAX;
	(void)munmap(at, sizeof(*at));
	world_end_run(&w, run, CAUSE_EXIT);
	world_hear(client, &r);
	assert_int_equal(r.status, 200);
	assert_true(json_is_null(json_object_get(r.body, "network")));
	assert_non_null(
		strstr(json_string_value(json_array_get(json_object_get(r.body, "warnings"), 0)),
			"the gate that carried its packets"));
	json_decref(r.body);
	expect_only_ours(&w, memory);
	world_finish(&w);
}

static void a_run_without_a_network_sends_none(void **state)
{
	struct reply r;
	struct world w;
	struct msg m;
	int client;

	(void)state;
	begin(&w, 1);
	client = world_ask_to_run(&w, "x");
	world_expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(m.as.SUBMIT.allow_network, 0);
	msg_done(&m);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	world_hear(client, &r);
	assert_true(json_is_null(json_object_get(r.body, "network")));
	json_decref(r.body);
	world_finish(&w);
}

static void a_compiler_has_no_network_and_its_program_has(void **state)
{
	struct world w;
	struct msg m;
	uint64_t run;
	int memory, client;

	(void)state;
	begin(&w, 1);
	client = ask(&w, "{\"code\":\"x\",\"language\":\"c\",\"allow_network\":true}");
	world_expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(m.as.SUBMIT.part, RUN_COMPILER);
	assert_int_equal(m.as.SUBMIT.allow_network, 0);
	msg_done(&m);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	run = take_run(&w, &memory);
	world_end_run(&w, run, CAUSE_EXIT);
	world_expect_status(client, 200);
	expect_only_ours(&w, memory);
	world_finish(&w);
}

static void however_a_run_ends_its_memory_goes(void **state)
{
	struct msg_refused refused = { .fault = { .code = -EIO, .text = "no gate" } };
	struct world w;
	struct msg m;
	uint64_t run;
	int memory, client;

	(void)state;
	begin(&w, 1);

	client = ask(&w, BODY);
	run = take_run(&w, &memory);
	world_end_run(&w, run, CAUSE_WALL_TIMEOUT);
	world_expect_status(client, 200);
	expect_only_ours(&w, memory);

	client = ask(&w, BODY);
	refused.run = take_run(&w, &memory);
	world_tell(&w, MSG_REFUSED, &refused);
	world_expect_not_run(client, 500, false);
	expect_only_ours(&w, memory);

	/* Its client leaves. */
	client = ask(&w, BODY);
	run = take_run(&w, &memory);
	(void)close(client);
	world_expect(&w, MSG_CANCEL, &m);
	assert_int_equal(m.as.CANCEL.run, run);
	world_end_run(&w, run, CAUSE_CANCELLED);
	expect_only_ours(&w, memory);
	world_finish(&w);
}

/* The supervisor is lost. */
static void a_front_that_ends_leaves_no_memory(void **state)
{
	struct world w;
	int memory, client;

	(void)state;
	begin(&w, 1);
	client = ask(&w, BODY);
	(void)take_run(&w, &memory);
	world_finish(&w);
	assert_int_equal(count_of(memory), 1);
	(void)close(memory);
	(void)close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_memory_is_as_agreed_and_asks_for_everything),
		cmocka_unit_test(the_memory_holds_what_the_request_asks_for),
		cmocka_unit_test(what_the_gate_has_written_is_in_the_reply),
		cmocka_unit_test(what_no_gate_writes_is_not_shown),
		cmocka_unit_test(a_run_without_a_network_sends_none),
		cmocka_unit_test(a_compiler_has_no_network_and_its_program_has),
		cmocka_unit_test(however_a_run_ends_its_memory_goes),
		cmocka_unit_test(a_front_that_ends_leaves_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
