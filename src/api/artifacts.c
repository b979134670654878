#include "api/artifacts.h"

#include "base/check.h"
#include "base/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[ARTIFACTS_MAX] = { "none", "list", "inline" };

const char *artifacts_word(enum artifacts a)
{
	CHECK(a < ARTIFACTS_MAX);
	return words[a];
}

enum artifacts artifacts_by_word(const char *word)
{
	enum artifacts a = ARTIFACTS_NONE;

	while (a < ARTIFACTS_MAX && strcmp(words[a], word) != 0)
		a++;
	return a;
}

/* Room for one more item of `size` bytes in an array of *room. */
static int grow(void *array, size_t count, size_t *room, size_t size)
{
	void **items = array;
	size_t want = *room == 0 ? 16 : *room * 2;
	void *more;

	if (count < *room)
		return 0;
	more = reallocarray(*items, want, size);
	if (!more)
		return -ENOMEM;
	*items = more;
	*room = want;
	return 0;
}

static char *copy_path(const char *path, size_t len)
{
	char *copy = malloc(len + 1);

	if (copy)
		memcpy(copy, path, len + 1);
	return copy;
}

/* `path` is taken, on failure too. */
static int leave_out(
	struct artifacts_list *l, char *path, size_t len, uint64_t size, enum files_reason why)
{
	if (!path ||
		grow(&l->skipped, l->skipped_count, &l->skipped_room, sizeof(*l->skipped)) < 0) {
		free(path);
		return -ENOMEM;
	}
	l->skipped[l->skipped_count++] = (struct left_out){ path, len, size, why };
	return 0;
}

/* Whoever keeps it may forget it. */
static void unkeep(struct artifacts_list *l, struct artifact *a)
{
	if (a->place)
		l->plan.keeper->drop(l->plan.keeper->ctx, take_ptr(a->place));
	a->kept = false;
}

/* The file that was arriving is none of those that are there. */
static int drop_last(struct artifacts_list *l, enum files_reason why)
{
	struct artifact *a = &l->files[--l->count];

	unkeep(l, a);
	free(take_ptr(a->content));
	return leave_out(l, take_ptr(a->path), a->path_len, a->size, why);
}

/* ---- What the reader tells ---- */

/* A place in the reply, if it is wanted there, and with the keeper. */
static void find_places(struct artifacts_list *l, struct artifact *a)
{
	const struct artifacts_keeper *keeper = l->plan.keeper;

	if (l->plan.mode == ARTIFACTS_INLINE && a->size <= l->inline_left)
		a->content = malloc(a->size + 1);
	if (a->content)
		l->inline_left -= a->size;
	if (keeper)
		a->kept = keeper->begin(keeper->ctx, a->size, &a->place) == 0;
}

static int on_file(void *ctx, const char *path, size_t len, uint64_t size)
{
	struct artifacts_list *l = ctx;
	const struct files_caps *caps = &l->plan.caps;
	struct artifact a = { .path_len = len, .size = size };

	/* The collector has been told the same bounds: it is no collector any more. */
	if (l->count >= caps->count || size > caps->file_bytes ||
		size > caps->total_bytes - l->total_bytes)
		return -EPROTO;
	if (grow(&l->files, l->count, &l->room, sizeof(*l->files)) < 0)
		return -ENOMEM;
	a.path = copy_path(path, len);
	if (!a.path)
		return -ENOMEM;
	find_places(l, &a);
	l->total_bytes += size;
	l->files[l->count++] = a;
	l->arriving = true;
	l->got = 0;
	sha256_init(&l->digest);
	return 0;
}

static int on_bytes(void *ctx, const void *bytes, size_t len)
{
	struct artifacts_list *l = ctx;
	const struct artifacts_keeper *keeper = l->plan.keeper;
	struct artifact *a = &l->files[l->count - 1];

	sha256_update(&l->digest, len, bytes);
	if (a->content)
		memcpy(a->content + l->got, bytes, len);
	if (a->kept && keeper->bytes(keeper->ctx, a->place, l->got, bytes, len) < 0)
		unkeep(l, a);
	l->got += len;
	return 0;
}

static int on_close(void *ctx, enum files_reason why)
{
	struct artifacts_list *l = ctx;
	struct artifact *a = &l->files[l->count - 1];

	l->arriving = false;
	if (why != FILES_WHOLE)
		return drop_last(l, why);
	/* Whoever asks for contents, or for what can be had later, has neither of this one. */
	if (!a->content && !a->kept && (l->plan.keeper || l->plan.mode == ARTIFACTS_INLINE))
		return drop_last(l, FILES_NO_ROOM);
	sha256_digest(&l->digest, sizeof(a->sha256), a->sha256);
	return 0;
}

static int on_skip(void *ctx, const char *path, size_t len, uint64_t size, enum files_reason why)
{
	struct artifacts_list *l = ctx;

	l->skipped_bytes += len + FILES_SKIP_FRAME;
	if (l->skipped_bytes > FILES_SKIPPED_MAX)
		return -EPROTO;
	return leave_out(l, copy_path(path, len), len, size, why);
}

static int on_end(void *ctx, uint64_t more)
{
	struct artifacts_list *l = ctx;

	l->more = more;
	l->complete = true;
	return 0;
}

const struct files_calls artifacts_calls = { on_file, on_bytes, on_close, on_skip, on_end };

void artifacts_init(struct artifacts_list *l, const struct artifacts_plan *plan)
{
	memset(l, 0, sizeof(*l));
	l->plan = *plan;
	l->inline_left = plan->inline_bytes;
	files_reader_init(&l->reader, &artifacts_calls, l);
}

int artifacts_feed(struct artifacts_list *l, const void *bytes, size_t len, const char **ret_rule)
{
	int r = files_read(&l->reader, bytes, len, ret_rule);

	if (!**ret_rule)
		*ret_rule = "more than the caps let pass";
	return r;
}

void artifacts_end(struct artifacts_list *l)
{
	if (!l->arriving)
		return;
	l->arriving = false;
	/* Without memory for it the list is incomplete, which it says. */
	(void)drop_last(l, FILES_FAILED);
}

void artifacts_unkeep(struct artifacts_list *l)
{
	size_t count = l->count, left = 0;

	for (size_t i = 0; i < count; i++) {
		struct artifact a = l->files[i];

		unkeep(l, &a);
		if (a.content) {
			l->files[left++] = a;
			continue;
		}
		/* Without memory even for that the reply says that something is missing. */
		if (leave_out(l, a.path, a.path_len, a.size, FILES_NO_ROOM) < 0)
			l->complete = false;
	}
	l->count = left;
}

void artifacts_free(struct artifacts_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		unkeep(l, &l->files[i]);
		free(l->files[i].path);
		free(l->files[i].content);
	}
	for (size_t i = 0; i < l->skipped_count; i++)
		free(l->skipped[i].path);
	free(take_ptr(l->files));
	free(take_ptr(l->skipped));
	l->count = l->skipped_count = 0;
}
