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

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
