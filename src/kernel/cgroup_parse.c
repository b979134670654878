#include "kernel/cgroup_internal.h"

#include "base/check.h"
#include "base/io.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const char *const controller_names[CGROUP_CONTROLLER_MAX] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPU] = "cpu",
	[CGROUP_CPUACCT] = "cpuacct",
	[CGROUP_PIDS] = "pids",
};

const char *cgroup_controller_name(enum cgroup_controller c)
{
	CHECK((unsigned)c < CGROUP_CONTROLLER_MAX);
	return controller_names[c];
}

static unsigned parse_names(const char *text, size_t len)
{
	unsigned set = 0;

	while (len > 0) {
		size_t skip = 0, word = 0;

		while (skip < len && strchr(", \t\n", text[skip]))
			skip++;
		text += skip;
		len -= skip;
		while (word < len && !strchr(", \t\n", text[word]))
			word++;
		for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX; c++) {
			if (strlen(controller_names[c]) == word &&
				memcmp(controller_names[c], text, word) == 0)
				set |= CGROUP_BIT(c);
		}
		text += word;
		len -= word;
	}
	return set;
}

unsigned cgroup_parse_controllers(const char *text)
{
	return parse_names(text, strlen(text));
}

/* One field of a line, up to `sep` or the line's end. */
struct field {
	const char *at;
	size_t len;
};

/* The next field of *line (which ends at `end`), without the separator. False at the end. */
static bool take_field(const char **line, const char *end, char sep, struct field *ret)
{
	const char *stop;

	if (*line >= end)
		return false;
	stop = memchr(*line, sep, (size_t)(end - *line));
	if (!stop)
		stop = end;
	*ret = (struct field){ .at = *line, .len = (size_t)(stop - *line) };
	*line = stop + 1;
	return true;
}

static bool field_is(const struct field *f, const char *word)
{
	return f->len == strlen(word) && memcmp(f->at, word, f->len) == 0;
}

/* Is `word` one of the names in a list like "rw,nosuid"? */
static bool list_has(const struct field *list, const char *word)
{
	const char *p = list->at, *end = list->at + list->len;
	struct field item;

	while (take_field(&p, end, ',', &item)) {
		if (field_is(&item, word))
			return true;
	}
	return false;
}

/* Undo the kernel's \ooo for blanks and backslashes. -ENAMETOOLONG. */
static int unescape(const struct field *f, char ret[CGROUP_PATH_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < f->len; i++) {
		unsigned c = (unsigned char)f->at[i];

		if (c == '\\') {
			const char *o = f->at + i + 1;

			if (i + 3 >= f->len || o[0] < '0' || o[0] > '3' || o[1] < '0' ||
				o[1] > '7' || o[2] < '0' || o[2] > '7')
				return -EINVAL;
			c = (unsigned)((o[0] - '0') * 64 + (o[1] - '0') * 8 + (o[2] - '0'));
			i += 3;
		}
		if (n + 1 >= CGROUP_PATH_MAX)
			return -ENAMETOOLONG;
		ret[n++] = (char)c;
	}
	ret[n] = '\0';
	return 0;
}

struct mount_line {
	struct field root, point, options, type, super;
};

/* "36 35 98:0 /root /point rw,relatime shared:1 - cgroup cgroup rw,memory" */
static int split_mount_line(const char *line, const char *end, struct mount_line *ret)
{
	struct field id, parent, device, source, word;
	struct field *const fixed[] = { &id, &parent, &device, &ret->root, &ret->point,
		&ret->options };

	for (unsigned i = 0; i < ARRAY_LEN(fixed); i++) {
		if (!take_field(&line, end, ' ', fixed[i]) || fixed[i]->len == 0)
			return -EINVAL;
	}
	do {
		if (!take_field(&line, end, ' ', &word))
			return -EINVAL;
	} while (!field_is(&word, "-"));
	if (!take_field(&line, end, ' ', &ret->type) || !take_field(&line, end, ' ', &source))
		return -EINVAL;
	if (!take_field(&line, end, ' ', &ret->super))
		ret->super = (struct field){ .at = end, .len = 0 };
	return 0;
}

/* 1: `ret` is one of the mounts that matter; 0: it is not. */
static int parse_mount_line(const char *line, const char *end, struct cgroup_mount *ret)
{
	struct cgroup_mount m = { 0 };
	struct mount_line l;
	int r;

	r = split_mount_line(line, end, &l);
	if (r < 0)
		return r;
	m.version = field_is(&l.type, "cgroup2") ? 2 : field_is(&l.type, "cgroup") ? 1 : 0;
	m.controllers = m.version == 1 ? parse_names(l.super.at, l.super.len) : 0;
	if (m.version == 0 || (m.version == 1 && m.controllers == 0))
		return 0;
	m.read_only = list_has(&l.options, "ro") || list_has(&l.super, "ro");
	r = unescape(&l.root, m.root);
	if (r == 0)
		r = unescape(&l.point, m.point);
	if (r < 0)
		return r == -ENAMETOOLONG ? 0 : r;
	*ret = m;
	return 1;
}

int cgroup_parse_mountinfo(const char *text, struct cgroup_mounts *ret)
{
	const char *p = text, *end = text + strlen(text);
	struct field line;
	int r;

	ret->count = 0;
	while (take_field(&p, end, '\n', &line)) {
		struct cgroup_mount m;

		r = parse_mount_line(line.at, line.at + line.len, &m);
		if (r < 0)
			return r;
		if (r == 1 && ret->count < CGROUP_MOUNTS_MAX)
			ret->m[ret->count++] = m;
	}
	return 0;
}

static int copy_path(const struct field *f, char ret[CGROUP_PATH_MAX])
{
	if (f->len == 0 || f->at[0] != '/')
		return -EINVAL;
	if (f->len >= CGROUP_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(ret, f->at, f->len);
	ret[f->len] = '\0';
	return 0;
}

/* "4:memory:/some/group", "0::/some/group", "9:name=systemd:/" */
static int parse_own_line(const struct field *line, struct cgroup_own *ret)
{
	const char *p = line->at, *end = line->at + line->len;
	struct field id, names, path;
	unsigned set;
	int r = 0;

	if (!take_field(&p, end, ':', &id) || !take_field(&p, end, ':', &names) || p > end)
		return -EINVAL;
	path = (struct field){ .at = p, .len = (size_t)(end - p) };
	if (field_is(&id, "0") && names.len == 0)
		return copy_path(&path, ret->unified);

	set = parse_names(names.at, names.len);
	for (unsigned c = 0; c < CGROUP_CONTROLLER_MAX && r == 0; c++) {
		if (set & CGROUP_BIT(c))
			r = copy_path(&path, ret->v1[c]);
	}
	return r;
}

int cgroup_parse_own(const char *text, struct cgroup_own *ret)
{
	const char *p = text, *end = text + strlen(text);
	struct field line;
	int r;

	*ret = (struct cgroup_own){ 0 };
	while (take_field(&p, end, '\n', &line)) {
		r = parse_own_line(&line, ret);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_parse_key(const char *text, const char *key, uint64_t *ret)
{
	const char *p = text, *end = text + strlen(text);
	size_t key_len = strlen(key);
	struct field line;

	while (take_field(&p, end, '\n', &line)) {
		char number[24];
		size_t len;

		if (line.len <= key_len || memcmp(line.at, key, key_len) != 0 ||
			line.at[key_len] != ' ')
			continue;
		len = line.len - key_len - 1;
		if (len >= sizeof(number))
			return -EINVAL;
		memcpy(number, line.at + key_len + 1, len);
		number[len] = '\0';
		return io_parse_u64(number, ret);
	}
	return -ENOENT;
}

int cgroup_check_path(const char *path)
{
	const char *p = path + 1, *end = path + strlen(path);
	struct field part;

	if (*path != '/')
		return -EINVAL;
	/* Room is needed for "/glovebox.N/cell" behind it. */
	if (strlen(path) > CGROUP_PATH_MAX - 80)
		return -ENAMETOOLONG;
	if (path[1] == '\0')
		return 0;
	if (end[-1] == '/')
		return -EINVAL;
	while (take_field(&p, end, '/', &part)) {
		if (part.len == 0 || field_is(&part, ".") || field_is(&part, ".."))
			return -EINVAL;
	}
	return 0;
}

bool cgroup_relative(const char *root, const char *group, char ret[CGROUP_PATH_MAX])
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
	const char *rest = group + n;

	/* "/.." is how the kernel shows a group outside our cgroup namespace. */
	if (strncmp(group, "/..", 3) == 0 || strncmp(root, "/..", 3) == 0)
		return false;
	if (strncmp(group, root, n) != 0 || (*rest != '\0' && *rest != '/'))
		return false;
	if (*rest == '\0')
		rest = "/";
	if (strlen(rest) >= CGROUP_PATH_MAX)
		return false;
	memcpy(ret, rest, strlen(rest) + 1);
	return true;
}

bool cgroup_instance_number(const char *name, unsigned *ret)
{
	size_t n = strlen(CGROUP_PREFIX);
	uint64_t v;

	/* No sign, no blank, no leading zero: one name a number. */
	if (strncmp(name, CGROUP_PREFIX, n) != 0 || !isdigit((unsigned char)name[n]))
		return false;
	if (name[n] == '0' && name[n + 1] != '\0')
		return false;
	if (strspn(name + n, "0123456789") != strlen(name + n))
		return false;
	if (io_parse_u64(name + n, &v) < 0 || v > UINT32_MAX)
		return false;
	*ret = (unsigned)v;
	return true;
}

void cgroup_strip_instance(char *group)
{
	char *last = strrchr(group, '/');
	char *instance;
	unsigned number;

	if (!last || last == group || strcmp(last + 1, CGROUP_SUPERVISOR) != 0)
		return;
	*last = '\0';
	instance = strrchr(group, '/');
	if (instance && cgroup_instance_number(instance + 1, &number))
		instance[instance == group] = '\0'; /* the root keeps its slash */
	else
		*last = '/';
}
