#include "box/collect/known.h"

#include "base/fault.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static int map_code(struct known *k, int fd, struct fault *f)
{
	void *map = mmap(NULL, (size_t)k->code_bytes, PROT_READ, MAP_PRIVATE, fd, 0);

	if (map == MAP_FAILED)
		return fault_set(f, -errno, "map the code");
	k->inputs.map = map;
	k->inputs.len = (size_t)k->code_bytes;
	return 0;
}

int known_open(struct known *k, int fd, const char *main_file, uint64_t code_bytes,
	uint64_t inputs_bytes, struct fault *f)
{
	const char *at;
	int r;

	memset(k, 0, sizeof(*k));
	k->main_file = main_file;
	k->code_bytes = code_bytes;
	if (inputs_bytes == 0)
		return code_bytes > 0 ? map_code(k, fd, f) : 0;
	r = inputs_load(fd, code_bytes, inputs_bytes, &k->inputs, f);
	if (r < 0)
		return r;
	if (k->inputs.in.entry)
		k->main_file = NULL;
	at = k->inputs.in.files;
	for (uint32_t i = 0; i < k->inputs.in.head.files; i++)
		inputs_take(&at, &k->items[i]);
	return 0;
}

const char *known_find(const struct known *k, const char *path, size_t len, uint64_t *ret_bytes)
{
	/* From the last one on: the code comes first, and a file of its name after it. */
	for (uint32_t i = k->inputs.in.head.files; i > 0; i--) {
		const struct inputs_item *item = &k->items[i - 1];

		if (strncmp(item->path, path, len) == 0 && item->path[len] == '\0') {
			*ret_bytes = item->len;
			return item->bytes;
		}
	}
	if (!k->main_file || strlen(k->main_file) != len || memcmp(k->main_file, path, len) != 0)
		return NULL;
	*ret_bytes = k->code_bytes;
	return k->code_bytes > 0 ? k->inputs.map : "";
}
