#include "wire/inputs.h"

#include "base/check.h"

#include <string.h>

/* What is left of a blob on its way through it. */
struct rest {
	const char *at;
	size_t len;
};

static bool take(struct rest *r, void *ret, size_t len)
{
	if (r->len < len)
		return false;
	memcpy(ret, r->at, len);
	r->at += len;
	r->len -= len;
	return true;
}

/* `count` texts with their NULs; `fault` looks at each. */
static const char *pass_words(
	struct rest *r, uint32_t count, const char *(*fault)(const char *word, size_t len))
{
	const char *begin = r->at;

	for (uint32_t i = 0; i < count; i++) {
		const char *end = memchr(r->at, '\0', r->len);
		const char *rule;

		if (!end)
			return "a text without its end";
		rule = fault ? fault(r->at, (size_t)(end - r->at)) : NULL;
		if (rule)
			return rule;
		r->len -= (size_t)(end + 1 - r->at);
		r->at = end + 1;
	}
	return (size_t)(r->at - begin) > INPUTS_WORDS_BYTES_MAX ? "texts that are too long" : NULL;
}

static const char *assignment_fault(const char *word, size_t len)
{
	const char *equals = memchr(word, '=', len);

	return equals ? inputs_variable_fault(word, (size_t)(equals - word)) : "has no \"=\"";
}

static const char *pass_file(struct rest *r, const char **ret_path)
{
	struct inputs_file f;
	const char *rule;

	if (!take(r, &f, sizeof(f)))
		return "a file without its end";
	if (f.path_bytes >= r->len || r->at[f.path_bytes] != '\0')
		return "a path without its end";
	*ret_path = r->at;
	rule = inputs_path_fault(r->at, f.path_bytes);
	if (rule)
		return rule;
	if (f.mode > INPUTS_MODE_MAX)
		return "a mode with more than permissions";
	r->at += f.path_bytes + 1;
	r->len -= f.path_bytes + 1;
	if (f.bytes > r->len)
		return "a file without its end";
	r->at += f.bytes;
	r->len -= f.bytes;
	return NULL;
}

const char *inputs_open(const void *blob, size_t len, struct inputs *ret)
{
	struct rest r = { blob, len };
	struct inputs in = { 0 };
	const char *rule, *path;

	if (!take(&r, &in.head, sizeof(in.head)) || in.head.magic != INPUTS_MAGIC)
		return "no inputs";
	if (in.head.args > INPUTS_ARGS_MAX || in.head.env > INPUTS_ENV_MAX ||
		in.head.files > INPUTS_FILES_MAX || in.head.entry > in.head.files ||
		in.head.reserved != 0)
		return "numbers that are out of range";
	in.args = r.at;
	rule = pass_words(&r, in.head.args, NULL);
	in.env = r.at;
	if (!rule)
		rule = pass_words(&r, in.head.env, assignment_fault);
	in.files = r.at;
	for (uint32_t i = 1; !rule && i <= in.head.files; i++) {
		rule = pass_file(&r, &path);
		if (i == in.head.entry)
			in.entry = path;
	}
	if (!rule && r.len > 0)
		rule = "bytes that belong to nothing";
	if (!rule)
		*ret = in;
	return rule;
}

bool inputs_have_files(const void *blob, size_t len)
{
	struct inputs_head head;

	if (!blob || len < sizeof(head))
		return false;
	memcpy(&head, blob, sizeof(head));
	return head.files > 0;
}

const char *inputs_next(const char *word)
{
	return word + strlen(word) + 1;
}

void inputs_take(const char **at, struct inputs_item *ret)
{
	struct inputs_file f;

	memcpy(&f, *at, sizeof(f));
	ret->path = *at + sizeof(f);
	ret->bytes = ret->path + f.path_bytes + 1;
	ret->len = f.bytes;
	ret->mode = f.mode;
	*at = ret->bytes + f.bytes;
}

/* ---- Rules ---- */

static const char *component_fault(const char *name, size_t len)
{
	if (len == 0)
		return "must have no empty component: no \"//\", and no \"/\" at either end";
	if (len > INPUTS_NAME_MAX)
		return "must have components of at most 255 bytes";
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')))
		return "must have no component \".\" or \"..\"";
	return NULL;
}

const char *inputs_path_fault(const char *path, size_t len)
{
	size_t begin = 0;

	if (len == 0)
		return "must not be empty";
	if (len > INPUTS_PATH_MAX)
		return "must have at most 1024 bytes";
	if (path[0] == '/')
		return "must be relative: it is a place below /workspace";
	for (size_t i = 0; i <= len; i++) {
		const char *rule;

		if (i < len && ((unsigned char)path[i] < ' ' || path[i] == 0x7f))
			return "must have no control characters";
		if (i < len && path[i] != '/')
			continue;
		rule = component_fault(path + begin, i - begin);
		if (rule)
			return rule;
		begin = i + 1;
	}
	return NULL;
}

/* "*" at the end stands for anything. What belongs here is read before the program begins, by
 * the dynamic linker, the C library or an interpreter: a warm one has read it long ago, and in
 * a cold start it would decide which program runs. PATH and HOME are what the cell is. */
static const char *const reserved[] = {
	"PATH",
	"HOME",
	"GLOVEBOX_*",
	"LD_*",
	"GLIBC_TUNABLES",
	"MALLOC_*",
	"GCONV_PATH",
	"LOCPATH",
	"NLSPATH",
	"LANG",
	"LANGUAGE",
	"LC_*",
	"PYTHON*",
	"NODE_OPTIONS",
	"BASH_ENV",
	"ENV",
	"PERL5OPT",
	"PERL5DB",
	"RUBYOPT",
	"LUA_INIT*",
	"PHPRC",
	"PHP_INI_SCAN_DIR",
	"JAVA_TOOL_OPTIONS",
	"JDK_JAVA_OPTIONS",
	"_JAVA_OPTIONS",
};

static bool matches(const char *pattern, const char *name, size_t len)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return len >= n - 1 && memcmp(pattern, name, n - 1) == 0;
	return len == n && memcmp(pattern, name, n) == 0;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

const char *inputs_variable_fault(const char *name, size_t len)
{
	if (len == 0)
		return "must have a name";
	if (len > INPUTS_VARIABLE_MAX)
		return "must have a name of at most 128 bytes";
	for (size_t i = 0; i < len; i++) {
		if (!is_letter(name[i]) && (i == 0 || name[i] < '0' || name[i] > '9'))
			return "must have a name of letters, digits and \"_\" that begins with no "
			       "digit";
	}
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		if (matches(reserved[i], name, len))
			return "is read before the program begins, or says what the cell is, and "
			       "cannot be set";
	}
	return NULL;
}
