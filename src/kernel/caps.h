/* Capabilities: only ever fewer.
 *
 *   runs in    front, config process, box, supervisor
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct fault;

/* The capabilities that somebody outside of kernel/ names, by their numbers in
 * <linux/capability.h>; caps.c holds the two against each other. */
/* clang-format off */
#define CAPS_NAMED(X)                                                                      \
	X(CHOWN, 0) X(DAC_OVERRIDE, 1) X(FOWNER, 3) X(KILL, 5) X(SETGID, 6) X(SETUID, 7)   \
	X(SETPCAP, 8) X(SYS_CHROOT, 18) X(SYS_PTRACE, 19) X(SYS_ADMIN, 21)           \
	X(SYS_NICE, 23) X(MKNOD, 27)
/* clang-format on */
enum caps_named {
#define X(name, number) CAPS_##name = (number),
	CAPS_NAMED(X)
#undef X
};

#define CAPS_BIT(c) (UINT64_C(1) << (c))

/* Make `keep` (CAPS_BIT()s) the permitted and effective set, and nothing the
 * inheritable, ambient and bounding sets (bounding keeps `keep` too when `keep` is not
 * empty). keep = 0 also locks the securebits: NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off,
 * NO_CAP_AMBIENT_RAISE. A capability in `keep` that the caller has not is -EPERM: see
 * caps_permitted(). */
int caps_keep_only(uint64_t keep, struct fault *f) __attribute__((nonnull));

/* What the caller may keep; 0 when that cannot be told. */
uint64_t caps_permitted(void);

/* The names of those in `set` ("CAP_KILL CAP_SYS_ADMIN"), as far as CAPS_NAMED has them and
 * they fit. */
void caps_names(uint64_t set, char *ret, size_t room) __attribute__((nonnull));

/* As for keep = 0, but in the two halves that must stand around a change of uid:
 * caps_lock() needs CAP_SETPCAP (securebits, bounding set) and must come first: after it
 * a change of uid leaves the capabilities alone. caps_clear() empties the rest and
 * verifies all five sets by reading them back. */
int caps_lock(struct fault *f) __attribute__((nonnull));
int caps_clear(struct fault *f) __attribute__((nonnull));
