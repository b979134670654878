#include "box/cold/library.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <elf.h>
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

/* The name of the loader that the program asks for, into `text`. The length, or -1. */
static ssize_t loader_of(int fd, char *text, size_t room)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) part;
	off_t at;

	if (sys.pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
		memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(part) ||
		head.e_phoff > INT32_MAX)
		return -1;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		at = (off_t)(head.e_phoff + i * sizeof(part));
		if (sys.pread(fd, &part, sizeof(part), at) != (ssize_t)sizeof(part))
			return -1;
		if (part.p_type == PT_INTERP)
			return part.p_filesz <= room && part.p_offset <= INT32_MAX
				       ? sys.pread(fd, text, part.p_filesz, (off_t)part.p_offset)
				       : -1;
	}
	return -1;
}

bool cold_is_loadable(const char *program)
{
	static const char glibc[] = "/ld-linux";
	cleanup_fd int fd = sys.openat(AT_FDCWD, program, O_RDONLY | O_CLOEXEC, 0);
	char text[64];
	ssize_t len = fd < 0 ? -1 : loader_of(fd, text, sizeof(text));

	return len > 0 && memmem(text, (size_t)len, glibc, sizeof(glibc) - 1);
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
