#include "caller/selftest/selftest.h"

#include "base/check.h"
#include "base/io.h"
#include "caller/selftest/calls.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LAYER_API SELFTEST_API

static const struct selftest_probe probes[] = {
#define X(layer, source, name, expected, sentence) \
	{ LAYER_##layer, SELFTEST_##source, name, expected, sentence, false },
	SELFTEST_PROBES(X)
#undef X
#define X(name, number, args, expected) { LAYER_SECCOMP, SELFTEST_CALLS, name, expected, "", true },
		SELFTEST_CALLS(X)
#undef X
#ifdef __x86_64__
			{ LAYER_SECCOMP, SELFTEST_CALLS, "gate.int80",
				"refused|signal 31|signal 11",
				"the 32-bit gate does not lead round the filter", false },
#endif
};
_Static_assert(ARRAY_LEN(probes) <= SELFTEST_PROBES_MAX, "a fact for each probe");

#define MARK_IMPOSSIBLE '\1' /* no cell can say it: control bytes are replaced */

unsigned selftest_count(void)
{
	return ARRAY_LEN(probes);
}

const struct selftest_probe *selftest_probe(unsigned i)
{
	CHECK(i < ARRAY_LEN(probes));
	return &probes[i];
}

const char *selftest_group_word(unsigned group)
{
	return group == SELFTEST_API ? "replies" : layer_word(group);
}

static struct selftest_fact *find(struct selftest *s, enum selftest_source source, const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(probes); i++)
		if (probes[i].source == source && strcmp(probes[i].name, name) == 0)
			return &s->facts[s->way][i];
	return NULL;
}

/* Letters, digits and marks of ASCII only: it goes to a terminal. */
static void launder(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

void selftest_say(
	struct selftest *s, enum selftest_source source, const char *name, const char *got)
{
	struct selftest_fact *fact = find(s, source, name);

	if (!fact)
		return;
	(void)snprintf(fact->got, sizeof(fact->got), "%s", got);
	launder(fact->got);
	fact->times++;
}

void selftest_sayf(struct selftest *s, const char *name, const char *fmt, ...)
{
	char got[SELFTEST_GOT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(got, sizeof(got), fmt, ap);
	va_end(ap);
	selftest_say(s, SELFTEST_HOST, name, got);
}

void selftest_impossible(struct selftest *s, const char *name, const char *why)
{
	struct selftest_fact *fact = find(s, SELFTEST_HOST, name);

	if (!fact)
		return;
	(void)snprintf(fact->got, sizeof(fact->got), "%c%s", MARK_IMPOSSIBLE, why);
	fact->times++;
}

static bool is_word_of(const char *got, const char *words)
{
	size_t len = strlen(got);

	if (len == 0 || strchr(got, '|'))
		return false;
	for (const char *p = words; p; p = strchr(p, '|')) {
		p += *p == '|';
		if (strncmp(p, got, len) == 0 && (p[len] == '|' || p[len] == '\0'))
			return true;
	}
	return false;
}

/* A namespace's link, as the program or the kernel gives it, and not the one of this process. */
static bool is_apart(const char *got, const char *name)
{
	char path[64], own[64];
	ssize_t n;
	size_t len = strlen(name);

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	n = readlink(path, own, sizeof(own) - 1);
	if (n <= 0)
		return false;
	own[n] = '\0';
	return strncmp(got, name, len) == 0 && got[len] == ':' && got[len + 1] == '[' &&
	       strcmp(got, own) != 0;
}

static bool is_at_most(const char *got, const char *most)
{
	uint64_t n, limit;

	return io_parse_u64(got, &n) == 0 && io_parse_u64(most, &limit) == 0 && n <= limit;
}

enum selftest_outcome selftest_judge_way(
	const struct selftest *s, unsigned i, enum selftest_way way)
{
	const struct selftest_fact *fact = &s->facts[way][i];
	const char *expected = selftest_probe(i)->expected, *got = fact->got;
	bool holds;

	if (fact->times != 1)
		return SELFTEST_FAILED;
	if (got[0] == MARK_IMPOSSIBLE)
		return SELFTEST_IMPOSSIBLE;
	if (expected[0] == '!')
		holds = is_apart(got, expected + 1);
	else if (expected[0] == '<')
		holds = is_at_most(got, expected + 2);
	else
		holds = is_word_of(got, expected);
	return holds ? SELFTEST_OK : SELFTEST_FAILED;
}

enum selftest_outcome selftest_judge(const struct selftest *s, unsigned i)
{
	return selftest_judge_way(s, i, selftest_way_of(s, i));
}

/* The worse of the two; SELFTEST_FAILED is the least. */
enum selftest_way selftest_way_of(const struct selftest *s, unsigned i)
{
	enum selftest_outcome cold = selftest_judge_way(s, i, SELFTEST_COLD);

	if (s->cold_only || cold == SELFTEST_FAILED)
		return SELFTEST_COLD;
	/* What the one way could not tell the other may. */
	if (cold == SELFTEST_IMPOSSIBLE &&
		selftest_judge_way(s, i, SELFTEST_WARM) == SELFTEST_IMPOSSIBLE)
		return SELFTEST_COLD;
	return SELFTEST_WARM;
}
