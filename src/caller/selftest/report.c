#include "caller/selftest/selftest.h"

#include "base/clock.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define SENTENCE_MAX 256

static const char *const words[] = {
	[SELFTEST_FAILED] = "FAILED",
	[SELFTEST_OK] = "ok",
	[SELFTEST_IMPOSSIBLE] = "not possible here",
};

struct selftest_sums selftest_add_up(const struct selftest *s)
{
	struct selftest_sums sums = { 0 };

	for (unsigned i = 0; i < selftest_count(); i++) {
		enum selftest_outcome o = selftest_judge(s, i);

		sums.ok += o == SELFTEST_OK;
		sums.failed += o == SELFTEST_FAILED;
		sums.impossible += o == SELFTEST_IMPOSSIBLE;
	}
	return sums;
}

static const char *sentence(const struct selftest_probe *p, char room[static SENTENCE_MAX])
{
	if (!p->is_call)
		return p->sentence;
	(void)snprintf(room, SENTENCE_MAX, "the filter answers %s with %s", p->name, p->expected);
	return room;
}

static const char *const ways[] = { [SELFTEST_COLD] = "cold", [SELFTEST_WARM] = "warm" };

/* What was said, or why nothing was. */
static const char *got(const struct selftest *s, unsigned i)
{
	const struct selftest_fact *fact = &s->facts[selftest_way_of(s, i)][i];

	if (fact->times == 0)
		return "nothing was said";
	if (fact->times > 1)
		return "said more than once";
	return fact->got[0] == '\1' ? fact->got + 1 : fact->got;
}

/* For a person: "!net" is "another net namespace than the host's". */
static void print_failure(const struct selftest *s, unsigned i)
{
	const struct selftest_probe *p = selftest_probe(i);
	const char *way = ways[selftest_way_of(s, i)];
	static const char blank[] = "          ";

	if (p->expected[0] == '!')
		(void)printf("%s%s (%s): %s; it must be another one than the host's\n", blank,
			p->name, way, got(s, i));
	else if (p->expected[0] == '<')
		(void)printf("%s%s (%s): %s; it must be at most %s\n", blank, p->name, way,
			got(s, i), p->expected + 2);
	else
		(void)printf("%s%s (%s): %s; it must be %s\n", blank, p->name, way, got(s, i),
			p->expected);
}

static void print_group(const struct selftest *s, unsigned group)
{
	char room[SENTENCE_MAX];

	(void)printf("%s\n", selftest_group_word(group));
	for (unsigned i = 0; i < selftest_count(); i++) {
		const struct selftest_probe *p = selftest_probe(i);
		enum selftest_outcome o = selftest_judge(s, i);

		if (p->group != group)
			continue;
		if (o == SELFTEST_IMPOSSIBLE) {
			(void)printf("  %-6s  %s\n          not possible here: %s\n", "-",
				sentence(p, room), got(s, i));
			continue;
		}
		(void)printf("  %-6s  %s\n", words[o], sentence(p, room));
		if (o == SELFTEST_FAILED)
			print_failure(s, i);
	}
}

int selftest_print(const struct selftest *s)
{
	struct selftest_sums sums = selftest_add_up(s);

	for (unsigned group = 0; group < SELFTEST_GROUPS; group++)
		print_group(s, group);
	(void)printf("\n%u probes%s in %.1f s: %u ok, %u FAILED, %u not possible here.\n%s\n",
		selftest_count(),
		s->cold_only ? ", programs started cold," : ", each cold and warm,",
		(double)s->took_ns / (double)NS_PER_S, sums.ok, sums.failed, sums.impossible,
		sums.failed == 0 ? "All that was tried is contained."
				 : "NOT everything is contained: see FAILED above.");
	return fflush(stdout);
}

static json_t *results(const struct selftest *s)
{
	json_t *list = json_array();
	char room[SENTENCE_MAX];

	for (unsigned i = 0; i < selftest_count(); i++) {
		const struct selftest_probe *p = selftest_probe(i);
		json_t *one = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "layer",
			selftest_group_word(p->group), "probe", p->name, "checks",
			sentence(p, room), "outcome", words[selftest_judge(s, i)], "expected",
			p->expected, "got", got(s, i), "start", ways[selftest_way_of(s, i)]);

		if (json_array_append_new(list, one) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

int selftest_print_json(const struct selftest *s)
{
	struct selftest_sums sums = selftest_add_up(s);
	json_t *all = json_pack("{s:b, s:s, s:f, s:i, s:i, s:i, s:i, s:o}", "contained",
		sums.failed == 0, "version", gbx_version(), "seconds",
		(double)s->took_ns / (double)NS_PER_S, "probes", (int)selftest_count(), "ok",
		(int)sums.ok, "failed", (int)sums.failed, "not_possible", (int)sums.impossible,
		"results", results(s));
	int r = all ? json_dumpf(all, stdout, JSON_INDENT(1)) : -1;

	json_decref(all);
	return r < 0 || putchar('\n') == EOF ? -1 : fflush(stdout);
}
