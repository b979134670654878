#include "unit.h"

#include "base/fault.h"
#include "base/io.h"
#include "edge/front/kit.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAP   1000
#define WANT  3
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct world {
	struct event_base *base;
	struct kits kits;
};

static void set_up(struct world *w, unsigned want)
{
	*w = (struct world){ .base = event_base_new() };
	kits_init(&w->kits, w->base, want, CAP);
}

static void tear_down(struct world *w)
{
	kits_done(&w->kits);
	event_base_free(w->base);
}

static void turn(struct world *w)
{
	assert_true(event_base_loop(w->base, EVLOOP_NONBLOCK) >= 0);
}

/* As a run uses it: sealed, of its length, its output read by the loop. */
static void check(struct world *w, struct kit *k, const char *code)
{
	static const int modes[] = { O_RDWR, O_RDONLY, O_WRONLY, O_WRONLY, O_RDWR };
	struct fault f = { 0 };
	char got[16] = { 0 };
	struct stat st;

	assert_non_null(k);
	assert_int_equal(
		kit_seal(k, &(struct kit_content){ .code = code, .code_len = strlen(code) }, &f),
		0);
	assert_int_equal(fcntl(k->fds[0], F_GET_SEALS), SEALS);
	assert_int_equal(fstat(k->fds[0], &st), 0);
	assert_int_equal(st.st_size, strlen(code));
	assert_true(pread(k->fds[0], got, sizeof(got) - 1, 0) >= 0);
	assert_string_equal(got, code);
	for (unsigned i = 0; i < MSG_FDS_MAX; i++) {
		assert_int_equal(fcntl(k->fds[i], F_GETFL) & (O_ACCMODE | O_NONBLOCK), modes[i]);
		assert_int_equal(fcntl(k->fds[i], F_GETFD), FD_CLOEXEC);
	}
	assert_int_equal(fcntl(k->fds[1], F_SETFL, O_NONBLOCK), 0); /* so that a mistake ends */
	assert_int_equal(read(k->fds[1], got, 1), 0);
	assert_int_equal(io_write_all(k->fds[2], "one", 3), 0);
	assert_int_equal(io_write_all(k->fds[3], "other", 5), 0);
	turn(w);
	assert_int_equal(k->out.kept.total, 3);
	assert_int_equal(k->err.kept.total, 5);
	kit_destroy(k);
}

static void a_kit_made_ahead_is_like_one_made_now(void **state)
{
	static const char *const codes[] = { "print(1)", "x", "" };
	struct fault f = { 0 };
	struct world w;

	(void)state;
	set_up(&w, WANT);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(w.kits.count, 0);
		check(&w, kits_take(&w.kits, &f), codes[i]);
	}
	kits_fill(&w.kits);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(w.kits.count, WANT - i);
		check(&w, kits_take(&w.kits, &f), codes[i]);
	}
	tear_down(&w);
}

static void the_stock_is_filled_when_asked_for_and_never_over_its_size(void **state)
{
	struct fault f = { 0 };
	struct world w;

	(void)state;
	set_up(&w, WANT);
	kits_fill(&w.kits);
	assert_int_equal(w.kits.count, WANT);
	kit_destroy(kits_take(&w.kits, &f));
	assert_int_equal(w.kits.count, WANT - 1); /* nobody has asked */
	kits_fill(&w.kits);
	kits_fill(&w.kits);
	assert_int_equal(w.kits.count, WANT);
	tear_down(&w);

	set_up(&w, 10 * KITS_MAX);
	kits_fill(&w.kits);
	assert_int_equal(w.kits.count, KITS_MAX);
	tear_down(&w);
}

static void without_descriptors_a_kit_is_refused_and_nothing_leaks(void **state)
{
	struct rlimit old, none;
	struct fault f = { 0 };
	struct world w;

	(void)state;
	set_up(&w, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	/* Each number of free descriptors fails at another of the calls. */
	for (unsigned room = 0; room < 8; room++) {
		struct kit *k;
		int before = dup(0), after;

		(void)close(before);
		none = (struct rlimit){ (rlim_t)before + room, old.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		kits_fill(&w.kits);
		assert_int_equal(w.kits.count, 0);
		k = kits_take(&w.kits, &f);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
		if (k)
			fail_msg("a kit of %u descriptors", room);
		assert_int_equal(f.code, -EMFILE);
		after = dup(0);
		(void)close(after);
		assert_int_equal(after, before);
	}
	kits_fill(&w.kits);
	assert_int_equal(w.kits.count, 1);
	tear_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kit_made_ahead_is_like_one_made_now),
		cmocka_unit_test(the_stock_is_filled_when_asked_for_and_never_over_its_size),
		cmocka_unit_test(without_descriptors_a_kit_is_refused_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
