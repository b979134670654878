#include "unit.h"

#include "base/check.h"
#include "wire/layer.h"
#include "wire/settings.h"

#include <stdio.h>
#include <string.h>

#define PUT(array, text) (void)snprintf(array, sizeof(array), "%s", text)

/* Settings that a server would start with. */
static struct settings good(void)
{
	static const struct run_limits def = { 3000000, UINT64_C(64) << 20, 0, 500, 32 };
	static const struct run_limits max = { 300000000, UINT64_C(1) << 30, 0, 2000, 512 };
	struct settings s;

	memset(&s, 0, sizeof(s));
	s.listen = (struct listen_address){
		.kind = LISTEN_INET, .port = 8000, .ip = { 127, 0, 0, 1 }
	};
	s.uid_base = 2000000;
	s.max_runs = 4;
	s.max_queue = 64;
	s.pool_size = 8;
	s.max_builds = 2;
	s.cell_max_age_us = s.zygote_max_age_us = 600000000;
	s.zygote_max_forks = 2000;
	s.cage_runs = 100;
	s.def = def;
	s.max = max;
	s.output_bytes = 1 << 20;
	s.body_bytes = 4 << 20;
	s.code_bytes = 2 << 20;
	s.workspace_inodes = 4096;
	s.artifact_files = 100;
	s.artifact_file_bytes = 16 << 20;
	s.artifact_bytes = 64 << 20;
	s.artifact_inline_bytes = 1 << 20;
	s.artifact_store = 1 << 30;
	s.artifact_keep_us = 600000000;
	PUT(s.artifact_dir, "/var/tmp");
	s.network_connections = 64;
	s.network_bytes = 256 << 20;
	s.network_rate = 64 << 20;
	s.max_connections = 1024;
	s.shutdown_grace_us = 30000000;
	s.log_level = 2;
	PUT(s.runtime.name, "python");
	PUT(s.runtime.main_file, "main.py");
	PUT(s.runtime.argv[0], "/usr/bin/python3");
	PUT(s.runtime.env[0], "LANG=C.UTF-8");
	PUT(s.runtime.roots[0], "/usr/bin");
	PUT(s.runtime.roots[1], "?/usr/share/fonts");
	return s;
}

static void refuse(const struct settings *s, const char *word)
{
	const char *why = settings_fault(s);

	if (!why)
		fail_msg("settings with a wrong %s are taken", word);
	else if (!strstr(why, word))
		fail_msg("\"%s\" does not name %s", why, word);
}

#define REFUSE(word, change)                \
	do {                                \
		struct settings s = good(); \
		change;                     \
		refuse(&s, word);           \
	} while (0)

static void good_settings_have_no_fault(void **state)
{
	struct settings s = good();

	(void)state;
	assert_null(settings_fault(&s));
}

static void every_number_has_a_range(void **state)
{
	(void)state;
	REFUSE("insecure", s.insecure = 2);
	REFUSE("uid-base", s.uid_base = 65535);
	REFUSE("uid-base", s.uid_base = UINT32_MAX);
	REFUSE("max-runs", s.max_runs = 121);
	REFUSE("max-queue", s.max_queue = 4097);
	REFUSE("pool-size", s.pool_size = 381);
	REFUSE("max-builds", s.max_builds = 0);
	REFUSE("cell-max-age", s.cell_max_age_us = 0);
	REFUSE("cage-runs", s.cage_runs = 0);
	REFUSE("cold", s.cold = 2);
	REFUSE("zygote-max-forks", s.zygote_max_forks = 0);
	REFUSE("zygote-max-age", s.zygote_max_age_us = 0);
	REFUSE("always-rehearse", s.always_rehearse = 2);
	REFUSE("urgent", s.urgent = 2);
	REFUSE("timeout", s.def.timeout_us = 0);
	REFUSE("memory", s.def.memory_bytes = LIMIT_MEMORY_MIN_BYTES - 1);
	REFUSE("cpu", s.def.cpu_milli = LIMIT_CPU_MIN_MILLI - 1);
	REFUSE("pids", s.def.pids = 0);
	REFUSE("max-timeout", s.max.timeout_us = LIMIT_TIMEOUT_MAX_US + 1);
	REFUSE("max-memory", s.max.memory_bytes = LIMIT_MEMORY_MAX_BYTES + 1);
	REFUSE("max-cpu", s.max.cpu_milli = LIMIT_CPU_MAX_MILLI + 1);
	REFUSE("max-pids", s.max.pids = LIMIT_PIDS_MAX + 1);
	REFUSE("output-bytes", s.output_bytes = 0);
	REFUSE("body-bytes", s.body_bytes = UINT64_MAX);
	REFUSE("code-bytes", s.code_bytes = CODE_BYTES_MAX + 1);
	REFUSE("workspace-inodes", s.workspace_inodes = 1);
	REFUSE("network is", s.network = 3);
	REFUSE("network_why", s.network_why = NETWORK_WHY_MAX);
	REFUSE("network-allow", s.network_allow = NETWORK_RULES_MAX + 1);
	REFUSE("network-deny", s.network_deny = NETWORK_RULES_MAX + 1);
	REFUSE("network-connections", s.network_connections = 0);
	REFUSE("network-connections", s.network_connections = 1025);
	REFUSE("network-bytes", s.network_bytes = 0);
	REFUSE("network-bytes", s.network_bytes = LIMIT_MEMORY_MAX_BYTES + 1);
	REFUSE("network-rate", s.network_rate = 1023);
	REFUSE("network-rate", s.network_rate = LIMIT_MEMORY_MAX_BYTES + 1);
	REFUSE("max-connections", s.max_connections = 0);
	REFUSE("shutdown-grace", s.shutdown_grace_us = UINT64_MAX);
	REFUSE("log-level", s.log_level = 4);
	REFUSE("cpu_time", s.max.cpu_time_us = UINT64_MAX);
	REFUSE("cpu_time", s.def.cpu_time_us = UINT64_MAX);
	REFUSE("uid_range_taken", s.uid_range_taken = 2);
}

static void what_is_computed_must_have_been(void **state)
{
	(void)state;
	REFUSE("max-runs", s.max_runs = 0);
	REFUSE("max-memory", s.max.memory_bytes = 0);
	REFUSE("max-cpu", s.max.cpu_milli = 0);
}

static void no_default_is_above_its_maximum(void **state)
{
	(void)state;
	REFUSE("max-timeout", s.def.timeout_us = s.max.timeout_us + 1);
	REFUSE("max-memory", s.def.memory_bytes = s.max.memory_bytes + 1);
	REFUSE("max-cpu", s.def.cpu_milli = s.max.cpu_milli + 1);
	REFUSE("max-pids", s.def.pids = s.max.pids + 1);
}

static void a_zygote_is_not_worn_before_the_pool_is_full(void **state)
{
	struct settings s = good();

	(void)state;
	s.zygote_max_forks = 2 * s.pool_size + 1;
	assert_null(settings_fault(&s));
	s.zygote_max_forks--;
	refuse(&s, "zygote-max-forks");
}

static void texts_that_do_not_end_are_refused(void **state)
{
	(void)state;
	REFUSE("cgroup", memset(s.cgroup, 'x', sizeof(s.cgroup)));
	REFUSE("preload", memset(s.preload, 'x', sizeof(s.preload)));
	REFUSE("image", memset(s.image, 'x', sizeof(s.image)));
	REFUSE("image-dir", memset(s.image_dir, 'x', sizeof(s.image_dir)));
	REFUSE("listen",
		(s.listen.kind = LISTEN_UNIX, memset(s.listen.path, '/', sizeof(s.listen.path))));
	REFUSE("runtime", memset(s.runtime.name, 'x', sizeof(s.runtime.name)));
	REFUSE("runtime", memset(s.runtime.version, 'x', sizeof(s.runtime.version)));
	REFUSE("runtime", memset(s.runtime.main_file, 'x', sizeof(s.runtime.main_file)));
	REFUSE("runtime", memset(s.runtime.argv, 'x', sizeof(s.runtime.argv)));
	REFUSE("runtime", memset(s.runtime.env[RUNTIME_ENV_MAX - 1], 'x', RUNTIME_PATH_MAX));
	REFUSE("runtime", memset(s.runtime.roots[1], 'x', RUNTIME_PATH_MAX));
}

static void names_of_modules_are_what_import_takes(void **state)
{
	static const char *const right[] = { "", "numpy", "a1,_b", "xml.dom.minidom,A", "azAZ" };
	static const char *const wrong[] = { ",", "a,", ",a", "a,,b", ".a", "a.", "a..b", "1a",
		"a.1", "a b", "a\nb", "/etc", "a-b", "a;b", "a{", "a[", "@a", "`a", "\xc3\xa4" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++)
		assert_true(is_modules(right[i]));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(is_modules(wrong[i]));
	REFUSE("preload", s.preload[0] = ',');
}

static void layers_that_do_not_exist_are_refused(void **state)
{
	(void)state;
	REFUSE("allow-degraded", s.allow_degraded = LAYER_BIT(LAYER_MAX));
}

static void listening_beyond_loopback_needs_insecure(void **state)
{
	struct settings own = good();

	(void)state;
	memset(own.listen.ip, 0, sizeof(own.listen.ip));
	refuse(&own, "listen");
	own.insecure = 1;
	assert_null(settings_fault(&own));

	own = good();
	own.listen.kind = LISTEN_INET6;
	refuse(&own, "listen"); /* 7f00:1:: */
	memset(own.listen.ip, 0, sizeof(own.listen.ip));
	own.listen.ip[15] = 1;
	assert_null(settings_fault(&own));

	own.listen.kind = LISTEN_UNIX;
	PUT(own.listen.path, "/run/g.sock");
	assert_null(settings_fault(&own));
	assert_true(listen_is_local(&own.listen));
	own.listen.kind = LISTEN_UNIX + 1;
	assert_false(listen_is_local(&own.listen));

	REFUSE("listen", s.listen.kind = LISTEN_UNIX); /* without a path */
	REFUSE("listen", (s.listen.kind = LISTEN_UNIX, PUT(s.listen.path, "g.sock")));
	REFUSE("listen", s.listen.kind = 3);
	REFUSE("listen", s.listen.port = 65536);
}

static void a_runtime_cannot_climb(void **state)
{
	static const char *const bad[] = { "usr", "../usr", "/usr/..", "/../etc", "/a/../b",
		"/a//b", "/", "?", "?usr", "\?\?/usr" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		REFUSE("roots", PUT(s.runtime.roots[1], bad[i]));
	REFUSE("roots", s.runtime.roots[0][0] = '\0');
	REFUSE("argv", PUT(s.runtime.argv[0], "python3"));
	REFUSE("argv", s.runtime.argv[0][0] = '\0');
	REFUSE("main-file", PUT(s.runtime.main_file, "../main.py"));
	REFUSE("main-file", PUT(s.runtime.main_file, ".."));
	REFUSE("main-file", PUT(s.runtime.main_file, "a/main.py"));
	REFUSE("main-file", s.runtime.main_file[0] = '\0');
	REFUSE("name", s.runtime.name[0] = '\0');
	REFUSE("env", PUT(s.runtime.env[0], "LANG"));
	REFUSE("env", PUT(s.runtime.env[0], "=C"));
	REFUSE("runtime", s.runtime.full_proc = 2);
	REFUSE("runtime", s.runtime.reports = 2);
}

static void lists_may_be_full(void **state)
{
	struct settings s = good();

	(void)state;
	for (unsigned i = 0; i < RUNTIME_ENV_MAX; i++)
		PUT(s.runtime.env[i], "A=");
	for (unsigned i = 0; i < RUNTIME_ROOTS_MAX; i++)
		PUT(s.runtime.roots[i], "/usr");
	assert_null(settings_fault(&s));
	PUT(s.runtime.roots[RUNTIME_ROOTS_MAX - 1], "usr");
	refuse(&s, "roots");
}

static void names_with_dots_are_no_climbing(void **state)
{
	struct settings s = good();

	(void)state;
	PUT(s.runtime.roots[1], "/usr/lib/a..b/..c/d..");
	assert_null(settings_fault(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_settings_have_no_fault),
		cmocka_unit_test(every_number_has_a_range),
		cmocka_unit_test(what_is_computed_must_have_been),
		cmocka_unit_test(no_default_is_above_its_maximum),
		cmocka_unit_test(a_zygote_is_not_worn_before_the_pool_is_full),
		cmocka_unit_test(texts_that_do_not_end_are_refused),
		cmocka_unit_test(names_of_modules_are_what_import_takes),
		cmocka_unit_test(layers_that_do_not_exist_are_refused),
		cmocka_unit_test(listening_beyond_loopback_needs_insecure),
		cmocka_unit_test(a_runtime_cannot_climb),
		cmocka_unit_test(lists_may_be_full),
		cmocka_unit_test(names_with_dots_are_no_climbing),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
