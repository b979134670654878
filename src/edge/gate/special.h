/* Addresses that are not of the public internet: the machine itself, its neighbours, what hands out
 * a cloud's secrets, and forms of IPv6 that hold an address of IPv4, behind which any of these could
 * be hidden. The gate denies them unless the operator has named them.
 *
 *   runs in    the gate
 *   trusts     nothing
 */
#pragma once

#include "wire/network.h"

/* NETWORK_ALLOWED: a public address; otherwise what it is. Metadata goes before the range that it
 * is in. Of the machine's own addresses nothing is known here. */
enum network_verdict network_special(const struct network_address *a) __attribute__((nonnull));
