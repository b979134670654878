/* System-call filters. The programs are constant tables, compiled at build time by
 * tools/seccomp-compile from policy/NAME.seccomp.
 *
 *   runs in    front, config process, box
 *   kernel     3.17 (seccomp system call)
 */
#pragma once

struct fault;

enum seccomp_policy {
	SECCOMP_FRONT,   /* the HTTP front */
	SECCOMP_CONFIG,  /* the config process */
	SECCOMP_INIT,    /* pid 1 of a cell */
	SECCOMP_PROGRAM, /* untrusted code */
	SECCOMP_POLICY_MAX
};

/* Does the kernel take filters that answer with an errno? 0 or a negative errno. */
int seccomp_available(void);

/* Install the filter for the calling thread and the children that it will have. no_new_privs must be set. Irrevocable. */
int seccomp_install(enum seccomp_policy policy, struct fault *f) __attribute__((nonnull));
