/* CHECK(): what must hold unless this program itself is wrong. Always on, in
 * releases too; logs and aborts.
 *
 * Never about bytes that came from outside the process: a malformed message costs
 * its sender the connection, not us our life.
 *
 *   runs in    every process
 */
#pragma once

#define CHECK(cond)                                              \
	do {                                                     \
		if (__builtin_expect(!(cond), 0))                \
			check_failed(#cond, __FILE__, __LINE__); \
	} while (0)

_Noreturn void check_failed(const char *what, const char *file, int line)
	__attribute__((nonnull, cold));

/* For a step that the kernel did not let the process take back, and that it must not go on
 * with: a foreign user or namespace. Logs `what` could not be done, and `error` (an errno,
 * negative), and aborts. */
_Noreturn void cannot_go_on(const char *what, int error) __attribute__((nonnull, cold));

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
