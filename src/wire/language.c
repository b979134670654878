#include "wire/language.h"

#include "base/likeness.h"

#include <stdio.h>
#include <string.h>

static bool is_text(const char *text, size_t room)
{
	return memchr(text, '\0', room) != NULL;
}

/* A word of the API: nothing in it needs to be quoted anywhere. */
static bool is_name(const char *text)
{
	if (*text < 'a' || *text > 'z')
		return false;
	for (; *text; text++) {
		bool is_sign = *text == '+' || *text == '-' || *text == '.' || *text == '#';

		if (!is_sign && (*text < 'a' || *text > 'z') && (*text < '0' || *text > '9'))
			return false;
	}
	return true;
}

static bool is_printable(const char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			return false;
	}
	return true;
}

/* 0 stands for the server's own. */
static bool is_limit(uint64_t value, uint64_t least, uint64_t most)
{
	return value == 0 || (value >= least && value <= most);
}

const char *language_limits_fault(const struct run_limits *l)
{
	if (!is_limit(l->timeout_us, LIMIT_TIMEOUT_MIN_US, LIMIT_TIMEOUT_MAX_US))
		return "limits: timeout is out of range";
	if (!is_limit(l->memory_bytes, LIMIT_MEMORY_MIN_BYTES, LIMIT_MEMORY_MAX_BYTES))
		return "limits: memory is out of range";
	if (!is_limit(l->cpu_milli, LIMIT_CPU_MIN_MILLI, LIMIT_CPU_MAX_MILLI))
		return "limits: cpu is out of range";
	if (!is_limit(l->pids, LIMIT_PIDS_MIN, LIMIT_PIDS_MAX))
		return "limits: pids is out of range";
	return l->cpu_time_us != 0 ? "limits: there is none of CPU time" : NULL;
}

static const char *lists_fault(const struct offer *o)
{
	for (size_t i = 0; i < LANGUAGE_ALIASES_MAX; i++) {
		if (!is_text(o->aliases[i], sizeof(o->aliases[i])) ||
			(o->aliases[i][0] && !is_name(o->aliases[i])))
			return "language: an alias is not of small letters, digits and \"+-.#\"";
	}
	for (size_t i = 0; i < LANGUAGE_SUFFIXES_MAX; i++) {
		if (!is_text(o->suffixes[i], sizeof(o->suffixes[i])) ||
			!is_printable(o->suffixes[i]))
			return "language: a suffix is no text";
	}
	if (o->aliases[LANGUAGE_ALIASES_MAX - 1][0] || o->suffixes[LANGUAGE_SUFFIXES_MAX - 1][0])
		return "language: a list has no end";
	return NULL;
}

/* What is told of how a program of it starts. */
static const char *program_fault(const struct offer *o)
{
	if (!is_text(o->main_file, sizeof(o->main_file)) || o->main_file[0] == '\0')
		return "language: main-file is missing";
	if (!is_text(o->package, sizeof(o->package)) || !is_printable(o->package))
		return "language: package is no text";
	if (o->is_image > 1 || o->compiled > 1 || o->reports > 1 || o->reserved != 0)
		return "language: a flag is neither 0 nor 1";
	if (!is_text(o->inventory, sizeof(o->inventory)))
		return "language: inventory is no text";
	return NULL;
}

const char *offer_fault(const struct offer *o)
{
	const char *why = lists_fault(o);

	if (!is_text(o->name, sizeof(o->name)) ||
		!(o->is_image ? image_name_is_valid(o->name) : is_name(o->name)))
		return o->is_image
			       ? "language: a name is none of an image"
			       : "language: a name is not of small letters, digits and \"+-.#\"";
	if (!why)
		why = program_fault(o);
	if (!why)
		why = language_limits_fault(&o->limits);
	return why ? why : language_limits_fault(&o->compile_limits);
}

static const char *compiler_fault(const struct language *l)
{
	struct runtime rt = l->runtime;

	if ((l->compile_argv[0][0] != '\0') != (l->offer.compiled == 1))
		return "language: it is compiled, or it is not";
	if (!l->offer.compiled)
		return NULL;
	memcpy(rt.argv, l->compile_argv, sizeof(rt.argv));
	return runtime_fault(&rt);
}

const char *language_fault(const struct language *l)
{
	const char *why = runtime_fault(&l->runtime);

	if (!why && l->runtime.roots[0][0] == '\0')
		why = "runtime: roots is empty";
	if (!why)
		why = offer_fault(&l->offer);
	if (!why)
		why = compiler_fault(l);
	if (!why && (strcmp(l->offer.name, l->runtime.name) != 0 ||
			    strcmp(l->offer.main_file, l->runtime.main_file) != 0))
		why = "language: it goes by two names";
	return why;
}

const char *offers_put(
	struct offers *offers, uint32_t number, uint32_t edition, const struct offer *o)
{
	const char *why = NULL;

	if (number > offers->count || number >= LANGUAGES_MAX)
		why = "language: its number is not the next one";
	else if (number < offers->count && !(offers->of[number].is_image && o->is_image))
		why = "language: only an image takes an image's place";
	else if (o->name[0])
		why = offer_fault(o);
	else if (!o->is_image)
		why = "language: it has no name";
	if (why)
		return why;
	offers->of[number] = *o;
	offers->editions[number] = edition;
	offers->count += number == offers->count;
	return NULL;
}

static bool is_it(const char *word, const char *name, size_t len)
{
	return strlen(word) == len && memcmp(word, name, len) == 0;
}

int offers_find(const struct offers *offers, const char *name, size_t len)
{
	for (uint32_t i = 0; i < offers->count; i++) {
		const struct offer *o = &offers->of[i];

		if (o->is_image)
			continue;
		if (is_it(o->name, name, len))
			return (int)i;
		for (size_t k = 0; k < LANGUAGE_ALIASES_MAX && o->aliases[k][0]; k++) {
			if (is_it(o->aliases[k], name, len))
				return (int)i;
		}
	}
	return -1;
}

int offers_find_image(const struct offers *offers, const char *name, size_t len)
{
	for (uint32_t i = 0; i < offers->count; i++)
		if (len > 0 && offers->of[i].is_image && is_it(offers->of[i].name, name, len))
			return (int)i;
	return -1;
}

size_t offers_names(const struct offers *offers, bool images, char *ret, size_t room)
{
	size_t at = 0;

	ret[0] = '\0';
	for (uint32_t i = 0; i < offers->count; i++) {
		if (offers->of[i].is_image == images && offers->of[i].name[0] && at < room)
			at += (size_t)snprintf(ret + at, room - at, "%s%s", at > 0 ? ", " : "",
				offers->of[i].name);
	}
	return at;
}

const char *offers_like(const struct offers *offers, bool images, const char *name, size_t len)
{
	const char *best = NULL;
	unsigned best_far = LIKENESS_NONE, far;

	for (uint32_t i = 0; i < offers->count; i++) {
		const struct offer *o = &offers->of[i];
		const char *word = o->name;

		if (o->is_image != images)
			continue;
		for (size_t k = 0; *word; word = o->aliases[k++]) {
			far = likeness(name, len, word);
			if (far < best_far) {
				best = word;
				best_far = far;
			}
		}
	}
	return best;
}

static uint64_t choose(uint64_t own, uint64_t usual, uint64_t most)
{
	uint64_t value = own ? own : usual;

	return value < most ? value : most;
}

static void fit(const struct run_limits *own, const struct settings *s, struct run_limits *ret)
{
	*ret = s->def;
	ret->timeout_us = choose(own->timeout_us, s->def.timeout_us, s->max.timeout_us);
	ret->memory_bytes = choose(own->memory_bytes, s->def.memory_bytes, s->max.memory_bytes);
	ret->cpu_milli = (uint32_t)choose(own->cpu_milli, s->def.cpu_milli, s->max.cpu_milli);
	ret->pids = (uint32_t)choose(own->pids, s->def.pids, s->max.pids);
}

void offer_limits(const struct offer *o, const struct settings *s, struct run_limits *ret)
{
	fit(&o->limits, s, ret);
}

void offer_compile_limits(const struct offer *o, const struct settings *s, struct run_limits *ret)
{
	fit(&o->compile_limits, s, ret);
	ret->cpu_time_us = 0;
}

/* One that there is not is as a language without limits of its own. */
static const struct offer *offer_of(const struct offers *offers, uint32_t language)
{
	static const struct offer none = { .compiled = 0 };

	return language < offers->count ? &offers->of[language] : &none;
}

void offers_limits(const struct offers *offers, uint32_t language, const struct settings *s,
	struct run_limits *ret)
{
	offer_limits(offer_of(offers, language), s, ret);
}

void offers_compile_limits(const struct offers *offers, uint32_t language, const struct settings *s,
	struct run_limits *ret)
{
	offer_compile_limits(offer_of(offers, language), s, ret);
}
