#include "kernel/speculation.h"

#include "base/fault.h"
#include "kernel/sys.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int speculation_restrict(struct fault *f)
{
	int r;

	/* ENOSYS: no keyrings in this kernel. EDQUOT: the user's key quota, which an anonymous
	 * keyring of a fresh uid never meets. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return fault_set(f, -errno, "new session keyring");
	r = sys.prctl(
		PR_SET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH, PR_SPEC_FORCE_DISABLE, 0, 0);
	/* ENXIO, ENODEV, EINVAL: not controllable per process here. EPERM: forced already. */
	if (r < 0 && r != -ENXIO && r != -ENODEV && r != -EINVAL && r != -EPERM)
		return fault_set(f, r, "indirect branch speculation");
	return 0;
}
