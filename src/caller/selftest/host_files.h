/* What the kernel's files say of processes and mounts, and the groups of the cell in them.
 *
 *   runs in    the command line (`glovebox selftest`)
 *   owns       nothing
 *   blocks     never
 *   trusts     the kernel's files
 */
#pragma once

#include "base/own.h"
#include "caller/selftest/selftest.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_TEXT_MAX 65536 /* what is read of one file */
#define HOST_WAIT_MS  2000  /* a process that was killed takes a moment to be gone */

static inline void host_close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

#define CLEANUP_DIR CLEANUP(host_close_dir) DIR

/* /proc/PID/NAME; "" when it cannot be read. */
void host_read(pid_t pid, const char *name, char *text, size_t room) __attribute__((nonnull));

/* The value behind "\nKEY:" and blanks, up to the end of the line. False, and "": there is none. */
bool host_field(const char *text, const char *key, char *ret, size_t room) __attribute__((nonnull));

/* The pipe that is descriptor `fd` of that process; 0 when it is none. */
uint64_t host_pipe_at(pid_t pid, const char *fd) __attribute__((nonnull));

/* The next process of /proc; 0 at its end. */
pid_t host_next_pid(DIR *dir) __attribute__((nonnull));

/* The supervisor's child that is fed by this process; 0: there is none. */
pid_t host_find_program(void);

/* One line of mountinfo: "ID PARENT DEV ROOT POINT OPTIONS … - TYPE SOURCE SUPER". */
struct host_mount {
	char point[256], options[256], type[32], super[512];
};

/* False: the line is none. */
bool host_parse_mount(const char *line, struct host_mount *ret) __attribute__((nonnull));

/* Is it one of the words between the commas? */
bool host_has_word(const char *list, const char *word) __attribute__((nonnull));

/* ---- host_groups.c ---- */

/* Say what bounds the cell's group, and find the instance's groups, which selftest_host_end() looks for. */
void host_look_at_groups(struct selftest *s) __attribute__((nonnull));
void host_find_tops(struct selftest *s) __attribute__((nonnull));
