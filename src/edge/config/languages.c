#include "edge/config/languages.h"

#include "base/fault.h"
#include "edge/config/document.h"
#include "edge/config/runtime.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FOLDER_MAX 64

/* Its place: that of the one of the same name, which it replaces, or a new one. */
static struct language *place(struct languages *l, const char *name)
{
	for (unsigned i = 0; i < l->count; i++) {
		if (strcmp(l->of[i].runtime.name, name) == 0)
			return &l->of[i];
	}
	return l->count < LANGUAGES_MAX ? &l->of[l->count++] : NULL;
}

static int read_one(struct languages *l, languages_set *operators, const char *folder,
	size_t folder_len, const char *text, struct fault *f)
{
	static struct language read; /* static: too large for a careful stack */
	char name[FOLDER_MAX + sizeof("/runtime.yaml")];
	const struct document d = { text, strlen(text), name };
	struct language *to;
	int r;

	if (folder_len == 0 || folder_len > FOLDER_MAX)
		return fault_say(f, -EINVAL, "runtimes: a folder's name has 1 to %d bytes, not %zu",
			FOLDER_MAX, folder_len);
	(void)snprintf(name, sizeof(name), "%.*s/runtime.yaml", (int)folder_len, folder);
	for (char *p = name; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	r = runtime_parse(&d, &read, f);
	if (r < 0)
		return r;
	if (strlen(read.runtime.name) != folder_len ||
		memcmp(read.runtime.name, folder, folder_len) != 0)
		return fault_say(f, -EINVAL,
			"%s: name is \"%s\", but a language has the name of its folder", name,
			read.runtime.name);
	to = place(l, read.runtime.name);
	if (!to)
		return fault_say(
			f, -E2BIG, "%s: there are more than %u languages", name, LANGUAGES_MAX);
	*to = read;
	if (operators)
		*operators |= (languages_set)1 << (to - l->of);
	return 0;
}

int languages_read(struct languages *l, languages_set *operators, const char *bytes, size_t len,
	struct fault *f)
{
	const char *end = bytes + len, *at = bytes;

	while (at < end) {
		const char *stop = memchr(at, '\0', (size_t)(end - at));
		const char *equals = stop ? strchr(at, '=') : NULL;
		bool is_marked = *at == LANGUAGES_MARK;
		int r;

		if (!equals)
			return fault_say(f, -EINVAL, "runtimes: a record without an end or a name");
		if ((operators != NULL) == is_marked) {
			at += is_marked;
			r = read_one(l, operators, at, (size_t)(equals - at), equals + 1, f);
			if (r < 0)
				return r;
		}
		at = stop + 1;
	}
	return 0;
}

static bool goes_by(const struct offer *o, const char *word)
{
	if (strcmp(o->name, word) == 0)
		return true;
	for (unsigned i = 0; i < LANGUAGE_ALIASES_MAX && o->aliases[i][0]; i++) {
		if (strcmp(o->aliases[i], word) == 0)
			return true;
	}
	return false;
}

static bool is_in(languages_set set, unsigned i)
{
	return (set & (languages_set)1 << i) != 0;
}

static int check_word(const struct languages *l, languages_set operators, unsigned own,
	const char *word, struct fault *f)
{
	for (unsigned i = 0; i < l->count; i++) {
		bool other = is_in(operators, i) && !is_in(operators, own);
		unsigned here = other ? i : own, there = other ? own : i;

		if (i != own && goes_by(&l->of[i].offer, word))
			return fault_say(f, -EINVAL,
				"%s/runtime.yaml: \"%s\" is also a name of %s: each stands for one "
				"language",
				l->of[here].runtime.name, word, l->of[there].runtime.name);
	}
	return 0;
}

static int check_words(
	const struct languages *l, languages_set operators, unsigned own, struct fault *f)
{
	const struct offer *o = &l->of[own].offer;
	int r = check_word(l, operators, own, o->name, f);

	for (unsigned i = 0; r == 0 && i < LANGUAGE_ALIASES_MAX && o->aliases[i][0]; i++)
		r = check_word(l, operators, own, o->aliases[i], f);
	return r;
}

static void put_first(struct languages *l, unsigned i)
{
	static struct language first; /* static: too large for a careful stack */

	first = l->of[i];
	for (; i > 0; i--)
		l->of[i] = l->of[i - 1];
	l->of[0] = first;
}

int languages_settle(struct languages *l, languages_set operators, struct fault *f)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < l->count; i++)
		r = check_words(l, operators, i, f);
	for (unsigned i = 1; i < l->count; i++) {
		if (strcmp(l->of[i].runtime.name, LANGUAGE_DEFAULT) == 0)
			put_first(l, i);
	}
	return r;
}
