/* Whole reads and writes of small files and pipes, with EINTR handled.
 *
 *   runs in    every process
 *   blocks     as the descriptor does
 */
#pragma once

#include <fcntl.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Write all `len` bytes. 0, or a negative errno after a partial write. */
int io_write_all(int fd, const void *bytes, size_t len) __attribute__((nonnull));

/* Read until EOF or `room` bytes. The number of bytes, or a negative errno. */
ssize_t io_read_all(int fd, void *bytes, size_t room) __attribute__((nonnull));

/* Read a file of at most `room` - 1 bytes below `dir_fd` (AT_FDCWD for the usual
 * meaning) into `text` and terminate it. The length, or a negative errno; -EFBIG
 * when it is longer. */
ssize_t io_read_text(int dir_fd, const char *path, char *text, size_t room)
	__attribute__((nonnull));

/* Write `text` to an existing file in one write(), as kernel files demand. */
int io_write_text(int dir_fd, const char *path, const char *text) __attribute__((nonnull));

/* Parse the decimal number that `text` holds, followed by nothing but white space.
 * 0, -EINVAL for anything else, -ERANGE when it does not fit. */
int io_parse_u64(const char *text, uint64_t *ret) __attribute__((nonnull));

/* What a memfd gets that nobody may change any more. */
#define IO_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Seal a memfd that nobody has mapped for writing. 0 or a negative errno; -EBUSY after some tries,
 * of up to 0.15 s each. */
int io_seal(int fd);
