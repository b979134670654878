/* Quantities as people write them, parsed strictly: the whole text must be the value.
 * No sign, no white space, no leading zero (010 is eight to some), no exponent, no hex;
 * a fraction only where the result is a whole number of the unit that is returned.
 *
 *   runs in    every process
 *   trusts     nothing: texts come from files, the environment and command lines
 *
 * All return 0 and set *ret, or leave it alone and return -EINVAL (not of this form) or
 * -ERANGE (of this form, but more than fits).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* "4096", "64M", "1.5G", "2GiB": bytes. K, M, G and T are powers of 1,024, in either
 * case, with or without B or iB behind. */
int quantity_size(const char *text, uint64_t *ret) __attribute__((nonnull));

/* As quantity_size(), but a number without a letter is in MiB ("64", "0.5"). */
int quantity_mib(const char *text, uint64_t *ret) __attribute__((nonnull));

/* "3", "1.5s", "200ms", "50us", "5m", "1h": microseconds; a bare number is in seconds. */
int quantity_duration(const char *text, uint64_t *ret) __attribute__((nonnull));

/* "2", "0.5", "0.125": thousandths of one CPU. */
int quantity_cpus(const char *text, uint64_t *ret) __attribute__((nonnull));

/* "32": a plain whole number. */
int quantity_count(const char *text, uint64_t *ret) __attribute__((nonnull));

/* "true" or "false". */
int quantity_bool(const char *text, bool *ret) __attribute__((nonnull));
