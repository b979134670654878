#include <Python.h> /* first: it may define what the C library's headers look at */

#include "box/zygote/share.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "box/zygote/settle.h"
#include "box/zygote/steps.h"
#include "kernel/remap.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RANGES_MAX 1024
#define MAPS_BYTES ((size_t)1 << 20)
#define PAGE_BYTES 4096ul

static struct {
	PyObjectArenaAllocator original;
	struct remap_range arenas[RANGES_MAX];
	unsigned arena_count;
} noted;

/* ---- The interpreter's arenas ---- */

static void *arena_alloc(void *ctx, size_t size)
{
	void *arena = noted.original.alloc(noted.original.ctx, size);

	(void)ctx;
	if (arena && noted.arena_count < RANGES_MAX)
		noted.arenas[noted.arena_count++] = (struct remap_range){ .start = (uintptr_t)arena,
			.end = (uintptr_t)arena + size };
	return arena;
}

static void arena_free(void *ctx, void *arena, size_t size)
{
	(void)ctx;
	for (unsigned i = 0; i < noted.arena_count; i++) {
		if (noted.arenas[i].start == (uintptr_t)arena) {
			noted.arenas[i] = noted.arenas[--noted.arena_count];
			break;
		}
	}
	noted.original.free(noted.original.ctx, arena, size);
}

void share_begin(void)
{
	PyObjectArenaAllocator noting = { NULL, arena_alloc, arena_free };

	PyObject_GetArenaAllocator(&noted.original);
	PyObject_SetArenaAllocator(&noting);
}

/* ---- What there is ---- */

struct ranges {
	struct remap_range of[RANGES_MAX];
	unsigned count;
};

static void add(struct ranges *r, struct remap_range range)
{
	/* An arena that did not come from mmap() shares its pages with something. */
	if (range.start % PAGE_BYTES == 0 && range.end % PAGE_BYTES == 0 && r->count < RANGES_MAX)
		r->of[r->count++] = range;
}

struct mapping {
	struct remap_range range;
	const char *perms, *name;
};

static const struct remap_range *noted_arena_of(uintptr_t address)
{
	for (unsigned i = 0; i < noted.arena_count; i++) {
		if (address >= noted.arenas[i].start && address < noted.arenas[i].end)
			return &noted.arenas[i];
	}
	return NULL;
}

/* Those from before share_begin(), by what settle_memory() has seen. It knows the insides of
 * the interpreter's allocator: it is believed as far as what it says of the noted ones holds. */
static void add_early_arenas(struct ranges *r)
{
	const struct remap_range *seen = settle_arenas(), *same;
	unsigned proven = 0;

	for (unsigned i = 0; i < SETTLE_ARENAS_MAX; i++) {
		same = seen[i].end > 0 ? noted_arena_of(seen[i].start) : NULL;
		if (same && seen[i].end > same->end)
			return;
		proven += same != NULL;
	}
	for (unsigned i = 0; proven > 0 && i < SETTLE_ARENAS_MAX; i++) {
		if (seen[i].end > 0 && !noted_arena_of(seen[i].start))
			add(r, seen[i]);
	}
}

/* "start-end perms offset device inode   name" */
static struct mapping parse(const char *line)
{
	struct mapping m = { .name = "" };
	char *end;

	m.range.start = strtoul(line, &end, 16);
	m.range.end = strtoul(end + (*end == '-'), &end, 16);
	m.perms = end + (*end == ' ');
	m.range.read_only = strncmp(m.perms, "rw-p", 4) != 0;
	if (strpbrk(m.perms, "/["))
		m.name = strpbrk(m.perms, "/[");
	return m;
}

/* The heap; the writable data of a file; and what lies right before that in the same file:
 * written by the dynamic linker and then made read-only. */
static void look_at(struct ranges *r, const struct mapping *before, const struct mapping *m)
{
	if (m->range.read_only || (m->name[0] != '/' && strcmp(m->name, "[heap]") != 0))
		return;
	if (strncmp(before->perms, "r--p", 4) == 0 && before->range.end == m->range.start &&
		strcmp(before->name, m->name) == 0)
		add(r, before->range);
	add(r, m->range);
}

static int look(struct ranges *r, char *maps, struct fault *f)
{
	ssize_t n = io_read_text(AT_FDCWD, "/proc/self/maps", maps, MAPS_BYTES);
	struct mapping before = { .perms = "", .name = "" }, m;
	char *line, *rest = maps;

	if (n < 0)
		return fault_set(f, (int)n, "read /proc/self/maps");
	while ((line = strsep(&rest, "\n"))) {
		m = parse(line);
		look_at(r, &before, &m);
		before = m;
	}
	return 0;
}

static int share(struct ranges *r, char *maps, struct fault *f)
{
	/* Without a name, read-only for all, in a mount that no cell has. */
	cleanup_fd int fd = sys.openat(AT_FDCWD, ZYGOTE_OWN, O_TMPFILE | O_RDWR | O_CLOEXEC, 0400);
	int err;

	if (fd < 0)
		return fault_set(f, fd, "a file for the zygote's memory");
	for (unsigned i = 0; i < noted.arena_count; i++)
		add(r, noted.arenas[i]);
	add_early_arenas(r);
	err = look(r, maps, f);
	return err < 0 ? err : remap_onto_file(fd, r->of, r->count, f);
}

int share_memory(struct fault *f)
{
	const size_t bytes = MAPS_BYTES + sizeof(struct ranges);
	char *room;
	int r;

	PyObject_SetArenaAllocator(&noted.original);
	/* Neither in the heap nor in what a child would inherit. */
	room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return fault_set(f, -errno, "mmap");
	r = share((struct ranges *)(void *)room, room + sizeof(struct ranges), f);
	(void)munmap(room, bytes);
	return r;
}
