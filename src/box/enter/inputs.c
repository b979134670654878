#include "box/enter/inputs.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define DIRECTORY_MODE 0755
#define UMASK          022u /* in force by now (step_session): more has to be asked for */

int inputs_load(
	int fd, uint64_t code_bytes, uint64_t bytes, struct loaded_inputs *ret, struct fault *f)
{
	size_t len = (size_t)(code_bytes + bytes);
	void *map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	const char *rule;

	if (map == MAP_FAILED)
		return fault_set(f, -errno, "map the inputs");
	*ret = (struct loaded_inputs){ .map = map, .len = len };
	rule = inputs_open((const char *)map + code_bytes, (size_t)bytes, &ret->in);
	return rule ? fault_say(f, -EPROTO, "the inputs: %s", rule) : 0;
}

void inputs_unload(struct loaded_inputs *l)
{
	if (l->map)
		(void)munmap(l->map, l->len); /* the program is shown no mapping of ours */
	*l = (struct loaded_inputs){ 0 };
}

/* ---- Files ---- */

struct writer {
	char made[INPUTS_PATH_MAX + 1]; /* the directory, with its "/", of the file before */
	size_t made_len;
};

static int make_directory(const char *path, size_t len)
{
	char name[INPUTS_PATH_MAX + 1];
	int r;

	memcpy(name, path, len);
	name[len] = '\0';
	r = sys.mkdirat(AT_FDCWD, name, DIRECTORY_MODE);
	return r == -EEXIST ? 0 : r; /* if it is no directory, the next call says so */
}

/* The directories of `path`. Most files lie where the one before does. */
static int make_directories(struct writer *w, const char *path)
{
	const char *last = strrchr(path, '/');
	size_t len = last ? (size_t)(last + 1 - path) : 0;
	int r = 0;

	if (len == 0 || (len == w->made_len && memcmp(path, w->made, len) == 0))
		return 0;
	for (size_t i = 1; r == 0 && i < len; i++) {
		if (path[i] == '/')
			r = make_directory(path, i);
	}
	if (r == 0) {
		memcpy(w->made, path, len);
		w->made_len = len;
	}
	return r;
}

static int fill(int fd, const char *bytes, uint64_t len)
{
	while (len > 0) {
		ssize_t n = sys.write(fd, bytes, (size_t)len);

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		bytes += n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* Nobody else is in the workspace, and no path leads out of it: what is there already was made
 * here. */
static int write_file(struct writer *w, const struct inputs_item *item)
{
	cleanup_fd int fd = -1;
	int r = make_directories(w, item->path);

	if (r == 0)
		r = fd = sys.openat(AT_FDCWD, item->path,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)item->mode);
	if (r >= 0)
		r = fill(fd, item->bytes, item->len);
	if (r >= 0 && (item->mode & UMASK))
		r = sys.fchmod(fd, (mode_t)item->mode);
	return r < 0 ? r : 0;
}

int inputs_write(const struct inputs *in, const char *main_file, struct fault *f)
{
	struct writer w = { .made_len = 0 };
	const char *at = in->files;
	struct inputs_item item;
	int r;

	if (in->entry) {
		r = sys.unlinkat(AT_FDCWD, main_file, 0);
		if (r < 0)
			return fault_set(f, r, "remove %s", main_file);
	}
	for (uint32_t i = 0; i < in->head.files; i++) {
		inputs_take(&at, &item);
		r = write_file(&w, &item);
		/* A workspace that is full is full at the next try too: no shortage of the host. */
		if (r < 0)
			return fault_say(f, r == -ENOSPC ? -EFBIG : r, "files[%u], %.160s: %s", i,
				item.path, strerror(-r));
	}
	return 0;
}

/* ---- Words ---- */

static bool is_same_variable(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return strncmp(a, b, len + 1) == 0;
}

static void put_variable(char **envp, char *assignment)
{
	unsigned i = 0;

	while (envp[i] && !is_same_variable(envp[i], assignment))
		i++;
	envp[i] = assignment;
}

void inputs_words(
	struct runtime *rt, const struct inputs *in, bool compiler, struct inputs_words *ret)
{
	const char *word;
	unsigned n = 0;

	*ret = (struct inputs_words){ 0 };
	for (; n < RUNTIME_ARGV_MAX && rt->argv[n][0]; n++) {
		bool is_program = n > 0 && strcmp(rt->argv[n], rt->main_file) == 0;

		ret->argv[n] =
			in && in->entry && is_program ? (char *)(uintptr_t)in->entry : rt->argv[n];
	}
	for (unsigned i = 0; i < RUNTIME_ENV_MAX && rt->env[i][0]; i++)
		ret->envp[i] = rt->env[i];
	if (!in || compiler)
		return;
	word = in->args;
	for (uint32_t i = 0; i < in->head.args; i++, word = inputs_next(word))
		ret->argv[n++] = (char *)(uintptr_t)word;
	word = in->env;
	for (uint32_t i = 0; i < in->head.env; i++, word = inputs_next(word))
		put_variable(ret->envp, (char *)(uintptr_t)word);
}
