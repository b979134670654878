#include "speech_play.h"

#include "unit.h"

#include "api/network.h"

#include <stdlib.h>
#include <string.h>

struct play play;

/* ---- Hearing ---- */

struct ear {
	struct speech speech;
	uint8_t waits[PLAY_MAX];
	size_t len, gone; /* of what waits; of it what has passed */
	size_t used, passed;
	enum network_verdict verdict;
};

static void hear(struct ear *e, const uint8_t *bytes, size_t len, bool end)
{
	struct speech_place where = { &play.rules, { { [10] = 0xff, [11] = 0xff, 8, 8, 8, 8 } },
		443 };
	struct speech_found found;
	uint8_t *block;

	if (e->verdict != NETWORK_ALLOWED || len == 0)
		return;
	memcpy(e->waits + e->len, bytes, len);
	e->len += len;
	block = malloc(e->len);
	assert_non_null(block);
	memcpy(block, e->waits, e->len);
	speech_hear(&e->speech, &where, block, e->len, end, &found);
	free(block);
	assert_true(found.used <= found.pass && found.pass <= e->len);
	e->used += found.used;
	e->passed += found.pass > e->gone ? found.pass - e->gone : 0;
	e->gone = found.pass > e->gone ? found.pass : e->gone;
	e->verdict = found.verdict;
	if (e->verdict != NETWORK_ALLOWED)
		memcpy(play.name, found.name, sizeof(play.name));
	e->len -= found.used;
	e->gone -= found.used;
	memmove(e->waits, e->waits + found.used, e->len);
	assert_true(e->verdict != NETWORK_ALLOWED || e->len <= SPEECH_WAIT_MAX);
}

static struct ear *listen_to(size_t cut, size_t piece, bool end)
{
	static struct ear e;

	memset(&e, 0, sizeof(e));
	hear(&e, play.bytes, cut, end && cut == play.len);
	for (size_t at = cut; at < play.len; at += piece) {
		size_t n = piece < play.len - at ? piece : play.len - at;

		hear(&e, play.bytes + at, n, end && at + n == play.len);
	}
	return &e;
}

/* The verdict about what the stream is. *ret_passed: bytes that went on. */
enum network_verdict play_hear(bool end, size_t *ret_passed)
{
	struct ear *e = listen_to(play.len, 1, end);
	enum network_verdict v = e->verdict;
	enum speech_phase phase = e->speech.phase;
	size_t used = e->used, passed = e->passed;

	for (size_t cut = 0; cut <= play.len; cut += play.len < 2000 ? 1 : 997) {
		e = listen_to(cut, cut == 0 ? 1 : play.len, end);
		assert_int_equal(e->verdict, v);
		if (v == NETWORK_ALLOWED) {
			assert_int_equal(e->used, used);
			assert_int_equal(e->speech.phase, phase);
			assert_int_equal(e->passed, passed);
		}
	}
	*ret_passed = passed;
	return v;
}

void play_clear(void)
{
	play.len = 0;
}

void play_add(const void *bytes, size_t len)
{
	assert_true(play.len + len <= PLAY_MAX);
	memcpy(play.bytes + play.len, bytes, len);
	play.len += len;
}

void play_add_text(const char *text)
{
	play_add(text, strlen(text));
}

void play_add_hello(struct hello_play h)
{
	play.len += hello_play_make(&h, play.bytes + play.len);
}

/* Of TLS: bytes of one value. */
void play_add_record(uint8_t type, size_t len, uint8_t value)
{
	uint8_t head[5] = { type, 3, 3, (uint8_t)(len >> 8), (uint8_t)len };

	play_add(head, 5);
	memset(play.bytes + play.len, value, len);
	play.len += len;
}

enum network_verdict play_verdict(void)
{
	size_t passed;
	enum network_verdict v = play_hear(false, &passed);

	assert_true(v != NETWORK_ALLOWED || passed == play.len);
	return v;
}

enum network_verdict play_say(const char *text)
{
	play_clear();
	play_add_text(text);
	return play_verdict();
}

void play_allow(struct network_policy *p, const char *text)
{
	size_t at;

	assert_null(network_rule_parse(text, strlen(text), &p->allow[p->allow_count++], &at));
}

void play_deny(struct network_policy *p, const char *text)
{
	size_t at;

	assert_null(network_rule_parse(text, strlen(text), &p->deny[p->deny_count++], &at));
}

int play_begin(void **state)
{
	(void)state;
	memset(&play.rules, 0, sizeof(play.rules));
	play_allow(&play.rules.ceiling, "*");
	play_allow(&play.rules.asked, "example.org");
	play_allow(&play.rules.asked, "*.example.net:443");
	play_allow(&play.rules.asked, "example.com:80");
	play_deny(&play.rules.asked, "bad.example.net");
	return 0;
}

size_t play_passed_in_two(size_t cut)
{
	return listen_to(cut, play.len, false)->passed;
}
