/* System-call filters. The programs are constant tables, compiled at build time by
 * tools/seccomp-compile from policy/NAME.seccomp.
 *
 *   runs in    front, config process, box
 *   kernel     3.17 (seccomp system call); 5.0 for a listener
 */
#pragma once

#include <stdint.h>

struct fault;

enum seccomp_policy {
	SECCOMP_FRONT,     /* the HTTP front */
	SECCOMP_CONFIG,    /* the config process */
	SECCOMP_COLLECTOR, /* who reads what a program has left */
	SECCOMP_GATE,      /* who carries a run's packets to the world */
	SECCOMP_INIT,      /* pid 1 of a cell */
	SECCOMP_PROGRAM,   /* untrusted code */
	SECCOMP_POLICY_MAX
};

/* Does the kernel take filters that answer with an errno? 0 or a negative errno. */
int seccomp_available(void);

/* Install the filter for the calling thread and the children that it will have. no_new_privs must be set. Irrevocable. */
int seccomp_install(enum seccomp_policy policy, struct fault *f) __attribute__((nonnull));

/* Install the filter for untrusted code, with a listener that is told of what the policy denies:
 * *ret_listener is then a descriptor, close-on-exec, and a denied call waits until
 * seccomp_answer() or the listener's last copy is closed, after which such calls say ENOSYS.
 * Whoever holds it could also let such a call through: it goes to the supervisor, and is closed
 * here, before any foreign code runs. -1: there can be no listener (a filter above this process
 * has one), and what is denied is answered by the kernel. */
int seccomp_install_told(int *ret_listener, struct fault *f) __attribute__((nonnull));

/* Answer one denied call with the errno of its policy, whatever its arguments: never lets one
 * through, and looks at numbers only. 1: answered, *ret_number is the system call's. 0: none
 * waits. -EPIPE: nobody is left who could make one; another negative errno: `listener` is
 * none. Never blocks. */
int seccomp_answer(int listener, uint32_t *ret_number) __attribute__((nonnull));
