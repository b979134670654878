#include "edge/image/inventory.h"

#include "base/check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *word;
	const char *name, *version, *status; /* keys, as they begin a line */
} kinds[INVENTORY_KINDS] = {
	[INVENTORY_NONE] = { "", NULL, NULL, NULL },
	[INVENTORY_DPKG] = { "dpkg", "Package: ", "Version: ", "Status: " },
	[INVENTORY_APK] = { "apk", "P:", "V:", NULL },
	[INVENTORY_PYTHON] = { "python", "Name: ", "Version: ", NULL },
};

static const struct tree_inode *file_at(const struct tree *t, const char *path)
{
	const struct tree_inode *i = tree_resolve(t, path);

	return i && i->kind == TREE_FILE ? i : NULL;
}

void inventory_init(struct inventory_list *v, const struct tree *t)
{
	*v = (struct inventory_list){ .dpkg = file_at(t, "/var/lib/dpkg/status") };
	v->apk = file_at(t, "/lib/apk/db/installed");
	if (!v->apk)
		v->apk = file_at(t, "/usr/lib/apk/db/installed");
}

void inventory_done(struct inventory_list *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->of[i].name);
	free(v->of);
	*v = (struct inventory_list){ .count = 0 };
}

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && strcmp(text + a - b, end) == 0;
}

/* Where importlib.metadata finds it, too: X.dist-info/METADATA, X.egg-info/PKG-INFO or X.egg-info, in a
 * folder that is searched. What others bring along for themselves lies deeper. */
static bool is_distribution(const struct tree_inode *i)
{
	const struct tree_node *n = LIST_FIRST(&i->names), *folder;

	if (!n || !n->parent)
		return false;
	folder = n->parent;
	if ((strcmp(n->name, "METADATA") == 0 && ends_with(folder->name, ".dist-info")) ||
		(strcmp(n->name, "PKG-INFO") == 0 && ends_with(folder->name, ".egg-info")))
		folder = folder->parent;
	else if (!ends_with(n->name, ".egg-info"))
		return false;
	return folder && (strcmp(folder->name, "site-packages") == 0 ||
				 strcmp(folder->name, "dist-packages") == 0);
}

/* ---- Stanzas ---- */

static void forget(struct inventory_list *v)
{
	v->name[0] = v->version[0] = '\0';
	v->installed = false;
}

void inventory_begin(struct inventory_list *v, const struct tree_inode *i)
{
	v->kind = i == v->dpkg         ? INVENTORY_DPKG
		  : i == v->apk        ? INVENTORY_APK
		  : is_distribution(i) ? INVENTORY_PYTHON
				       : INVENTORY_NONE;
	v->line_len = 0;
	v->skips = v->ended = false;
	forget(v);
}

/* One that a line of text can hold between spaces. */
static bool is_word(const char *text)
{
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p > '~')
			return false;
	return *text != '\0';
}

static bool add(struct inventory_list *v)
{
	struct inventory_package *p, *more;
	size_t name = strlen(v->name) + 1, version = strlen(v->version) + 1;

	if (!is_word(v->name) || !is_word(v->version) || v->count == IMAGE_PACKAGES_MAX)
		return false;
	more = reallocarray(v->of, v->count + 1, sizeof(*more));
	if (!more)
		return false;
	v->of = more;
	p = &v->of[v->count];
	p->kind = v->kind;
	p->name = malloc(name + version);
	if (!p->name)
		return false;
	p->version = p->name + name;
	memcpy(p->name, v->name, name);
	memcpy(p->version, v->version, version);
	v->count++;
	return true;
}

static void end_stanza(struct inventory_list *v)
{
	bool wanted = v->name[0] && (v->installed || !kinds[v->kind].status);

	if (wanted && !add(v))
		v->lost++;
	forget(v);
	v->ended = v->kind == INVENTORY_PYTHON;
}

/* One that is too long becomes none that is_word() takes. */
static void take(char to[static INVENTORY_WORD_MAX], const char *value)
{
	if (snprintf(to, INVENTORY_WORD_MAX, "%s", value) >= INVENTORY_WORD_MAX)
		to[0] = ' ';
}

static void end_line(struct inventory_list *v)
{
	const char *key[] = { kinds[v->kind].name, kinds[v->kind].version, kinds[v->kind].status };

	if (v->line_len > 0 && v->line[v->line_len - 1] == '\r')
		v->line_len--;
	v->line[v->line_len] = '\0';
	if (v->line_len == 0 && !v->skips)
		end_stanza(v);
	for (size_t i = 0; !v->skips && i < ARRAY_LEN(key); i++) {
		const char *value = v->line + (key[i] ? strlen(key[i]) : 0);

		if (!key[i] || strncmp(v->line, key[i], strlen(key[i])) != 0)
			continue;
		if (i == 0)
			take(v->name, value);
		else if (i == 1)
			take(v->version, value);
		else
			v->installed = ends_with(value, " installed");
	}
	v->line_len = 0;
	v->skips = false;
}

void inventory_feed(struct inventory_list *v, const void *bytes, size_t len)
{
	const char *text = bytes;

	for (size_t i = 0; i < len && v->kind != INVENTORY_NONE && !v->ended; i++) {
		if (text[i] == '\n')
			end_line(v);
		else if (v->line_len == sizeof(v->line) - 1)
			v->skips = true;
		else
			v->line[v->line_len++] = text[i];
	}
}

void inventory_end(struct inventory_list *v)
{
	if (v->kind == INVENTORY_NONE || v->ended)
		return;
	if (v->line_len > 0)
		end_line(v);
	end_stanza(v);
}

/* ---- The interpreter ---- */

/* What "python3.11" ends with: a version of it begins so. */
static const char *number_in(const char *name)
{
	const char *number = name + strcspn(name, "0123456789");

	return number[strspn(number, "0123456789.")] == '\0' ? number : "";
}

static bool fits(const char *version, const char *number)
{
	size_t len = strlen(number);

	return strncmp(version, number, len) == 0 &&
	       (len == 0 || version[len] < '0' || version[len] > '9');
}

/* Of a package's version what is not Debian's or Alpine's: without epoch and revision. */
static void upstream(const char *version, char ret[static INVENTORY_WORD_MAX])
{
	const char *colon = strchr(version, ':'), *from = colon ? colon + 1 : version;
	const char *dash = strrchr(from, '-');

	(void)snprintf(ret, INVENTORY_WORD_MAX, "%.*s",
		dash ? (int)(dash - from) : INVENTORY_WORD_MAX - 1, from);
}

static bool find_package(const struct inventory_list *v, const char *program, const char *suffix,
	const char *number, char ret[static INVENTORY_WORD_MAX])
{
	size_t len = strlen(program);

	for (size_t i = 0; i < v->count; i++) {
		const struct inventory_package *p = &v->of[i];

		if (p->kind == INVENTORY_PYTHON || strncmp(p->name, program, len) != 0 ||
			strcmp(p->name + len, suffix) != 0)
			continue;
		upstream(p->version, ret);
		if (fits(ret, number))
			return true;
	}
	return false;
}

/* PYTHON_VERSION=3.12.4 of a program that is called python3.12. */
static bool find_variable(const struct image_start *s, const char *program, const char *number,
	char ret[static INVENTORY_WORD_MAX])
{
	char variable[INVENTORY_WORD_MAX];
	size_t n = 0;

	while (isalpha((unsigned char)program[n]) && n < sizeof(variable) - sizeof("_VERSION=")) {
		variable[n] = (char)toupper((unsigned char)program[n]);
		n++;
	}
	(void)snprintf(variable + n, sizeof(variable) - n, "_VERSION=");
	n += strlen("_VERSION=");
	for (size_t i = 0; i < RUNTIME_ENV_MAX && s->env[i][0]; i++) {
		const char *value = s->env[i] + n;

		if (strncmp(s->env[i], variable, n) != 0 || !fits(value, number) || !is_word(value))
			continue;
		(void)snprintf(ret, INVENTORY_WORD_MAX, "%.*s", INVENTORY_WORD_MAX - 1, value);
		return true;
	}
	return false;
}

void inventory_version(const struct inventory_list *v, const struct image_start *s,
	const struct tree_inode *i, char ret[static INVENTORY_WORD_MAX])
{
	/* Debian has python3.11 in python3.11-minimal, perl in perl-base, node in nodejs. */
	static const char *const suffixes[] = { "", "-minimal", "-base", "-static", "-cli", "js" };
	const struct tree_node *n = i ? LIST_FIRST(&i->names) : NULL;
	const char *asked = strrchr(s->argv[0], '/');
	const char *programs[] = { n ? n->name : "", asked ? asked + 1 : s->argv[0] };
	const char *number = number_in(programs[0]);

	for (size_t p = 0; p < ARRAY_LEN(programs); p++) {
		for (size_t k = 0; programs[p][0] && k < ARRAY_LEN(suffixes); k++)
			if (find_package(v, programs[p], suffixes[k], number, ret))
				return;
		if (programs[p][0] && find_variable(s, programs[p], number, ret))
			return;
	}
	(void)snprintf(ret, INVENTORY_WORD_MAX, "%.*s", INVENTORY_WORD_MAX - 1, number);
}

/* ---- The text ---- */

static int by_kind_and_name(const void *a, const void *b)
{
	const struct inventory_package *x = a, *y = b;
	int r = (int)x->kind - (int)y->kind;

	if (r == 0)
		r = strcmp(x->name, y->name);
	return r ? r : strcmp(x->version, y->version);
}

char *inventory_text(struct inventory_list *v, const char *version, size_t *ret_len)
{
	char *text = malloc(IMAGE_INVENTORY_MAX);
	size_t used;

	if (!text)
		return NULL;
	if (v->count > 0)
		qsort(v->of, v->count, sizeof(*v->of), by_kind_and_name);
	used = (size_t)snprintf(text, IMAGE_INVENTORY_MAX, "%s\n", version);
	for (size_t i = 0; i < v->count; i++) {
		const struct inventory_package *p = &v->of[i];
		size_t room = IMAGE_INVENTORY_MAX - used;
		int n = snprintf(
			text + used, room, "%s %s %s\n", p->name, p->version, kinds[p->kind].word);

		if (n < 0 || (size_t)n >= room)
			v->lost++;
		else if (i == 0 || by_kind_and_name(p, p - 1) != 0) /* else it is there twice */
			used += (size_t)n;
	}
	*ret_len = used;
	return text;
}
