#include "priv/launch/view_etc.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "wire/interface.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* Written, never read from the host: a cell has no user but these. */
struct generated {
	const char *path, *text;
};

#define NSSWITCH(hosts)                                             \
	"passwd: files\ngroup: files\nshadow: files\nhosts: " hosts \
	"\nservices: files\nprotocols: files\n"

static const struct generated generated[] = {
	{ "etc/passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
			"sandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/hosts", "127.0.0.1 localhost\n127.0.1.1 glovebox\n::1 localhost ip6-localhost\n" },
	{ "etc/hostname", "glovebox\n" },
	/* No "dns": without a network a look-up fails at once instead of timing out. */
	{ "etc/nsswitch.conf", NSSWITCH("files") },
	{ "etc/resolv.conf", "" },
	{ "etc/timezone", "Etc/UTC\n" },
	/* fontconfig complains on stderr without one. Its cache is not for the workspace. */
	{ "etc/fonts/fonts.conf", "<?xml version=\"1.0\"?>\n<!DOCTYPE fontconfig SYSTEM "
				  "\"urn:fontconfig:fonts.dtd\">\n<fontconfig><dir>/usr/share/fonts"
				  "</dir><cachedir>/tmp/fontconfig</cachedir></fontconfig>\n" },
};

/* The resolver is the gate: wire/interface.h. */
#define TEXT_(a, b, c, d) #a "." #b "." #c "." #d
#define TEXT(address)     TEXT_(address)
static const struct generated network[] = {
	{ "network/etc/nsswitch.conf", NSSWITCH("files dns") },
	{ "network/etc/resolv.conf",
		"nameserver " TEXT(INTERFACE_RESOLVER4) "\noptions timeout:5 attempts:1\n" },
};

/* Copied when the host has them: public data that libraries look for. */
static const char *const copied[] = {
	"etc/ld.so.cache", /* where Debian's loader finds the libraries of alternatives */
	"etc/os-release",  /* platform.freedesktop_os_release() */
	"etc/debian_version",
	"etc/mime.types", /* mimetypes */
	"etc/services",   /* socket.getservbyname() */
	"etc/protocols",
	"etc/ssl/openssl.cnf",
	"etc/ssl/certs/ca-certificates.crt", /* ssl.create_default_context() */
	"etc/python3.11/sitecustomize.py",   /* target of a link in Debian's standard library */
	"etc/matplotlibrc",
	"etc/bash.bashrc",
};

static int make_parent(int root_fd, const char *path, struct fault *f)
{
	char parent[128];

	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	return view_make_dirs(root_fd, parent, f);
}

static int write_file(int root_fd, const char *path, const char *text, struct fault *f)
{
	cleanup_fd int fd = -1;
	int r = make_parent(root_fd, path, f);

	if (r < 0)
		return r;
	fd = sys.openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return fault_set(f, fd, "create %s", path);
	r = io_write_all(fd, text, strlen(text));
	return r < 0 ? fault_set(f, r, "write %s", path) : 0;
}

/* Copy the host's file of the same path; one that is not there is no fault. */
static int copy_file(int root_fd, const char *path, struct fault *f)
{
	cleanup_fd int from = -1, to = -1;
	char host[128];
	struct stat st;
	ssize_t n;
	int r;

	(void)snprintf(host, sizeof(host), "/%s", path);
	from = sys.openat(AT_FDCWD, host, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (from == -ENOENT)
		return 0;
	if (from < 0)
		return fault_set(f, from, "open %s", host);
	r = sys.fstat(from, &st);
	if (r < 0)
		return fault_set(f, r, "stat %s", host);
	/* What others may not read on the host, a cell may not read either. */
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return 0;
	r = make_parent(root_fd, path, f);
	if (r < 0)
		return r;
	to = sys.openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (to < 0)
		return fault_set(f, to, "create %s", path);
	do
		n = sendfile(to, from, NULL, 1 << 20);
	while (n > 0);
	return n < 0 ? fault_set(f, -errno, "copy %s", host) : 0;
}

static void closedir_p(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* /etc/alternatives: links only, so that libraries chosen by update-alternatives (BLAS)
 * are found. */
static int copy_alternatives(int root_fd, struct fault *f)
{
	CLEANUP(closedir_p) DIR *dir = opendir("/etc/alternatives");
	const struct dirent *e;
	int r = view_make_dirs(root_fd, "etc/alternatives", f);

	if (r < 0 || !dir)
		return r;
	while ((e = readdir(dir))) {
		char target[PATH_MAX], path[NAME_MAX + 32];
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		(void)snprintf(path, sizeof(path), "etc/alternatives/%s", e->d_name);
		r = sys.symlinkat(target, root_fd, path);
		if (r < 0)
			return fault_set(f, r, "link %s", path);
	}
	return 0;
}

int view_make_own_etc(int root_fd, struct fault *f)
{
	int r = view_make_dirs(root_fd, "etc", f);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(generated); i++)
		r = write_file(root_fd, generated[i].path, generated[i].text, f);
	if (r == 0) {
		r = sys.symlinkat("/usr/share/zoneinfo/Etc/UTC", root_fd, "etc/localtime");
		if (r < 0)
			(void)fault_set(f, r, "link etc/localtime");
	}
	return r;
}

int view_make_network(int dir_fd, struct fault *f)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(network); i++)
		r = write_file(dir_fd, network[i].path, network[i].text, f);
	return r;
}

int view_make_etc(int root_fd, struct fault *f)
{
	int r = view_make_own_etc(root_fd, f);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(copied); i++)
		r = copy_file(root_fd, copied[i], f);
	return r == 0 ? copy_alternatives(root_fd, f) : r;
}
