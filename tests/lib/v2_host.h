/* A host with nothing but cgroup v2, as far as its texts and rules go: a folder whose directories are
 * groups. It makes their files, hands controllers down, and refuses what the kernel refuses:
 * controllers for the children of a group with processes, and the removal of one that has some.
 * Nothing in it limits or ends anybody.
 *
 * Entries of the table of system calls, and faccessat() and fgetxattr() (linked with
 * -Wl,--wrap=faccessat,--wrap=fgetxattr,--wrap=geteuid), for code of src/kernel.
 *
 *   runs in    unit tests
 */
#pragma once

#include "kernel/sys.h"

#include <stdbool.h>
#include <stdint.h>

#define V2_PATH_MAX 256

extern struct v2_host {
	/* To be set before v2_begin(): */
	const char *own;          /* the group of the calling process */
	const char *controllers;  /* of the hierarchy */
	const char *handed;       /* from its top to the groups below; NULL: none */
	bool in_container;        /* what is mounted is not the hierarchy's real root */
	const char *root;         /* the group that is seen at the mount; NULL: "/" */
	bool read_only, unlisted; /* the mount; /proc/self/cgroup, until one is made */
	bool not_cgroup;          /* something else lies over the mount */
	bool no_second_list;      /* /proc/self/cgroup cannot be read after one was made */
	/* At any time: */
	bool systemd, delegated, not_root, not_writable;
	int no_mounting; /* which of the three calls that make a mount fails, from 1 on; 0: none */
	const char *no_file; /* this one cannot be opened... */
	int no_file_code;    /* ...for that reason */
	bool others_make;    /* somebody else makes each group just before we do... */
	bool others_remove;  /* ...and removes it */
	unsigned busy;       /* so many removals are refused: somebody is dying */
	unsigned mounts;     /* that were made */
} v2;

/* Make it; `own` and the groups above it are there. v2_end() takes it away. */
void v2_begin(void);
void v2_end(void);

/* A group, and one with a process that is not ours in it. */
void v2_group(const char *path) __attribute__((nonnull));
void v2_crowd(const char *path) __attribute__((nonnull));

/* Its directory; the caller closes it. */
int v2_open(const char *path) __attribute__((nonnull));

bool v2_is_there(const char *path) __attribute__((nonnull));
/* Is the calling process in this group? */
bool v2_holds_us(const char *path) __attribute__((nonnull));
/* Does this file of it hold the word? */
bool v2_has(const char *path, const char *file, const char *word) __attribute__((nonnull));
