/* A TLS ClientHello (RFC 8446, 4.1.2, and those before it), for the names in it: read strictly, so that
 * nobody behind reads another name in it. What a client has no need of is refused: other messages in
 * its records, names that are none, the same extension twice.
 *
 *   runs in    the gate
 *   owns       nothing
 *   threads    none: a hello is put together in one place
 *   trusts     no byte
 */
#pragma once

#include "wire/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HELLO_MAX 16384u /* with its records; one with post-quantum keys has some 2,000 bytes */

struct hello {
	bool hidden;                     /* it has an encrypted name (ECH, or ESNI before it) */
	bool early;                      /* data may follow before its answer (0-RTT) */
	char name[NETWORK_NAME_MAX + 3]; /* lower case; "": it says none */
};

/* `bytes` begin with the record that the hello begins in. Returns
 *   > 0  so many bytes of records are a hello: *ret is what it says
 *   0    more bytes are needed
 *   -1   it is none, or too long */
ssize_t hello_read(const uint8_t *bytes, size_t len, struct hello *ret)
	__attribute__((nonnull, warn_unused_result));
