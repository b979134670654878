#include "wire/files.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

#define NAME_MAX_BYTES 255u /* Linux's NAME_MAX */

static const struct {
	const char *word, *text;
} reasons[FILES_REASON_MAX] = {
#define X(name, word, text) [FILES_##name] = { word, text },
	FILES_REASONS(X)
#undef X
};

const char *files_reason_word(enum files_reason why)
{
	CHECK(why > FILES_WHOLE && why < FILES_REASON_MAX);
	return reasons[why].word;
}

const char *files_reason_text(enum files_reason why)
{
	CHECK(why > FILES_WHOLE && why < FILES_REASON_MAX);
	return reasons[why].text;
}

static const char *component_fault(const char *name, size_t len)
{
	if (len == 0)
		return "a path with an empty component";
	if (len > NAME_MAX_BYTES)
		return "a path with a component of more than 255 bytes";
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')))
		return "a path with a component \".\" or \"..\"";
	return NULL;
}

const char *files_path_fault(const char *path, size_t len)
{
	size_t begin = 0;

	if (len > FILES_PATH_MAX)
		return "a path of more than 4,095 bytes";
	if (memchr(path, '\0', len))
		return "a path with a NUL";
	for (size_t i = 0; i <= len; i++) {
		const char *rule;

		if (i < len && path[i] != '/')
			continue;
		rule = component_fault(path + begin, i - begin);
		if (rule)
			return rule;
		begin = i + 1;
	}
	return NULL;
}

/* As if "/" were the NUL that no path has: what is in a directory comes right behind it. */
static int rank(char c)
{
	return c == '/' ? 0 : (unsigned char)c;
}

int files_path_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t common = a_len < b_len ? a_len : b_len;

	for (size_t i = 0; i < common; i++) {
		if (a[i] != b[i])
			return rank(a[i]) - rank(b[i]);
	}
	if (a_len == b_len)
		return 0;
	return a_len < b_len ? -1 : 1;
}

/* ---- Reading ---- */

void files_reader_init(struct files_reader *r, const struct files_calls *calls, void *ctx)
{
	memset(r, 0, sizeof(*r));
	r->calls = calls;
	r->ctx = ctx;
}

static bool has_path(const struct files_record *h)
{
	return h->type == FILES_FILE || h->type == FILES_SKIP;
}

/* What a record has besides its type, and must not have or must. */
static const char *parts_fault(const struct files_record *h)
{
	bool may_fail = h->type == FILES_SKIP || h->type == FILES_CLOSE;

	if (h->reason >= FILES_REASON_MAX || (h->reason != FILES_WHOLE && !may_fail) ||
		(h->reason == FILES_WHOLE && h->type == FILES_SKIP))
		return "a reason that is none";
	if (has_path(h) != (h->path_bytes > 0) || h->path_bytes > FILES_PATH_MAX)
		return "a path where none belongs, or none where one does";
	if ((h->type == FILES_BYTES) != (h->bytes > 0) || h->bytes > FILES_CHUNK)
		return "bytes where none belong, or none where some do";
	return NULL;
}

/* The rule that a record breaks by itself or by where it stands; NULL: none. */
static const char *record_fault(const struct files_reader *r, const struct files_record *h)
{
	bool in_file = h->type == FILES_BYTES || h->type == FILES_CLOSE;

	if (h->type < FILES_FILE || h->type > FILES_END)
		return "a record of no type";
	if (in_file != r->open)
		return in_file ? "bytes of no file" : "a file without its end";
	if (in_file && h->size != 0)
		return "a size where none belongs";
	if (in_file && h->bytes > r->size - r->got)
		return "more bytes than announced";
	if (h->type == FILES_CLOSE && h->reason == FILES_WHOLE && r->got != r->size)
		return "fewer bytes than announced";
	return parts_fault(h);
}

/* Does `path` come after the one before, and does it not take that for a directory? */
static const char *order_fault(const struct files_reader *r)
{
	size_t len = r->record.path_bytes;

	if (r->last_len == 0)
		return NULL;
	if (files_path_compare(r->last, r->last_len, r->path, len) >= 0)
		return "a path out of order";
	if (len > r->last_len && r->path[r->last_len] == '/' &&
		memcmp(r->path, r->last, r->last_len) == 0)
		return "a path below a file";
	return NULL;
}

static int on_path(struct files_reader *r, const char **ret_rule)
{
	const struct files_record *h = &r->record;

	r->path[h->path_bytes] = '\0';
	*ret_rule = files_path_fault(r->path, h->path_bytes);
	if (!*ret_rule)
		*ret_rule = order_fault(r);
	if (*ret_rule)
		return -EPROTO;
	memcpy(r->last, r->path, h->path_bytes + 1u);
	r->last_len = h->path_bytes;
	if (h->type == FILES_SKIP)
		return r->calls->skip(
			r->ctx, r->path, h->path_bytes, h->size, (enum files_reason)h->reason);
	r->open = true;
	r->size = h->size;
	r->got = 0;
	return r->calls->file(r->ctx, r->path, h->path_bytes, h->size);
}

/* A record is complete; if it has a tail, that comes next. */
static int on_record(struct files_reader *r, const char **ret_rule)
{
	const struct files_record *h = &r->record;

	r->have = 0;
	*ret_rule = record_fault(r, h);
	if (*ret_rule)
		return -EPROTO;
	r->has_record = has_path(h) || h->type == FILES_BYTES;
	r->left = h->bytes;
	if (h->type == FILES_CLOSE) {
		r->open = false;
		return r->calls->close(r->ctx, (enum files_reason)h->reason);
	}
	if (h->type == FILES_END) {
		r->done = true;
		return r->calls->end(r->ctx, h->size);
	}
	return 0;
}

/* Copy what is missing of `want` bytes at `to`: how much was taken. */
static size_t fill(struct files_reader *r, void *to, size_t want, const char *from, size_t len)
{
	size_t n = want - r->have < len ? want - r->have : len;

	memcpy((char *)to + r->have, from, n);
	r->have += n;
	return n;
}

static int take_bytes(struct files_reader *r, const char *at, size_t len, size_t *ret_taken)
{
	size_t n = r->left < len ? r->left : len;

	*ret_taken = n;
	r->left -= (uint32_t)n;
	r->got += n;
	r->has_record = r->left > 0;
	return r->calls->bytes(r->ctx, at, n);
}

static int take_some(struct files_reader *r, const char *at, size_t len, size_t *ret_taken,
	const char **ret_rule)
{
	if (r->done) {
		*ret_rule = "bytes behind the end";
		return -EPROTO;
	}
	if (!r->has_record) {
		*ret_taken = fill(r, &r->record, sizeof(r->record), at, len);
		return r->have == sizeof(r->record) ? on_record(r, ret_rule) : 0;
	}
	if (r->record.type == FILES_BYTES)
		return take_bytes(r, at, len, ret_taken);
	*ret_taken = fill(r, r->path, r->record.path_bytes, at, len);
	if (r->have < r->record.path_bytes)
		return 0;
	r->have = 0;
	r->has_record = false;
	return on_path(r, ret_rule);
}

int files_read(struct files_reader *r, const void *bytes, size_t len, const char **ret_rule)
{
	const char *at = bytes, *rule = NULL;
	int e = 0;

	while (len > 0 && e == 0) {
		size_t taken = 0;

		e = take_some(r, at, len, &taken, &rule);
		at += taken;
		len -= taken;
	}
	if (e < 0)
		r->done = true; /* takes nothing more */
	*ret_rule = rule ? rule : "";
	return e;
}
