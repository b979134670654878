#include "kernel/caps.h"

#include "base/check.h"
#include "base/fault.h"
#include "kernel/sys.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define X(name, number) _Static_assert(CAPS_##name == CAP_##name, #name);
CAPS_NAMED(X)
#undef X

/* NOROOT: uid 0 means nothing to exec. NO_SETUID_FIXUP: a change of uid neither gives nor
 * takes. KEEP_CAPS stays off. NO_CAP_AMBIENT_RAISE: nothing survives an exec. Each with
 * its lock. */
#define SECUREBITS_ON \
	(SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_CAP_AMBIENT_RAISE | SECURE_ALL_LOCKS)

struct cap_sets {
	uint64_t effective, permitted, inheritable;
};

static struct __user_cap_header_struct header(void)
{
	return (struct __user_cap_header_struct){ .version = _LINUX_CAPABILITY_VERSION_3 };
}

/* Not in the table of sys.h: it changes nothing, and fails only for a wrong version. */
static int read_sets(struct cap_sets *ret)
{
	struct __user_cap_header_struct h = header();
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;

	ret->effective = d[0].effective | (uint64_t)d[1].effective << 32;
	ret->permitted = d[0].permitted | (uint64_t)d[1].permitted << 32;
	ret->inheritable = d[0].inheritable | (uint64_t)d[1].inheritable << 32;
	return 0;
}

static int write_sets(uint64_t keep)
{
	struct __user_cap_header_struct h = header();
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {
		{ .effective = (uint32_t)keep, .permitted = (uint32_t)keep },
		{ .effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32) },
	};

	return sys.capset(&h, d);
}

/* Is `cap` in the bounding set? Negative past the last capability that the kernel has,
 * which is how that is found: the list of the headers may be older than the kernel. */
static int in_bounding(unsigned cap)
{
	return sys.prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
}

static int drop_bounding(uint64_t keep, struct fault *f)
{
	for (unsigned cap = 0; cap < 64; cap++) {
		int r = in_bounding(cap);

		if (r == -EINVAL && cap > 0)
			break;
		if (r < 0)
			return fault_set(f, r, "read the bounding set");
		if (r == 0 || (keep & CAPS_BIT(cap)))
			continue;
		r = sys.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
		if (r < 0)
			return fault_set(f, r, "drop capability %u from the bounding set", cap);
	}
	return 0;
}

static int clear_ambient(struct fault *f)
{
	int r = sys.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

	return r < 0 ? fault_set(f, r, "clear the ambient capabilities") : 0;
}

static int lock_securebits(struct fault *f)
{
	int bits = sys.prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), r;

	if (bits < 0)
		return fault_set(f, bits, "read the securebits");

	/* Bits of newer kernels stay as they are. */
	bits = (bits | (int)SECUREBITS_ON) & ~(int)SECBIT_KEEP_CAPS;
	r = sys.prctl(PR_SET_SECUREBITS, (unsigned long)bits, 0, 0, 0);
	return r < 0 ? fault_set(f, r, "lock the securebits") : 0;
}

/* Believe the kernel, not the calls: a set that is not what it should be is a fault. */
static int verify(uint64_t keep, struct fault *f)
{
	struct cap_sets now;
	int r = read_sets(&now);

	if (r < 0)
		return fault_set(f, r, "read the capabilities");
	if (now.effective != keep || now.permitted != keep || now.inheritable != 0)
		return fault_say(f, -EPERM,
			"capabilities are permitted %llx effective %llx inheritable %llx, not %llx",
			(unsigned long long)now.permitted, (unsigned long long)now.effective,
			(unsigned long long)now.inheritable, (unsigned long long)keep);

	for (unsigned cap = 0; cap < 64; cap++) {
		int bounding = in_bounding(cap);
		bool kept = keep & CAPS_BIT(cap);

		if (bounding == -EINVAL && cap > 0)
			break;
		if (bounding < 0)
			return fault_set(f, bounding, "read the bounding set");
		if (bounding && !kept)
			return fault_say(
				f, -EPERM, "capability %u is still in the bounding set", cap);
		if (sys.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) != 0)
			return fault_say(f, -EPERM, "capability %u is still ambient", cap);
	}
	return 0;
}

uint64_t caps_permitted(void)
{
	struct cap_sets now;

	return read_sets(&now) < 0 ? 0 : now.permitted;
}

void caps_names(uint64_t set, char *ret, size_t room)
{
	static const struct {
		const char *name;
		uint64_t bit;
	} named[] = {
#define X(word, number) { "CAP_" #word, CAPS_BIT(number) },
		CAPS_NAMED(X)
#undef X
	};
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		if ((set & named[i].bit) && n < room)
			n += (size_t)snprintf(
				ret + n, room - n, "%s%s", n > 0 ? " " : "", named[i].name);
	}
}

int caps_lock(struct fault *f)
{
	int r = clear_ambient(f);

	if (r == 0)
		r = drop_bounding(0, f);
	if (r == 0)
		r = lock_securebits(f);
	return r;
}

int caps_clear(struct fault *f)
{
	int r = clear_ambient(f);

	if (r < 0)
		return r;
	r = write_sets(0);
	if (r < 0)
		return fault_set(f, r, "give up the capabilities");
	return verify(0, f);
}

int caps_keep_only(uint64_t keep, struct fault *f)
{
	int r;

	if (keep == 0) {
		r = caps_lock(f);
		return r < 0 ? r : caps_clear(f);
	}

	r = clear_ambient(f);
	if (r == 0)
		r = drop_bounding(keep, f); /* before the rest: it needs CAP_SETPCAP */
	if (r < 0)
		return r;
	r = write_sets(keep);
	if (r < 0)
		return fault_set(f, r, "keep the capabilities %llx", (unsigned long long)keep);
	return verify(keep, f);
}
