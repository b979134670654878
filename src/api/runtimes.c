#include "api/runtimes.h"

#include "api/compile.h"
#include "api/fields.h"
#include "api/writer.h"
#include "base/own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void inventory_clear(struct inventory *in)
{
	free(in->packages);
	*in = (struct inventory){ .state = INVENTORY_UNKNOWN };
}

/* `len` bytes of a program's as a text that can be shown anywhere. */
static void copy_line(char *to, size_t room, const char *from, size_t len)
{
	size_t n = len < room - 1 ? len : room - 1;

	for (size_t i = 0; i < n; i++)
		to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
	to[n] = '\0';
}

void inventory_lack(struct inventory *in, enum inventory_state state, const char *why)
{
	inventory_clear(in);
	in->state = state;
	copy_line(in->why, sizeof(in->why), why, strcspn(why, "\n"));
}

/* "NAME VERSION", and of an image " FROM" behind it. */
static void put_package(struct writer *w, const char *line, size_t len, bool is_image)
{
	const char *from = is_image ? memrchr(line, ' ', len) : NULL, *space;
	size_t from_len = from ? (size_t)(line + len - from - 1) : 0, name_len;

	len -= from ? from_len + 1 : 0;
	space = memchr(line, ' ', len);
	name_len = space ? (size_t)(space - line) : len;

	writer_object(w, NULL);
	writer_text_begin(w, "name");
	writer_text(w, line, name_len);
	writer_text_end(w);
	if (space) {
		writer_text_begin(w, "version");
		writer_text(w, space + 1, len - name_len - 1);
		writer_text_end(w);
	} else {
		writer_null(w, "version");
	}
	if (from) {
		writer_text_begin(w, "from");
		writer_text(w, from + 1, from_len);
		writer_text_end(w);
	}
	writer_close(w);
}

int inventory_take(struct inventory *in, const char *text, size_t text_len, bool is_image)
{
	struct writer w CLEANUP(writer_drop) = { 0 };
	const char *at = text, *end = text + text_len;
	unsigned lines = 0;

	inventory_clear(in);
	writer_array(&w, NULL);
	while (at < end && lines <= INVENTORY_PACKAGES_MAX) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = stop ? (size_t)(stop - at) : (size_t)(end - at);

		if (lines++ == 0)
			copy_line(in->version, sizeof(in->version), at, len);
		else if (len > 0)
			put_package(&w, at, len, is_image);
		at = stop ? stop + 1 : end;
	}
	writer_close(&w);
	in->state = INVENTORY_KNOWN;
	if (is_image && lines <= 1) /* nothing in it says what there is */
		return 0;
	in->packages = writer_take(&w, NULL);
	return in->packages ? 0 : -ENOMEM;
}

static void put_texts(struct writer *w, const char *key, const char *texts, size_t room, size_t n)
{
	writer_array(w, key);
	for (size_t i = 0; i < n && texts[i * room]; i++)
		writer_string(w, NULL, texts + i * room);
	writer_close(w);
}

static void put_limits(
	struct writer *w, const struct offers *offers, uint32_t number, const struct settings *s)
{
	struct run_limits l;

	offers_limits(offers, number, s, &l);
	writer_object(w, "limits");
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const struct api_field *f = &api_fields[i];

		if (!api_field_numeric(f))
			continue;
		if (f->meaning == API_CPU_TIME && l.cpu_time_us == 0)
			writer_null(w, f->name);
		else
			writer_number(w, f->name, api_field_get(f, &l));
	}
	writer_close(w);
}

static void put_version(struct writer *w, const struct inventory *in)
{
	if (in->version[0])
		writer_string(w, "version", in->version);
	else
		writer_null(w, "version");
}

static void put_packages(struct writer *w, const struct inventory *in)
{
	if (in->packages)
		writer_raw(w, "packages", in->packages);
	else
		writer_null(w, "packages");
}

static void put_inventory(struct writer *w, const struct inventory *in)
{
	if (in->state == INVENTORY_UNKNOWN || in->state == INVENTORY_FAILED)
		writer_null(w, "installed");
	else
		writer_bool(w, "installed", in->state == INVENTORY_KNOWN);
	put_version(w, in);
	if (in->why[0])
		writer_string(w, "why", in->why);
	else
		writer_null(w, "why");
	put_packages(w, in);
}

static void put_start(struct writer *w, uint32_t warm, uint32_t number)
{
	writer_string(w, "start", warm >> number & 1 ? "warm" : "cold");
}

static void put_images(struct writer *w, const struct offers *offers, const struct settings *s,
	uint32_t warm, const struct inventory *of)
{
	writer_array(w, "images");
	for (uint32_t i = 0; i < offers->count; i++) {
		const struct offer *o = &offers->of[i];

		if (!o->is_image || !o->name[0])
			continue;
		writer_object(w, NULL);
		writer_string(w, "name", o->name);
		put_start(w, warm, i);
		writer_string(w, "main_file", o->main_file);
		put_limits(w, offers, i, s);
		put_version(w, &of[i]);
		put_packages(w, &of[i]);
		writer_close(w);
	}
	writer_close(w);
}

char *api_runtimes_json(const struct offers *offers, const struct settings *s, uint32_t warm,
	const struct inventory *of, size_t *ret_len)
{
	struct writer w CLEANUP(writer_drop) = { 0 };
	struct run_limits compile;

	writer_object(&w, NULL);
	writer_string(&w, "default", offers->count > 0 ? offers->of[0].name : LANGUAGE_DEFAULT);
	writer_array(&w, "runtimes");
	for (uint32_t i = 0; i < offers->count; i++) {
		const struct offer *o = &offers->of[i];

		if (o->is_image)
			continue;
		writer_object(&w, NULL);
		writer_string(&w, "name", o->name);
		put_texts(
			&w, "aliases", o->aliases[0], sizeof(o->aliases[0]), LANGUAGE_ALIASES_MAX);
		put_start(&w, warm, i);
		writer_string(&w, "main_file", o->main_file);
		put_texts(&w, "entry_point_suffixes", o->suffixes[0], sizeof(o->suffixes[0]),
			LANGUAGE_SUFFIXES_MAX);
		put_limits(&w, offers, i, s);
		writer_bool(&w, "compiled", o->compiled);
		if (o->compiled) {
			offers_compile_limits(offers, i, s, &compile);
			api_compile_put_limits(&w, "compile_limits", &compile);
		}
		writer_string(&w, "debian_package", o->package);
		put_inventory(&w, &of[i]);
		writer_close(&w);
	}
	writer_close(&w);
	put_images(&w, offers, s, warm, of);
	writer_close(&w);
	return writer_take(&w, ret_len);
}
