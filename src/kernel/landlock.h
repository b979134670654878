/* Landlock, the second wall behind the namespaces.
 *
 *   runs in    front, config process, gate, box, probe
 *   kernel     5.13; each right is used from the ABI that brought it
 */
#pragma once

#include <stdbool.h>

struct fault;

/* The kernel's ABI version, 0 when it has no Landlock or it is not enabled. */
int landlock_abi(void);

/* Handle everything, allow nothing, or only to read files and directories below the directory
 * `readable_fd` if that is not 0; `connects`: and TCP connections to elsewhere. Needs no_new_privs.
 * -EOPNOTSUPP where the kernel has none. */
int landlock_deny_all(int readable_fd, bool connects, struct fault *f) __attribute__((nonnull));

/* The program's rule set, from the cell's own root: read and execute below "/"; write and
 * make files, directories, links, sockets and FIFOs below /workspace, /tmp, /dev/shm; write
 * and ioctl on the nodes of /dev; no TCP rules; abstract sockets and signals scoped; its
 * audit log off. `builds`: a compiler, which may make files below /build as well. Needs no_new_privs. -EOPNOTSUPP where the kernel has none, and with ABI 1
 * (until 5.19): that one forbids every rename and link across directories. */
int landlock_cell(bool builds, struct fault *f) __attribute__((nonnull));
