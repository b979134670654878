#include "box/cold/library.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <fcntl.h>
#include <stdio.h>
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
