#include "base/build_id.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#define ALIGN 4 /* of a note's name and content */

static size_t padded(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* The notes of one segment, which the linker has written and the loader has mapped. */
static int search(const unsigned char *p, size_t len, uint8_t *ret)
{
	ElfW(Nhdr) note;

	while (len >= sizeof(note)) {
		size_t name, content;

		memcpy(&note, p, sizeof(note));
		name = padded(note.n_namesz);
		content = padded(note.n_descsz);
		if (name > len - sizeof(note) || content > len - sizeof(note) - name)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz == BUILD_ID_BYTES) {
			memcpy(ret, p + sizeof(note) + name, BUILD_ID_BYTES);
			return 1;
		}
		p += sizeof(note) + name + content;
		len -= sizeof(note) + name + content;
	}
	return 0;
}

/* The first object is the program itself. */
static int on_object(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_NOTE &&
			search((const unsigned char *)(uintptr_t)(info->dlpi_addr + h->p_vaddr),
				h->p_memsz, ret))
			break;
	}
	return 1;
}

void build_id(uint8_t ret[static BUILD_ID_BYTES])
{
	memset(ret, 0, BUILD_ID_BYTES);
	(void)dl_iterate_phdr(on_object, ret);
}
