/* What a run leaves in /workspace, on its way out: a stream of records that the collector writes
 * into a pipe and the client reads. Here are its format, the rules of its paths and its reader.
 *
 *   runs in    the collector, which writes it; the front and the caller, which read it. The
 *              supervisor hands the pipe over and looks at no byte
 *   owns       nothing
 *   trusts     no byte of a stream: a program has made the names, and the collector has looked at
 *              them
 *
 * The stream, in this machine's byte order:
 *
 *   FILE   a path follows, and then BYTES until CLOSE
 *   BYTES  so many follow
 *   CLOSE  the file is over; a reason tells that it is not whole
 *   SKIP   a path follows: of a file that is left out, or of a directory that nobody looked into
 *   END    nothing follows; `size` more entries were left out that are not named
 *
 * Paths come in the order of their bytes, "/" first of all, and each comes once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILES_PATH_MAX \
	4095u /* bytes of a path, seen from /workspace: Linux's PATH_MAX with its NUL */
#define FILES_DEPTH_MAX   100u   /* directories in each other: a descriptor each */
#define FILES_CHUNK       65536u /* most bytes of one BYTES: what a pipe holds */
/* Of all paths of SKIPs, each with what a reply has beside it. */
#define FILES_SKIPPED_MAX (UINT64_C(1) << 20)
#define FILES_SKIP_FRAME  32u
/* How long contents are read. What comes after is still named. A run's files are in memory: a
 * gigabyte takes about a second. */
#define FILES_TIME_US     UINT64_C(10000000)

/* Why something is left out.
 *  name, word, what it is about the entry */
/* clang-format off */
#define FILES_REASONS(X)                                                                           \
	X(SYMLINK,    "symlink",       "a symbolic link, which is not followed")                   \
	X(FIFO,       "fifo",          "a FIFO")                                                   \
	X(SOCKET,     "socket",        "a socket")                                                 \
	X(DEVICE,     "device",        "a device node, or an overlay's whiteout")                  \
	X(UNREADABLE, "unreadable",    "its permissions keep its own user from reading it")        \
	X(TOO_DEEP,   "too_deep",      "a directory that lies in 100 others: nobody looked in")    \
	X(LONG_PATH,  "path_too_long", "its path has more than 4,095 bytes; a directory's files are left out with it") \
	X(TOO_MANY,   "too_many_names", "a directory with more names than can be put in order")    \
	X(TOO_LARGE,  "too_large",     "larger than artifact-file-bytes")                          \
	X(TOTAL,      "total_bytes",   "with it all files would be larger than artifact-bytes")    \
	X(COUNT,      "count",         "as many files as artifact-files come before it")           \
	X(TIME,       "time",          "reading those before it took too long")                    \
	X(CHANGED,    "changed",       "it changed while it was read")                             \
	X(FAILED,     "failed",        "the kernel refused to read it")                            \
	X(NO_ROOM,    "no_room",       "nothing could keep it: artifact-store is full, or off")
/* clang-format on */

enum files_reason {
	FILES_WHOLE, /* no reason: it is there */
#define X(name, word, text) FILES_##name,
	FILES_REASONS(X)
#undef X
	FILES_REASON_MAX
};

/* "symlink" and the like; what it means, as the end of "it is …". Neither for FILES_WHOLE. */
const char *files_reason_word(enum files_reason why);
const char *files_reason_text(enum files_reason why);

enum files_type {
	FILES_FILE = 1,
	FILES_BYTES,
	FILES_CLOSE,
	FILES_SKIP,
	FILES_END
};

struct files_record {
	uint8_t type;        /* enum files_type */
	uint8_t reason;      /* enum files_reason: SKIP and CLOSE, otherwise 0 */
	uint16_t path_bytes; /* FILE and SKIP, otherwise 0 */
	uint32_t bytes;      /* BYTES: 1 to FILES_CHUNK, otherwise 0 */
	uint64_t size;       /* FILE, SKIP: of the file; END: how many more; otherwise 0 */
};

/* The most that one run's files may be; the supervisor's settings. */
struct files_caps {
	uint64_t file_bytes, total_bytes;
	uint64_t time_us;
	uint32_t count;
	uint32_t reserved; /* 0 */
};

/* What is wrong with a path, as a constant text; NULL: it is one below /workspace. Relative, of
 * components of 1 to 255 bytes, none of them "." or "..", with no NUL; any other byte may be in
 * it. */
const char *files_path_fault(const char *path, size_t len) __attribute__((nonnull));

/* The order of paths in a stream: below 0, 0, above 0. */
int files_path_compare(const char *a, size_t a_len, const char *b, size_t b_len)
	__attribute__((nonnull));

/* ---- Reading ---- */

/* What a reader tells. `path` is terminated, and gone after the call. What returns a negative
 * errno ends the reading with it. */
struct files_calls {
	int (*file)(void *ctx, const char *path, size_t len, uint64_t size);
	int (*bytes)(void *ctx, const void *bytes, size_t len); /* of the last file, in order */
	int (*close)(void *ctx, enum files_reason why); /* FILES_WHOLE: all `size` bytes came */
	int (*skip)(void *ctx, const char *path, size_t len, uint64_t size, enum files_reason why);
	int (*end)(void *ctx, uint64_t more);
};

struct files_reader {
	const struct files_calls *calls;
	void *ctx;
	struct files_record record;
	size_t have;        /* bytes of the record, or of its path */
	bool has_record;    /* its path or its bytes are being read */
	bool open;          /* between FILE and CLOSE */
	bool done;          /* END has come */
	uint64_t size, got; /* of the open file */
	uint32_t left;      /* of the bytes of a BYTES */
	size_t last_len;    /* the path before, whose length is 0 at first */
	char path[FILES_PATH_MAX + 1], last[FILES_PATH_MAX + 1];
};

void files_reader_init(struct files_reader *r, const struct files_calls *calls, void *ctx)
	__attribute__((nonnull(1, 2)));

/* Take the next `len` bytes of the stream. 0; -EPROTO: it breaks a rule, *ret_rule names it; or
 * what a call returned, with "" as the rule. After a failure the reader takes nothing more. */
int files_read(struct files_reader *r, const void *bytes, size_t len, const char **ret_rule)
	__attribute__((nonnull(1, 4)));
