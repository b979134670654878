#include "box/cold/library.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

extern const char cold_library_start[], cold_library_end[]; /* made by tools/embed */

/* Out of the way of the places that are given out next. */
#define ABOVE_PLACES (COLD_REPORT_FD + 1)

static int make_library(int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = sys.memfd_create("report", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return fault_set(f, fd, "memory for the library");
	r = io_write_all(fd, cold_library_start, (size_t)(cold_library_end - cold_library_start));
	if (r < 0)
		return fault_set(f, r, "write the library");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* 1: all of it was there; 0: less, or a place that no file of programs has. */
static int read_at(int fd, void *bytes, size_t len, uint64_t at)
{
	ssize_t n = at <= INT32_MAX ? sys.pread(fd, bytes, len, (off_t)at) : 0;

	return n < 0 ? (int)n : n == (ssize_t)len;
}

/* The name of the loader that the program asks for, into `text`, and its length. 1, 0 for none, or
 * a negative errno. */
static int loader_of(int fd, char *text, size_t room, size_t *ret_len)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) part;
	int r = read_at(fd, &head, sizeof(head), 0);

	if (r <= 0)
		return r;
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(part) ||
		head.e_phoff > INT32_MAX)
		return 0;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		r = read_at(fd, &part, sizeof(part), head.e_phoff + i * sizeof(part));
		if (r <= 0)
			return r;
		if (part.p_type != PT_INTERP)
			continue;
		*ret_len = part.p_filesz;
		return part.p_filesz <= room ? read_at(fd, text, part.p_filesz, part.p_offset) : 0;
	}
	return 0;
}

int cold_is_loadable(const char *program)
{
	static const char glibc[] = "/ld-linux";
	cleanup_fd int fd = sys.openat(AT_FDCWD, program, O_RDONLY | O_CLOEXEC, 0);
	char text[64];
	size_t len;
	int r;

	/* Not to be read, or not there: what that means is the exec's to say. */
	if (fd == -ENOENT || fd == -EACCES)
		return 0;
	r = fd < 0 ? fd : loader_of(fd, text, sizeof(text), &len);
	return r <= 0 ? r : memmem(text, len, glibc, sizeof(glibc) - 1) != NULL;
}

/* Both stay over the exec. */
static int place(int library_fd, int report_fd, struct fault *f)
{
	cleanup_fd int library = sys.fcntl(library_fd, F_DUPFD_CLOEXEC, ABOVE_PLACES);
	cleanup_fd int report = sys.fcntl(report_fd, F_DUPFD_CLOEXEC, ABOVE_PLACES);
	int r = library < 0 ? library : report < 0 ? report : 0;

	if (r == 0)
		r = sys.dup3(library, COLD_LIBRARY_FD, 0);
	if (r >= 0)
		r = sys.dup3(report, COLD_REPORT_FD, 0);
	return r < 0 ? fault_set(f, r, "place the library") : 0;
}

int cold_hand_over(int report_fd, uint32_t flags, char room[COLD_ROOM], struct inputs_words *w,
	struct fault *f)
{
	static char preload[] = COLD_PRELOAD;
	cleanup_fd int library_fd = -1;
	size_t n = 0;
	int r = make_library(&library_fd, f);

	if (r == 0)
		r = place(library_fd, report_fd, f);
	if (r < 0)
		return r;
	(void)take_fd(&library_fd); /* start_become() closes what has no place */
	while (w->envp[n])
		n++;
	(void)snprintf(room, COLD_ROOM, COLD_REPORT "=%u", flags);
	w->envp[n++] = preload;
	w->envp[n++] = room;
	w->envp[n] = NULL;
	return 0;
}
