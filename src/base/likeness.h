/* What somebody may have meant who wrote a word that is none of those known: another case, '_'
 * for '-', a letter wrong, too many, missing or in the wrong place, or a version behind it.
 *
 *   runs in    every process
 *   trusts     nothing; work is bounded by LIKENESS_MAX squared
 */
#pragma once

#include <stddef.h>

#define LIKENESS_MAX  48   /* longer words are like none */
#define LIKENESS_NONE 1000 /* farther away than anything alike is */

/* How far `word` (`len` bytes) is from `known`: 0 the same but for case and '_'; LIKENESS_NONE when
 * nobody would mean the one by the other. */
unsigned likeness(const char *word, size_t len, const char *known) __attribute__((nonnull));
