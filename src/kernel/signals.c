#include "kernel/signals.h"

#include "base/fault.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIGNALS_MAX 64 /* _NSIG of the kernel, on all architectures but MIPS */

/* struct kernel_sigaction, all zero: SIG_DFL, no flags, an empty mask. */
struct kernel_action {
	unsigned long words[4];
};

int signals_reset(struct fault *f)
{
	const struct kernel_action defaults = { { 0 } };
	const unsigned long none = 0;

	for (int sig = 1; sig <= SIGNALS_MAX; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP)
			continue;
		if (syscall(SYS_rt_sigaction, sig, &defaults, NULL, sizeof(none)) < 0)
			return fault_set(f, -errno, "default action of signal %d", sig);
	}
	if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none)) < 0)
		return fault_set(f, -errno, "unblock signals");
	return 0;
}
