#include "base/likeness.h"

#include <string.h>

#define SHORT_LEN  5 /* of words below it more than one letter is another word */
#define PREFIX_LEN 4 /* "python3.11" means "python", "c99" may mean anything */

static char fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '_' ? '-' : c;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Letters to add, to take away, to change, or to swap with the next one. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][LIKENESS_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];

	for (unsigned k = 0; k <= b_len; k++)
		last[k] = k;
	for (unsigned i = 1; i <= a_len; i++) {
		unsigned *spare = before;

		now[0] = i;
		for (unsigned k = 1; k <= b_len; k++) {
			unsigned same = fold(a[i - 1]) == fold(b[k - 1]) ? 0 : 1;

			now[k] = least(least(last[k], now[k - 1]) + 1, last[k - 1] + same);
			if (i > 1 && k > 1 && fold(a[i - 1]) == fold(b[k - 2]) &&
				fold(a[i - 2]) == fold(b[k - 1]))
				now[k] = least(now[k], before[k - 2] + 1);
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

unsigned likeness(const char *word, size_t len, const char *known)
{
	size_t known_len = strlen(known);
	unsigned far;

	if (len == 0 || len > LIKENESS_MAX || known_len == 0 || known_len > LIKENESS_MAX)
		return LIKENESS_NONE;
	far = distance(word, len, known, known_len);
	if (far <= (least((unsigned)len, (unsigned)known_len) < SHORT_LEN ? 1 : 2) &&
		far < known_len)
		return far;
	if (known_len >= PREFIX_LEN && len > known_len &&
		distance(word, known_len, known, known_len) == 0)
		return 3;
	return LIKENESS_NONE;
}
