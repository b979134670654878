/* What goes into a run beside its code: arguments, environment, files, and which of them is the
 * program. It is a blob behind the code in the one sealed memory that SUBMIT carries. Here is its
 * format, and the rules that hold for what is in it.
 *
 *   runs in    the front and the caller, which make it (api/inputs.h); enter and a zygote's
 *              child, which read it as the program's user when they have dropped everything.
 *              The supervisor checks its size and looks at no byte of it
 *   owns       nothing; what is given out points into the blob
 *   trusts     no byte of a blob
 *
 * The blob, in this machine's byte order and without padding:
 *
 *   struct inputs_head
 *   args       texts, each ended by NUL
 *   env        texts NAME=VALUE, each ended by NUL
 *   files      each a struct inputs_file, its path ended by NUL, its bytes
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUTS_MAGIC UINT32_C(0x31494247) /* "GBI1" */

#define INPUTS_ARGS_MAX        256u
#define INPUTS_ENV_MAX         128u
#define INPUTS_FILES_MAX       1000u /* under a quarter of what a workspace holds by default */
/* Of all arguments together, and of all variables together, each with the NUL behind it: half
 * of what Linux takes as a single one (MAX_ARG_STRLEN). */
#define INPUTS_WORDS_BYTES_MAX 65536u
#define INPUTS_NAME_MAX        255u  /* bytes of one component of a path: Linux's NAME_MAX */
#define INPUTS_PATH_MAX        1024u /* bytes of a path, seen from /workspace */
#define INPUTS_VARIABLE_MAX    128u  /* bytes of a variable's name */
#define INPUTS_MODE            0644u /* of a file that asks for no other */
#define INPUTS_MODE_MAX        0777u

struct inputs_head {
	uint32_t magic;
	uint32_t args, env, files; /* how many */
	uint32_t entry;            /* n: the nth file is the program; 0: the code is */
	uint32_t reserved;         /* 0 */
};

struct inputs_file {
	uint64_t bytes;
	uint32_t path_bytes; /* without its NUL */
	uint32_t mode;
};

/* The most that a blob holds beside the bytes of the files. */
#define INPUTS_FRAME_MAX                                                   \
	(sizeof(struct inputs_head) + 2 * (size_t)INPUTS_WORDS_BYTES_MAX + \
		INPUTS_FILES_MAX * (sizeof(struct inputs_file) + INPUTS_PATH_MAX + 1))

/* A blob that was looked through. */
struct inputs {
	struct inputs_head head;
	const char *args, *env, *files; /* where each begins */
	const char *entry;              /* path of the program; NULL: the code is it */
};

struct inputs_item {
	const char *path;
	const char *bytes;
	uint64_t len;
	uint32_t mode;
};

/* Look through the `len` bytes of a blob. NULL: *ret may be walked; otherwise the rule that is
 * broken, as a constant text. */
const char *inputs_open(const void *blob, size_t len, struct inputs *ret)
	__attribute__((nonnull(3)));

/* Does a blob that was made here say that it has files? Looks at no more than its head. */
bool inputs_have_files(const void *blob, size_t len);

/* The text behind `word`. */
const char *inputs_next(const char *word) __attribute__((nonnull));

/* Take the file at *at and move on. Begin with in->files; there are in->head.files of them. */
void inputs_take(const char **at, struct inputs_item *ret) __attribute__((nonnull));

/* ---- Rules, as the end of a sentence that begins with what it is about; NULL: it is fine ---- */

/* A path below /workspace: relative, UTF-8 or not, components of 1 to 255 bytes none of which is
 * "." or "..", at most 1,024 bytes, no NUL, no control character. */
const char *inputs_path_fault(const char *path, size_t len) __attribute__((nonnull));

/* A variable's name that a program may be given: a letter or "_", then letters, digits and "_",
 * and none that a C library, a dynamic linker or an interpreter reads before the program begins. */
const char *inputs_variable_fault(const char *name, size_t len) __attribute__((nonnull));
