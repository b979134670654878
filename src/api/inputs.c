#include "api/inputs.h"

#include "api/text.h"
#include "base/check.h"
#include "base/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u /* what a tmpfs gives out */

/* A path among those that are sorted. */
struct sorted {
	const char *path;
	size_t len;
	unsigned file; /* its number; the code's own file: MAIN */
};

#define MAIN (~0u)

/* By components: what is in a directory follows right behind the name of the directory. */
static int compare(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	size_t len = x->len < y->len ? x->len : y->len, i = 0;
	int c, d;

	while (i < len && x->path[i] == y->path[i])
		i++;
	c = i < x->len ? (unsigned char)x->path[i] : -2;
	d = i < y->len ? (unsigned char)y->path[i] : -2;
	if (c == '/')
		c = -1;
	if (d == '/')
		d = -1;
	if (c != d)
		return c < d ? -1 : 1;
	/* Of two that are the same the code's own file is first, then what was named first. */
	if (x->file == MAIN || y->file == MAIN)
		return x->file == MAIN ? -1 : 1;
	return x->file < y->file ? -1 : 1;
}

/* The directories of `s` that those before it did not need. */
static unsigned new_directories(const struct sorted *s, const struct sorted *before)
{
	unsigned all = 0, shared = 0;
	bool same = before != NULL;

	for (size_t i = 0; i < s->len; i++) {
		same = same && i < before->len && before->path[i] == s->path[i];
		if (s->path[i] != '/')
			continue;
		all++;
		shared += same;
	}
	return all - shared;
}

static const char *clash_of(const struct sorted *s, const struct sorted *root)
{
	if (s->len < root->len || memcmp(s->path, root->path, root->len) != 0)
		return NULL;
	if (s->len == root->len)
		return root->file == MAIN ? "is the file that holds the code" : "stands here twice";
	if (s->path[root->len] != '/')
		return NULL;
	return root->file == MAIN ? "would lie below the file that holds the code"
				  : "would lie below another file of this list";
}

int inputs_plan_look(const struct inputs_plan *p, const char *main_file, inputs_clash_fn *clash,
	void *ctx, struct inputs_need *ret)
{
	cleanup_free struct sorted *list = calloc(p->file_count + 1, sizeof(*list));
	const struct sorted *root = NULL;
	unsigned n = 0;

	if (!list)
		return -ENOMEM;
	*ret = (struct inputs_need){ .inodes = p->file_count };
	if (main_file)
		list[n++] = (struct sorted){ main_file, strlen(main_file), MAIN };
	for (unsigned i = 0; i < p->file_count; i++) {
		list[n++] = (struct sorted){ p->files[i].path, p->files[i].path_len, i };
		ret->memory_bytes += (p->files[i].size + PAGE - 1) / PAGE * PAGE;
	}
	qsort(list, n, sizeof(*list), compare);
	for (unsigned i = 0; i < n; i++) {
		const char *what = root ? clash_of(&list[i], root) : NULL;

		ret->inodes += new_directories(&list[i], i > 0 ? &list[i - 1] : NULL);
		if (!what) {
			root = &list[i];
			continue;
		}
		clash(ctx, list[i].file == MAIN ? root->file : list[i].file,
			list[i].file == MAIN ? "is a directory of the file that holds the code"
					     : what);
	}
	return 0;
}

size_t inputs_plan_args_bytes(const struct inputs_plan *p)
{
	size_t sum = 0;

	for (unsigned i = 0; i < p->arg_count; i++)
		sum += strlen(p->args[i]) + 1;
	return sum;
}

size_t inputs_plan_env_bytes(const struct inputs_plan *p)
{
	size_t sum = 0;

	for (unsigned i = 0; i < p->env_count; i++) {
		sum += strlen(p->env[i].name) + 1;
		if (p->env[i].value)
			sum += strlen(p->env[i].value) + 1;
	}
	return sum;
}

static size_t files_bytes(const struct inputs_plan *p)
{
	size_t sum = 0;

	for (unsigned i = 0; i < p->file_count; i++)
		sum += sizeof(struct inputs_file) + p->files[i].path_len + 1 +
		       (size_t)p->files[i].size;
	return sum;
}

static char *put(char *at, const void *bytes, size_t len)
{
	if (len > 0)
		memcpy(at, bytes, len);
	return at + len;
}

static char *put_words(char *at, const struct inputs_plan *p)
{
	for (unsigned i = 0; i < p->arg_count; i++)
		at = put(at, p->args[i], strlen(p->args[i]) + 1);
	for (unsigned i = 0; i < p->env_count; i++) {
		const struct inputs_plan_variable *v = &p->env[i];

		at = put(at, v->name, strlen(v->name));
		if (v->value) {
			*at++ = '=';
			at = put(at, v->value, strlen(v->value));
		}
		*at++ = '\0';
	}
	return at;
}

static char *put_file(char *at, const struct inputs_plan_file *f)
{
	const struct inputs_file head = {
		.bytes = f->size,
		.path_bytes = (uint32_t)f->path_len,
		.mode = f->mode,
	};

	at = put(at, &head, sizeof(head));
	at = put(at, f->path, f->path_len);
	*at++ = '\0';
	if (!f->base64)
		return put(at, f->bytes, f->len);
	base64_decode(f->bytes, f->len, at);
	return at + f->size;
}

int inputs_plan_build(const struct inputs_plan *p, char **ret, size_t *ret_len)
{
	const struct inputs_head head = {
		.magic = INPUTS_MAGIC,
		.args = p->arg_count,
		.env = p->env_count,
		.files = p->file_count,
		.entry = p->entry,
	};
	size_t len = sizeof(head) + inputs_plan_args_bytes(p) + inputs_plan_env_bytes(p) +
		     files_bytes(p);
	char *blob, *at;

	*ret = NULL;
	*ret_len = 0;
	if (p->arg_count == 0 && p->env_count == 0 && p->file_count == 0)
		return 0;
	blob = malloc(len);
	if (!blob)
		return -ENOMEM;
	at = put(blob, &head, sizeof(head));
	at = put_words(at, p);
	for (unsigned i = 0; i < p->file_count; i++)
		at = put_file(at, &p->files[i]);
	CHECK((size_t)(at - blob) == len);
	*ret = blob;
	*ret_len = len;
	return 0;
}
