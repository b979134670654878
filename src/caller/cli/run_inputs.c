#include "caller/cli/run_inputs.h"

#include "base/check.h"
#include "base/io.h"
#include "base/own.h"
#include "wire/inputs.h"
#include "wire/limits.h"

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int complain(int e, const char *what)
{
	error(0, -e, "%s", what);
	return -1;
}

/* All of a regular file, of at most `room` bytes. -EBUSY: it is not as long as it said, since somebody
 * writes to it, or because the kernel makes it up (/proc, /sys). */
static int read_file(const char *path, uint64_t room, void **ret, size_t *ret_len)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	cleanup_free void *bytes = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if ((uint64_t)st.st_size > room)
		return -EFBIG;
	/* One more than there should be: a file that grows meanwhile is told apart. */
	bytes = malloc((size_t)st.st_size + 1);
	n = bytes ? io_read_all(fd, bytes, (size_t)st.st_size + 1) : -ENOMEM;
	if (n < 0)
		return (int)n;
	if (n != st.st_size)
		return -EBUSY;
	*ret = take_ptr(bytes);
	*ret_len = (size_t)n;
	return 0;
}

/* Grow a list by one; NULL: out of memory. */
static void *grown(void *list, size_t count, size_t size)
{
	return reallocarray(list, count + 1, size);
}

/* `bytes` is taken when it is 0. */
static int add(struct run_inputs *in, const char *given, const char *name, void *bytes, size_t len)
{
	struct gbx_file *files = grown(in->files, in->file_count, sizeof(*files));
	const char **givens = grown(in->given, in->file_count, sizeof(*givens));

	in->files = files ? files : in->files;
	in->given = givens ? givens : in->given;
	if (!files || !givens)
		return complain(-ENOMEM, name);
	in->given[in->file_count] = given;
	in->files[in->file_count++] = (struct gbx_file){ .path = name, .bytes = bytes, .len = len };
	in->bytes += len;
	return 0;
}

int run_inputs_file(struct run_inputs *in, const char *arg)
{
	const char *equals = strrchr(arg, '='), *slash;
	cleanup_free char *path = equals ? strndup(arg, (size_t)(equals - arg)) : strdup(arg);
	cleanup_free void *bytes = NULL;
	const char *name;
	size_t len;
	int r;

	if (!path)
		return complain(-ENOMEM, arg);
	slash = strrchr(path, '/');
	name = equals ? equals + 1 : slash ? arg + (slash + 1 - path) : arg;
	r = read_file(path, INPUT_BYTES_MAX - in->bytes, &bytes, &len);
	if (r == -EBUSY) {
		error(0, 0,
			"--file %s: it changed while it was read, or its size is not what it holds",
			path);
		return -1;
	}
	if (r < 0) {
		error(0, -r, "--file %s", path);
		return -1;
	}
	r = add(in, arg, name, bytes, len);
	if (r == 0)
		bytes = NULL;
	return r;
}

int run_inputs_entry(struct run_inputs *in, const char *name, void *bytes, size_t len)
{
	return add(in, NULL, name, bytes, len);
}

int run_inputs_env(struct run_inputs *in, const char *arg)
{
	const char **env = grown(in->env, in->env_count + 1, sizeof(*env));

	if (!env)
		return complain(-ENOMEM, arg);
	in->env = env;
	in->env[in->env_count++] = arg;
	in->env[in->env_count] = NULL;
	return 0;
}

/* `files[n]: …` as the flag that has given it. */
static bool say_file(const struct run_inputs *in, const char *why)
{
	static const char files[] = "files[";
	char *rest;
	size_t n;

	if (strncmp(why, files, strlen(files)) != 0)
		return false;
	n = strtoul(why + strlen(files), &rest, 10);
	if (*rest != ']' || n >= in->file_count)
		return false;
	if (in->given[n])
		error(0, 0, "--file %.200s%s", in->given[n], rest + 1);
	else
		error(0, 0, "--entry-point %.200s%s", in->files[n].path, rest + 1);
	return true;
}

void run_inputs_say(const struct run_inputs *in, const char *why)
{
	static const struct {
		const char *field, *flag;
	} words[] = { { "files:", "--file:" }, { "env:", "--env:" },
		{ "entry_point", "--entry-point" } };

	if (say_file(in, why))
		return;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t len = strlen(words[i].field);

		if (strncmp(why, words[i].field, len) == 0) {
			error(0, 0, "%s%s", words[i].flag, why + len);
			return;
		}
	}
	error(0, 0, "%s", why);
}

void run_inputs_lend(const struct run_inputs *in, struct gbx_request *q)
{
	q->files = in->files;
	q->file_count = in->file_count;
	q->env = in->env;
}

void run_inputs_done(struct run_inputs *in)
{
	for (size_t i = 0; i < in->file_count; i++)
		free((void *)(uintptr_t)in->files[i].bytes);
	free(in->files);
	free(in->given);
	free(in->env);
	*in = (struct run_inputs){ 0 };
}
