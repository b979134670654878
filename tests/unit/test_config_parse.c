#include "unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "edge/config/document.h"
#include "edge/config/ids.h"
#include "edge/config/parse.h"
#include "edge/config/runtime.h"
#include "wire/layer.h"
#include "wire/network.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct config_host small_host = { .cpus = 1, .memory_bytes = UINT64_C(512) << 20 };
static const struct config_host big_host = { .cpus = 96, .memory_bytes = UINT64_C(64) << 30 };

static int read_yaml(struct config *c, const char *text, struct fault *f)
{
	*f = (struct fault){ 0 };
	config_init(c);
	return document_configure(
		&(struct document){ .bytes = text, .len = strlen(text), .name = "g.yaml" }, c, f);
}

static int set(struct config *c, const char *record, struct fault *f)
{
	*f = (struct fault){ 0 };
	return config_override(c, record, strlen(record) + 1, f);
}

/* `record` is refused, and the text has each of `words` (separated by '|'). */
static void refuse(const char *record, const char *words)
{
	struct config c, before;
	struct fault f;
	char copy[160], *next = copy, *word;

	config_init(&c);
	before = c;
	assert_true(strlen(words) < sizeof(copy));
	(void)snprintf(copy, sizeof(copy), "%s", words);
	if (set(&c, record, &f) == 0)
		fail_msg("%s is taken", record);
	while ((word = strsep(&next, "|")))
		if (!strstr(f.text, word))
			fail_msg("%s: \"%s\" does not say \"%s\"", record, f.text, word);
	assert_memory_equal(&c, &before, sizeof(c));
}

static void defaults_are_those_of_the_design(void **state)
{
	struct config c;

	(void)state;
	config_init(&c);
	assert_int_equal(c.settings.def.timeout_us, 3000000);
	assert_int_equal(c.settings.def.memory_bytes, 64 << 20);
	assert_int_equal(c.settings.def.cpu_milli, 500);
	assert_int_equal(c.settings.def.pids, 32);
	assert_int_equal(c.settings.listen.kind, LISTEN_INET);
	assert_int_equal(c.settings.listen.port, 8000);
	assert_memory_equal(c.settings.listen.ip, "\x7f\0\0\1", 4);
	assert_int_equal(c.settings.uid_base, 2000000);
	assert_int_equal(c.settings.log_level, 2);
	assert_int_equal(c.settings.allow_degraded, 0);
}

static void every_type_is_read_strictly(void **state)
{
	static const char *const rows[][2] = {
		{ "--memory=", "memory|a size such as|4M to 4T|flag --memory" },
		{ "--memory=4x", "memory|\"4x\"|a size such as" },
		{ "--memory=010M", "\"010M\"" },
		{ "--memory=0x1000000", "\"0x1000000\"" },
		{ "--memory=1e9", "\"1e9\"" },
		{ "--memory=4k", "\"4k\" is out of range|4M to 4T" },
		{ "--memory=5T", "out of range" },
		{ "--memory=64", "\"64\" is that many bytes|4M to 4T: write 64M for MiB (flag" },
		{ "--memory=99999999999999999999999", "out of range" },
		{ "GLOVEBOX_MAX_PIDS=32769", "max-pids|1 to 32768|environment GLOVEBOX_MAX_PIDS" },
		{ "GLOVEBOX_PIDS=1.5", "\"1.5\"|whole number" },
		{ "GLOVEBOX_PIDS=4k", "\"4k\"" },
		{ "GLOVEBOX_PIDS=010", "\"010\"" },
		{ "GLOVEBOX_PIDS=", "\"\"" },
		{ "--pids=0", "out of range|1 to 32768" },
		{ "--timeout=1e3", "\"1e3\"|a duration such as|1ms to 86400s" },
		{ "--timeout=25h", "out of range" },
		{ "--timeout=0", "out of range" },
		{ "--cpu=1/2", "a number of CPUs" },
		{ "--cpu=0.001", "out of range|0.01 to 1024" },
		{ "--max-cpu=0.001", "out of range|0 or 0.01 to 1024" },
		{ "--max-memory=1M", "out of range|0 or 4M to 4T" },
		{ "--insecure=yes", "true or false" },
		{ "--network=yes", "network|off, on or auto|flag --network" },
		{ "--network=2", "off, on or auto" },
		{ "--network-allow=a.org,exa mple.org",
			"network-allow: \"exa mple.org\" may have|(byte 4; flag --network-allow)" },
		{ "--network-allow=a.org,", "\"\" is empty (byte 1; flag" },
		{ "GLOVEBOX_NETWORK_DENY=10.0.0.1/8",
			"network-deny: \"10.0.0.1/8\" has bits|environment GLOVEBOX_NETWORK_DENY" },
		{ "--log-level=loud", "err, warn, info or debug" },
		{ "--cgroup=relative", "an absolute path" },
		{ "--cgroup=/a/../b", "an absolute path" },
		{ "--cgroup=/a/..", "an absolute path" },
		{ "--cgroup=/a\nb", "\"/a?b\"" },
		{ "--preload=numpy,", "preload|names of modules" },
		{ "--preload=,numpy", "names of modules" },
		{ "--preload=numpy, pandas", "names of modules" },
		{ "--preload=a..b", "names of modules" },
		{ "--preload=1a", "names of modules" },
		{ "--preload=os;x", "names of modules" },
		{ "--preload=/etc", "names of modules" },
		{ "--image=a/b", "image|the name of an image" },
		{ "--image=.x", "the name of an image" },
		{ "--image-dir=images", "an absolute path" },
		{ "--allow-degraded=everything", "a layer of the cage" },
		{ "--allow-degraded=proc,", "a layer of the cage" },
		{ "--allow-degraded=,proc", "a layer of the cage" },
		{ "uid-base=999", "65536 to 4000000000|option" },
		{ "nonsense=1", "\"nonsense\" is no setting" },
		{ "GLOVEBOX_NONSENSE=1", "\"nonsense\" is no setting" },
		{ "--config=x", "\"config\" is no setting" },
		{ "=1", "is no setting" },
		{ "memory", "has no \"=\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		refuse(rows[i][0], rows[i][1]);
}

static void addresses_are_numbers_or_paths(void **state)
{
	static const char *const bad[] = { "--listen=", "--listen=8000", "--listen=:8000",
		"--listen=nowhere:80", "--listen=127.0.0.1",
		"--listen=127.0.0.1:", "--listen=127.0.0.1:65536", "--listen=127.0.0.1:-1",
		"--listen=127.0.0.1:080", "--listen=127.1:80", "--listen=::1:80", "--listen=[::1]",
		"--listen=[127.0.0.1]:80", "--listen=[]:80",
		"--listen=unix:", "--listen=unix:relative", "--listen=unix:/",
		"--listen=unix:/a/../b" };
	char long_path[160] = "--listen=unix:/";
	struct config c;
	struct fault f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refuse(bad[i], "listen|ADDR:PORT");
	memset(long_path + strlen(long_path), 'x', 120);
	refuse(long_path, "listen");

	config_init(&c);
	assert_int_equal(set(&c, "--listen=localhost:0", &f), 0);
	assert_int_equal(c.settings.listen.port, 0);
	assert_memory_equal(c.settings.listen.ip, "\x7f\0\0\1", 4);
	assert_int_equal(set(&c, "--listen=[::1]:65535", &f), 0);
	assert_int_equal(c.settings.listen.kind, LISTEN_INET6);
	assert_int_equal(c.settings.listen.ip[15], 1);
	assert_int_equal(set(&c, "--listen=unix:/run/glovebox.sock", &f), 0);
	assert_int_equal(c.settings.listen.kind, LISTEN_UNIX);
	assert_string_equal(c.settings.listen.path, "/run/glovebox.sock");
}

static void later_records_win_and_the_file_loses(void **state)
{
	static const char records[] = "GLOVEBOX_PIDS=2\0--pids=3\0--max-pids=100\0";
	struct config c;
	struct fault f;

	(void)state;
	assert_int_equal(read_yaml(&c, "pids: 1\ntimeout: 7s\n", &f), 0);
	assert_int_equal(c.settings.def.pids, 1);
	assert_int_equal(config_override(&c, records, sizeof(records) - 1, &f), 0);
	assert_int_equal(c.settings.def.pids, 3);
	assert_int_equal(c.settings.def.timeout_us, 7000000);
	assert_int_equal(c.settings.max.pids, 100);
}

static void a_record_that_does_not_end_is_refused(void **state)
{
	struct config c;
	struct fault f = { 0 };

	(void)state;
	config_init(&c);
	assert_int_equal(config_override(&c, "--pids=3", 8, &f), -EINVAL);
}

static void layers_add_up_within_one_source_and_are_replaced_by_the_next(void **state)
{
	struct config c;
	struct fault f;

	(void)state;
	assert_int_equal(read_yaml(&c, "allow-degraded: [proc, landlock]\n", &f), 0);
	assert_int_equal(
		c.settings.allow_degraded, LAYER_BIT(LAYER_PROC) | LAYER_BIT(LAYER_LANDLOCK));
	assert_int_equal(set(&c, "--allow-degraded=swap-off", &f), 0);
	assert_int_equal(c.settings.allow_degraded, LAYER_BIT(LAYER_SWAP));
	assert_int_equal(set(&c, "--allow-degraded=seccomp,proc", &f), 0);
	assert_int_equal(c.settings.allow_degraded,
		LAYER_BIT(LAYER_SWAP) | LAYER_BIT(LAYER_SECCOMP) | LAYER_BIT(LAYER_PROC));
}

static void rules_for_the_network_are_read_into_the_policy(void **state)
{
	struct config c;
	struct fault f;

	(void)state;
	config_init(&c);
	assert_int_equal(c.settings.network, SWITCH_AUTO);
	assert_int_equal(c.policy.allow_count, 0);
	if (read_yaml(&c,
		    "network: on\nnetwork-allow: [example.org, '*.example.com:443']\n"
		    "network-deny:\n  - 203.0.113.0/24\n  - \"[2001:db8::1]:25\"\n",
		    &f) < 0)
		fail_msg("%s", f.text);
	assert_int_equal(c.settings.network, SWITCH_ON);
	assert_int_equal(c.settings.network_allow, 2);
	assert_int_equal(c.settings.network_deny, 2);
	assert_int_equal(config_settle(&c, &small_host, &f), 0);
	assert_null(network_policy_fault(&c.policy));
	assert_int_equal(c.policy.allow_count, 2);
	assert_int_equal(c.policy.allow[1].match, NETWORK_SUBNAME);
	assert_int_equal(c.policy.deny_count, 2);
	assert_int_equal(c.policy.deny[1].prefix, 128);
	assert_int_equal(c.policy.max_connections, 64);
	assert_int_equal(c.policy.max_bytes, 256 << 20);
	assert_int_equal(c.policy.max_rate, 64 << 20);

	/* As other lists: the environment's take the place of the file's, and flags add up. */
	assert_int_equal(set(&c, "GLOVEBOX_NETWORK_ALLOW=a.org,b.org:80", &f), 0);
	assert_int_equal(c.settings.network_allow, 2);
	assert_string_equal(c.policy.allow[1].name, "b.org");
	assert_int_equal(set(&c, "--network-allow=c.org", &f), 0);
	assert_int_equal(set(&c, "--network-allow=d.org", &f), 0);
	assert_int_equal(c.settings.network_allow, 2);
	assert_string_equal(c.policy.allow[0].name, "c.org");
	assert_string_equal(c.policy.allow[1].name, "d.org");
	assert_int_equal(c.settings.network_deny, 2);
	assert_null(network_policy_fault(&c.policy));
}

/* A variable that nobody has set, or a list that was emptied, is not "all" or "nothing". */
static void a_list_of_rules_that_is_empty_is_refused(void **state)
{
	struct config c;
	struct fault f;

	(void)state;
	assert_int_equal(read_yaml(&c, "network-allow: [a.org]\nnetwork-deny: [b.org]\n", &f), 0);
	assert_int_equal(set(&c, "GLOVEBOX_NETWORK_ALLOW=", &f), -EINVAL);
	assert_non_null(strstr(f.text, "network-allow: is empty"));
	assert_int_equal(set(&c, "--network-deny=", &f), -EINVAL);
	assert_true(read_yaml(&c, "network-allow: []\n", &f) < 0);
}

static void without_a_rule_what_is_public_is_allowed(void **state)
{
	struct config c;
	struct fault f;

	(void)state;
	assert_int_equal(read_yaml(&c, "network-deny: [10.0.0.1]\n", &f), 0);
	assert_int_equal(config_settle(&c, &small_host, &f), 0);
	assert_int_equal(c.settings.network_allow, 0);
	assert_null(network_policy_fault(&c.policy));
	assert_int_equal(c.policy.allow_count, 1);
	assert_int_equal(c.policy.allow[0].match, NETWORK_ANY);
	assert_int_equal(c.policy.allow[0].port_max, UINT16_MAX);
}

static void more_rules_than_there_is_room_for_are_refused(void **state)
{
	char text[2048] = "--network-deny=a.org";
	struct config c;
	struct fault f;

	(void)state;
	for (unsigned i = 1; i < NETWORK_RULES_MAX; i++)
		strncat(text, ",a.org", sizeof(text) - strlen(text) - 1);
	config_init(&c);
	assert_int_equal(set(&c, text, &f), 0);
	assert_int_equal(c.settings.network_deny, NETWORK_RULES_MAX);
	assert_int_equal(set(&c, "--network-deny=a.org", &f), -EINVAL);
	assert_non_null(strstr(f.text, "network-deny: more than 64 rules (flag --network-deny)"));
	assert_int_equal(c.policy.deny_count, NETWORK_RULES_MAX);
}

static void what_is_wrong_in_a_file_is_told_with_its_line(void **state)
{
	static const char *const rows[][2] = {
		{ "timeot: 3s\n", "g.yaml line 1|\"timeot\"" },
		{ "# one\npids: 1\n\nmax_runs: 3\n", "g.yaml line 4|\"max_runs\"" },
		{ "pids: 1\ncpu: 1\npids: 2\n", "g.yaml line 3|\"pids\" is there twice" },
		{ "cpu: 1\n\nmemory: 64 potatoes\n", "memory|64 potatoes|g.yaml line 3" },
		{ "'cpu' : x\n", "cpu|g.yaml line 1" },
		{ "{pids: many}\n", "pids|(g.yaml)" },
		{ "pids: [1]\n", "line 1|a single value" },
		{ "pids: {a: 1}\n", "a single value" },
		{ "allow-degraded: proc\n", "line 1|a list" },
		{ "allow-degraded: [proc, [x]]\n", "line 1" },
		{ "allow-degraded: [proc, x]\n", "allow-degraded|\"x\"|line 1" },
		{ "network-allow: a.org\n", "line 1|a list" },
		{ "# x.org\nnetwork-deny:\n  - a.org\n  - 'exa mple.org' # ?\n",
			"\"exa mple.org\" may have|byte 4; g.yaml line 4, column 9" },
		{ "network-allow: [xa.-, a.-]\n", "\"xa.-\"|line 1, column 20" },
		{ "network-allow: [xa.org, a.-]\n", "\"a.-\"|line 1, column 27" },
		{ "- 1\n", "key: value" },
		{ "just text\n", "key: value" },
		{ "pids: &a 3\nmax-pids: *a\n", "alias" },
		{ "pids: 1\n---\npids: 2\n", "second YAML document" },
		{ "pids: 1\n...\npids: 2\n", "g.yaml" },
		{ "a: b: c\n", "g.yaml" },
		{ "pids: 'x\n", "g.yaml" },
		{ "pids: \"3\\0\"\n", "NUL" },
		{ "pids: ~\n", "pids|\"~\"" },
		{ "pids:\n", "pids|\"\"" },
		{ "\xff\xfe\n", "g.yaml" },
	};
	struct config c;
	struct fault f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char copy[160], *next = copy, *word;

		if (read_yaml(&c, rows[i][0], &f) == 0)
			fail_msg("taken: %s", rows[i][0]);
		(void)snprintf(copy, sizeof(copy), "%s", rows[i][1]);
		while ((word = strsep(&next, "|")))
			if (!strstr(f.text, word))
				fail_msg("%s\"%s\" does not say \"%s\"", rows[i][0], f.text, word);
	}
}

static void a_file_without_settings_changes_nothing(void **state)
{
	static const char *const texts[] = { "", "\n", "# only this\n", "{}\n" };
	struct config c, plain;
	struct fault f;

	(void)state;
	config_init(&plain);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (read_yaml(&c, texts[i], &f) < 0)
			fail_msg("\"%s\": %s", texts[i], f.text);
		assert_memory_equal(&c, &plain, sizeof(c));
	}
}

static void depth_and_length_do_no_harm(void **state)
{
	static char text[64 << 10];
	struct config c;
	struct fault f;

	(void)state;
	memset(text, '[', sizeof(text) - 1);
	assert_true(read_yaml(&c, text, &f) < 0);
	(void)memcpy(text, "pids: ", 6);
	assert_true(read_yaml(&c, text, &f) < 0);
	memset(text, '9', sizeof(text) - 1);
	(void)memcpy(text, "pids: ", 6);
	assert_true(read_yaml(&c, text, &f) < 0);
	assert_true(strlen(f.text) < sizeof(f.text));
}

static void zeros_are_settled_by_the_size_of_the_host(void **state)
{
	struct config c;
	struct fault f = { 0 };

	(void)state;
	config_init(&c);
	assert_int_equal(config_settle(&c, &small_host, &f), 0);
	assert_int_equal(c.settings.max_runs, 4);
	assert_int_equal(c.settings.max.memory_bytes, UINT64_C(512) << 20);
	assert_int_equal(c.settings.max.cpu_milli, 1000);

	config_init(&c);
	assert_int_equal(config_settle(&c, &big_host, &f), 0);
	assert_int_equal(c.settings.max_runs, 120);
	assert_int_equal(c.settings.max.memory_bytes, UINT64_C(16) << 30);
	assert_int_equal(c.settings.max.cpu_milli, 96000);

	config_init(&c);
	assert_int_equal(set(&c, "--max-runs=7", &f), 0);
	assert_int_equal(config_settle(&c, &big_host, &f), 0);
	assert_int_equal(c.settings.max_runs, 7);
}

static void a_default_above_its_maximum_is_told_with_both_sources(void **state)
{
	struct config c;
	struct fault f;

	(void)state;
	assert_int_equal(read_yaml(&c, "\nmax-timeout: 2s\n", &f), 0);
	assert_int_equal(config_settle(&c, &big_host, &f), -EINVAL);
	assert_string_equal(f.text, "timeout 3s (default) is above max-timeout 2s (g.yaml line 2)");
	assert_int_equal(set(&c, "--timeout=1.5s", &f), 0);
	assert_int_equal(config_settle(&c, &big_host, &f), 0);
}

static void listening_beyond_loopback_needs_insecure(void **state)
{
	static const char *const far[] = { "--listen=0.0.0.0:0", "--listen=[::]:0",
		"--listen=192.0.2.1:0" };
	struct config c;
	struct fault f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(far); i++) {
		config_init(&c);
		assert_int_equal(set(&c, far[i], &f), 0);
		assert_int_equal(config_settle(&c, &big_host, &f), -EINVAL);
		assert_non_null(strstr(f.text, "--insecure"));
		assert_int_equal(set(&c, "GLOVEBOX_INSECURE=true", &f), 0);
		assert_int_equal(config_settle(&c, &big_host, &f), 0);
	}
}

static void read_file_of_this_tree(const char *path, char *text, size_t room)
{
	const char *top = getenv("GLOVEBOX_SOURCE");
	char whole[512];
	FILE *file;
	size_t n;

	(void)snprintf(whole, sizeof(whole), "%s/%s", top ? top : ".", path);
	file = fopen(whole, "re");
	if (!file)
		fail_msg("%s is not there", whole);
	n = fread(text, 1, room - 1, file);
	text[n] = '\0';
	assert_int_equal(fclose(file), 0);
	assert_true(n > 0 && n < room - 1);
}

static void the_sample_file_holds_the_defaults(void **state)
{
	static char text[16384];
	struct config c, plain;
	struct fault f;

	(void)state;
	read_file_of_this_tree("deploy/glovebox.yaml", text, sizeof(text));
	if (read_yaml(&c, text, &f) < 0)
		fail_msg("%s", f.text);
	config_init(&plain);
	assert_memory_equal(&c.settings, &plain.settings, sizeof(c.settings));

	/* Every setting is in it, if only as a comment. */
#define X(key, field, type, def, least, most, help)                      \
	if (!strstr(text, "\n" key ":") && !strstr(text, "\n#" key ":")) \
		fail_msg("the sample lacks " key);
	SETTINGS(X)
#undef X
}

static void the_python_manifest_makes_settings_complete(void **state)
{
	static char text[16384];
	static struct language l;
	struct config c;
	struct fault f = { 0 };

	(void)state;
	read_file_of_this_tree("runtimes/python/runtime.yaml", text, sizeof(text));
	config_init(&c);
	if (runtime_parse(&(struct document){ text, strlen(text), "runtime.yaml" }, &l, &f) < 0)
		fail_msg("%s", f.text);
	c.settings.runtime = l.runtime;
	assert_int_equal(config_settle(&c, &small_host, &f), 0);
	assert_null(settings_fault(&c.settings));
	assert_string_equal(c.settings.runtime.argv[0], "/usr/bin/python3");
	assert_string_equal(c.settings.runtime.argv[2], c.settings.runtime.main_file);
}

/* A manifest whose list of roots is `n` times `root`, and which ends with `rest`. */
static int read_manifest(const char *root, int n, const char *rest, struct fault *f)
{
	char text[2048];
	static struct language r;
	int len = snprintf(
		text, sizeof(text), "name: x\nmain-file: m\ninventory: x\nargv: [/x]\nroots: [");

	*f = (struct fault){ 0 };
	for (int i = 0; i < n; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s,", root);
	len += snprintf(text + len, sizeof(text) - (size_t)len, "]\n%s", rest);
	assert_true((size_t)len < sizeof(text));
	return runtime_parse(&(struct document){ text, (size_t)len, "r" }, &r, f);
}

static void a_manifest_that_is_too_much_is_refused(void **state)
{
	char path[RUNTIME_PATH_MAX + 1] = "/";
	static struct language r;
	struct fault f;

	(void)state;
	assert_int_equal(read_manifest("/x", RUNTIME_ROOTS_MAX - 1, "", &f), 0);
	assert_true(read_manifest("/x", RUNTIME_ROOTS_MAX, "", &f) < 0);
	assert_true(read_manifest("/x", 0, "", &f) < 0);
	memset(path + 1, 'x', RUNTIME_PATH_MAX - 2);
	assert_int_equal(read_manifest(path, 1, "", &f), 0);
	path[RUNTIME_PATH_MAX - 1] = 'x';
	assert_true(read_manifest(path, 1, "", &f) < 0);
	assert_true(read_manifest("/x", 1, "surprise: 1\n", &f) < 0);
	assert_true(read_manifest("/x", 1, "full-proc: maybe\n", &f) < 0);
	assert_non_null(strstr(f.text, "full-proc"));
	assert_true(runtime_parse(&(struct document){ "", 0, "r" }, &r, &f) < 0);
}

static bool passwd(const char *text)
{
	return ids_passwd_names(text, strlen(text), &(struct id_range){ 100, 199 });
}

static bool group(const char *text)
{
	return ids_group_names(text, strlen(text), &(struct id_range){ 100, 199 });
}

static bool subuid(const char *text)
{
	return ids_subuid_names(text, strlen(text), &(struct id_range){ 100, 199 });
}

static void ids_of_the_range_are_seen_in_all_three_files(void **state)
{
	(void)state;
	assert_true(passwd("root:x:0:0::/:/bin/sh\na:x:100:5::/:/bin/sh\n"));
	assert_true(passwd("a:x:5:199::/:/bin/sh")); /* its group, and no newline */
	assert_false(passwd("a:x:99:200::/:/bin/sh\n:::\n\nbroken\na:x:-150:1x0:150::"));
	assert_false(passwd(""));
	assert_false(passwd("a:x:18446744073709551716:5::")); /* 2^64 + 100 */
	assert_true(group("g:x:150:\n"));
	assert_false(group("g:x:15:150\n"));
	assert_true(subuid("a:50:51\n"));
	assert_false(subuid("a:50:50\n"));
	assert_true(subuid("a:199:1\n"));
	assert_false(subuid("a:200:65536\nb:150:0\n"));
	assert_true(subuid("a:0:4294967295\n"));
}

static bool is_taken(const char *passwd_text, uint32_t uid_base)
{
	return ids_are_taken(passwd_text, strlen(passwd_text), ids_passwd_names, uid_base);
}

static void the_config_processs_own_id_must_be_free_wherever_the_range_lies(void **state)
{
	(void)state;
	assert_true(is_taken("a:x:2000001:5::", 3000000));
	assert_false(is_taken("a:x:2000002:5::", 3000000));
	assert_true(is_taken("a:x:3065535:5::", 3000000));
	assert_false(is_taken("a:x:3065536:5::", 3000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_of_the_design),
		cmocka_unit_test(every_type_is_read_strictly),
		cmocka_unit_test(addresses_are_numbers_or_paths),
		cmocka_unit_test(later_records_win_and_the_file_loses),
		cmocka_unit_test(a_record_that_does_not_end_is_refused),
		cmocka_unit_test(layers_add_up_within_one_source_and_are_replaced_by_the_next),
		cmocka_unit_test(rules_for_the_network_are_read_into_the_policy),
		cmocka_unit_test(a_list_of_rules_that_is_empty_is_refused),
		cmocka_unit_test(without_a_rule_what_is_public_is_allowed),
		cmocka_unit_test(more_rules_than_there_is_room_for_are_refused),
		cmocka_unit_test(what_is_wrong_in_a_file_is_told_with_its_line),
		cmocka_unit_test(a_file_without_settings_changes_nothing),
		cmocka_unit_test(depth_and_length_do_no_harm),
		cmocka_unit_test(zeros_are_settled_by_the_size_of_the_host),
		cmocka_unit_test(a_default_above_its_maximum_is_told_with_both_sources),
		cmocka_unit_test(listening_beyond_loopback_needs_insecure),
		cmocka_unit_test(the_sample_file_holds_the_defaults),
		cmocka_unit_test(the_python_manifest_makes_settings_complete),
		cmocka_unit_test(a_manifest_that_is_too_much_is_refused),
		cmocka_unit_test(ids_of_the_range_are_seen_in_all_three_files),
		cmocka_unit_test(the_config_processs_own_id_must_be_free_wherever_the_range_lies),
	};

	return cmocka_run_group_tests_name("config_parse", tests, NULL, NULL);
}
