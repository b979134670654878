/* Process 1 of the test guest that tests/vm/run starts.
 *
 * It is compiled by that script (into its cache, never beside this file) and does four
 * things: builds the guest's root, starts one command, copies that command's stdout and
 * stderr to the host, reports its exit status and stops the guest. On the host, with
 * --tsc-khz, it tells how fast the TSC counts.
 *
 * The host's root arrives as a virtiofs file system that the host exports read-only. The
 * guest's own root is a fresh tmpfs: the host's top-level directories are bound into it
 * read-only, and /tmp, /run, /scratch, /mnt, /var/tmp and /dev/shm are fresh and writable.
 *
 * The job file (argv[1]) is a list of NUL-terminated "key=value" records.
 *
 *   runs in    the guest, as its only init; or on the host for one question
 *   threads    none
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MODULE_COMPRESSED_FILE 4 /* MODULE_INIT_COMPRESSED_FILE */
#define MAX_WORDS              4096
#define MAX_OVERLAYS           16

static const char *NEW = "/sys"; /* where the new root is built */
static int status_fd = -1;

static double mono(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void note(const char *fmt, ...)
{
	char buf[512] = "<3>testvm: ";
	size_t n = strlen(buf);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf + n, sizeof buf - n, fmt, ap);
	va_end(ap);
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, buf, strlen(buf)) < 0) {
		/* nowhere left to say it */
	}
	close(fd);
}

static void write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, p, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return;
		p += w;
		n -= (size_t)w;
	}
}

static void stop(void)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		write_all(fd, "b", 1);
	reboot(RB_AUTOBOOT); /* qemu runs with -no-reboot: this ends it */
	for (;;)
		pause();
}

static void die(const char *what)
{
	int e = errno;
	note("%s: %s", what, strerror(e));
	if (status_fd >= 0) {
		char buf[256];
		int n = snprintf(buf, sizeof buf, "fail %s: %s\n", what, strerror(e));
		write_all(status_fd, buf, (size_t)n);
	}
	stop();
}

static char *join(const char *a, const char *b)
{
	char *s = NULL;
	if (asprintf(&s, "%s%s", a, b) < 0)
		die("out of memory");
	return s;
}

static void mkdirs(const char *path)
{
	char *s = join(path, "");
	for (char *p = s + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			mkdir(s, 0755);
			*p = '/';
		}
	mkdir(s, 0755);
	free(s);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0) {
		note("%s: %s", path, strerror(errno));
		return;
	}
	if (write(fd, text, strlen(text)) < 0)
		note("write %s: %s", path, strerror(errno));
	close(fd);
}

static void fresh(const char *type, const char *path, unsigned long flags, const char *data)
{
	char *p = join(NEW, path);
	mkdir(p, 0755);
	if (mount(type, p, type, flags, data))
		note("mount %s on %s: %s", type, path, strerror(errno));
	free(p);
}

/* Bind src of the host's tree at dst of the new root. */
static int expose(const char *src, const char *dst, int writable)
{
	char *p = join(NEW, dst);
	mkdirs(p);
	int r = mount(src, p, NULL, MS_BIND, NULL);
	if (!r && !writable)
		r = mount(NULL, p, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
	if (r)
		note("bind %s: %s", dst, strerror(errno));
	free(p);
	return r;
}

static int is_word(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(s, *list))
			return 1;
	return 0;
}

static void bind_top_level(void)
{
	static const char *const skip[] = { ".", "..", "proc", "sys", "dev", "run", "tmp", "mnt",
		"scratch", "out", "lost+found", NULL };
	DIR *d = opendir("/");
	if (!d)
		die("open the host's root");
	struct dirent *e;
	while ((e = readdir(d))) {
		if (is_word(e->d_name, skip))
			continue;
		char *src = join("/", e->d_name);
		struct stat st;
		if (lstat(src, &st) == 0) {
			if (S_ISLNK(st.st_mode)) {
				char to[4096], *p = join(NEW, src);
				ssize_t n = readlink(src, to, sizeof to - 1);
				if (n > 0) {
					to[n] = 0;
					if (symlink(to, p))
						note("symlink %s: %s", p, strerror(errno));
				}
				free(p);
			} else if (S_ISDIR(st.st_mode)) {
				expose(src, src, 0);
			}
		}
		free(src);
	}
	closedir(d);
}

/* Is this path inside a directory that the guest covers with a fresh one? */
static int covered(const char *path)
{
	static const char *const tops[] = { "/tmp", "/run", "/mnt", "/scratch", "/out", "/dev",
		"/proc", "/sys", "/var/tmp", NULL };
	for (const char *const *t = tops; *t; t++) {
		size_t n = strlen(*t);
		if (!strncmp(path, *t, n) && (path[n] == 0 || path[n] == '/'))
			return 1;
	}
	return 0;
}

static void overlay(const char *dir, int n)
{
	char *lower = join(NEW, dir), *base = NULL, *opt = NULL, *up, *work;
	if (asprintf(&base, "%s/run/testvm/overlay%d", NEW, n) < 0)
		die("out of memory");
	up = join(base, "/upper");
	work = join(base, "/work");
	mkdirs(up);
	mkdirs(work);
	struct stat st;
	if (!stat(lower, &st)) {
		chmod(up, st.st_mode & 07777);
		if (chown(up, st.st_uid, st.st_gid))
			note("chown %s: %s", up, strerror(errno));
	}
	if (asprintf(&opt, "lowerdir=%s,upperdir=%s,workdir=%s,index=off,metacopy=off", lower, up,
		    work) < 0)
		die("out of memory");
	if (mount("overlay", lower, "overlay", 0, opt))
		die("overlay on the tree");
	free(lower);
	free(base);
	free(opt);
	free(up);
	free(work);
}

static void load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		note("%s: %s", path, strerror(errno));
		return;
	}
	size_t n = strlen(path);
	int packed = n > 3 && strcmp(path + n - 3, ".ko");
	if (syscall(SYS_finit_module, fd, "", packed ? MODULE_COMPRESSED_FILE : 0) &&
		errno != EEXIST)
		note("load %s: %s", path, strerror(errno));
	close(fd);
}

/* Open the virtio port of that name; they appear a moment after the driver. */
static int open_port(const char *want)
{
	double end = mono() + 10;
	do {
		for (int i = 0; i < 8; i++)
			for (int k = 0; k < 8; k++) {
				char path[128], name[64];
				snprintf(path, sizeof path,
					"%s/sys/class/virtio-ports/vport%dp%d/name", NEW, i, k);
				int fd = open(path, O_RDONLY | O_CLOEXEC);
				if (fd < 0)
					continue;
				ssize_t n = read(fd, name, sizeof name - 1);
				close(fd);
				if (n <= 0)
					continue;
				name[n] = 0;
				name[strcspn(name, "\n")] = 0;
				if (strcmp(name, want))
					continue;
				snprintf(path, sizeof path, "%s/dev/vport%dp%d", NEW, i, k);
				fd = open(path, O_WRONLY | O_CLOEXEC);
				if (fd >= 0)
					return fd;
			}
		usleep(2000);
	} while (mono() < end);
	return -1;
}

static void loopback_up(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { .ifr_name = "lo" };
	if (fd < 0)
		return;
	if (!ioctl(fd, SIOCGIFFLAGS, &r)) {
		r.ifr_flags |= IFF_UP;
		if (ioctl(fd, SIOCSIFFLAGS, &r))
			note("lo: %s", strerror(errno));
	}
	close(fd);
}

/* Copy what is there from one pipe to its port; 0 at the end of the pipe. */
static int pump(int from, int to)
{
	static char buf[65536];
	ssize_t n = read(from, buf, sizeof buf);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return 0;
	write_all(to, buf, (size_t)n);
	return 1;
}

/*
 * With a kernel that has virtiofs as a module, this program is also /init of
 * an initramfs: /modules holds numbered modules, loaded in that order.
 */
static void from_initramfs(void)
{
	struct dirent **e;
	int n = scandir("/modules", &e, NULL, alphasort);
	for (int i = 0; i < n; i++)
		if (e[i]->d_name[0] != '.') {
			char *p = join("/modules/", e[i]->d_name);
			load_module(p);
			free(p);
		}
	mkdir("/host", 0755);
	double end = mono() + 10;
	while (mount("host", "/host", "virtiofs", 0, NULL)) {
		if (mono() > end)
			die("mount the host's root");
		usleep(2000);
	}
	if (chdir("/host") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		die("enter the host's root");
}

static char *slurp(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st))
		die(path);
	char *b = malloc((size_t)st.st_size + 1);
	size_t n = 0;
	ssize_t r;
	if (!b)
		die("out of memory");
	while (n < (size_t)st.st_size && (r = read(fd, b + n, (size_t)st.st_size - n)) > 0)
		n += (size_t)r;
	close(fd);
	b[n] = 0;
	*len = n;
	return b;
}

static long tsc_khz(void)
{
#if defined(__x86_64__)
	double t0 = mono();
	unsigned long long a = __builtin_ia32_rdtsc();
	usleep(50000);
	double t1 = mono();
	unsigned long long b = __builtin_ia32_rdtsc();
	return (long)((double)(b - a) / (t1 - t0) / 1000);
#else
	return 0;
#endif
}

/* What the job file asks for. */
static struct {
	char *args[MAX_WORDS + 1], *env[MAX_WORDS + 1], *overlays[MAX_OVERLAYS];
	int nargs, nenv, noverlays;
	const char *modroot, *cwd, *scratch;
} job;

static int port_out, port_err; /* the host's ends of stdout and stderr */

static void build_root(void)
{
	struct stat st;
	char *vartmp;

	if (mount("root", NEW, "tmpfs", 0, "mode=755,size=64m"))
		die("mount the new root");
	umask(0);
	fresh("devtmpfs", "/dev", MS_NOSUID, NULL);
	fresh("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	fresh("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	/* From here on a failure can be told to the host. */
	status_fd = open_port("testvm.status");
	port_out = open_port("testvm.stdout");
	port_err = open_port("testvm.stderr");
	if (status_fd < 0 || port_out < 0 || port_err < 0)
		die("no virtio ports");

	fresh("tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755");
	fresh("tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777");
	fresh("tmpfs", "/mnt", 0, "mode=755");
	bind_top_level();
	vartmp = join(NEW, "/var/tmp");
	if (!stat(vartmp, &st))
		fresh("tmpfs", "/var/tmp", MS_NOSUID | MS_NODEV, "mode=1777");
	free(vartmp);
	fresh("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "mode=620,ptmxmode=666,gid=5");
	fresh("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
	fresh("mqueue", "/dev/mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	fresh("cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		"nsdelegate,memory_recursiveprot");
	fresh("securityfs", "/sys/kernel/security", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

/* One record; what changes the root is done at once. */
static void take_record(const char *key, char *value)
{
	if (!strcmp(key, "arg") && job.nargs < MAX_WORDS)
		job.args[job.nargs++] = value;
	else if (!strcmp(key, "env") && job.nenv < MAX_WORDS)
		job.env[job.nenv++] = value;
	else if (!strcmp(key, "cwd"))
		job.cwd = value;
	else if (!strcmp(key, "scratch"))
		job.scratch = value;
	else if (!strcmp(key, "modroot"))
		job.modroot = value;
	else if (!strcmp(key, "mod"))
		load_module(value);
	else if (!strcmp(key, "see") && covered(value))
		expose(value, value, 0);
	else if (!strcmp(key, "out"))
		expose(value, "/out", 1);
	else if (!strcmp(key, "overlay") && job.noverlays < MAX_OVERLAYS) {
		if (covered(value))
			expose(value, value, 0);
		job.overlays[job.noverlays++] = value;
	}
}

static void take_job(char *text, size_t len)
{
	char *scratch;

	for (char *p = text; p < text + len;) {
		char *next = p + strlen(p) + 1, *value = strchr(p, '=');

		if (value) {
			*value = 0;
			take_record(p, value + 1);
		}
		p = next;
	}
	if (!job.nargs)
		die("no command");
	scratch = join("mode=1777,size=", job.scratch ? job.scratch : "50%");
	fresh("tmpfs", "/scratch", 0, scratch);
	free(scratch);
	for (int i = 0; i < job.noverlays; i++)
		overlay(job.overlays[i], i);
}

static void move_in(void)
{
	char *old = join(NEW, "/.testvm-old");

	mkdir(old, 0755);
	if (syscall(SYS_pivot_root, NEW, old) || chdir("/") || umount2("/.testvm-old", MNT_DETACH))
		die("pivot_root");
	free(old);
	rmdir("/.testvm-old");
	/* As systemd leaves it, so that a program that forgets to make its mounts private is
	 * found out. */
	if (mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL))
		note("shared /: %s", strerror(errno));
	if (symlink("/proc/self/fd", "/dev/fd") || symlink("/proc/self/fd/0", "/dev/stdin") ||
		symlink("/proc/self/fd/1", "/dev/stdout") ||
		symlink("/proc/self/fd/2", "/dev/stderr"))
		note("/dev links: %s", strerror(errno));
	mkdir("/run/lock", 01777);
	mkdir("/run/testvm", 0755);
}

static void settle(void)
{
	static const char *const controllers[] = { "+cpuset", "+cpu", "+io", "+memory", "+pids" };
	struct rlimit nofile = { 1024, 524288 };

	if (job.modroot) {
		char *s = NULL;

		if (asprintf(&s, "#!/bin/sh\nexec /sbin/modprobe -d '%s' \"$@\"\n", job.modroot) >
			0)
			put("/run/testvm/modprobe", s);
		free(s);
		put("/proc/sys/kernel/modprobe", "/run/testvm/modprobe");
	}
	if (sethostname("testvm", 6))
		note("hostname: %s", strerror(errno));
	loopback_up();
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
		put("/sys/fs/cgroup/cgroup.subtree_control", controllers[i]);
	setrlimit(RLIMIT_NOFILE, &nofile);
}

/* In the child: become the command. */
static void become_command(int out_fd, int err_fd)
{
	int null = open("/dev/null", O_RDONLY), code;

	setsid();
	dup2(null, 0);
	dup2(out_fd, 1);
	dup2(err_fd, 2);
	if (null > 2)
		close(null);
	if (job.cwd && chdir(job.cwd)) {
		fprintf(stderr, "testvm: %s: %s\n", job.cwd, strerror(errno));
		_exit(126);
	}
	clearenv();
	for (int i = 0; i < job.nenv; i++)
		putenv(job.env[i]);
	execvp(job.args[0], job.args);
	code = errno;
	fprintf(stderr, "testvm: %s: %s\n", job.args[0], strerror(code));
	_exit(code == ENOENT ? 127 : 126);
}

/* Reap whatever ended: 1 once the command has, with its wait status. */
static int reap(pid_t command, int *ret_status)
{
	int status, done = 0;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == command) {
			*ret_status = status;
			done = 1;
		}
	}
	return done;
}

/* What is there of its two streams; a stream that has ended gets a descriptor of -1. */
static void copy_output(struct pollfd f[2])
{
	const int ports[2] = { port_out, port_err };

	for (int i = 0; i < 2; i++) {
		if (f[i].fd >= 0 && f[i].revents && !pump(f[i].fd, ports[i]))
			f[i].fd = -1;
	}
}

/* Copy the command's output until it has ended and all of it is out. */
static int attend(pid_t command, int out_fd, int err_fd, int signal_fd)
{
	struct pollfd f[3] = { { out_fd, POLLIN, 0 }, { err_fd, POLLIN, 0 },
		{ signal_fd, POLLIN, 0 } };
	int status = 0, done = 0;
	double deadline = 0;

	while (!done || f[0].fd >= 0 || f[1].fd >= 0) {
		struct signalfd_siginfo si;

		if (done && mono() > deadline)
			break;
		if (poll(f, 3, done ? 100 : -1) < 0 && errno != EINTR)
			break;
		copy_output(f);
		while (read(signal_fd, &si, sizeof(si)) > 0)
			continue;
		if (reap(command, &status)) {
			done = 1;
			deadline = mono() + 5;
		}
		if (done)
			kill(-1, SIGKILL); /* whatever it left running */
	}
	return status;
}

static int run_command(void)
{
	int out[2], err[2], signal_fd;
	struct timespec up;
	sigset_t child;
	char line[128];
	pid_t pid;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0 || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		die("pipes");
	clock_gettime(CLOCK_BOOTTIME, &up);
	snprintf(line, sizeof(line), "up %ld.%03ld\n", (long)up.tv_sec, up.tv_nsec / 1000000);
	write_all(status_fd, line, strlen(line));

	umask(022);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		sigprocmask(SIG_UNBLOCK, &child, NULL);
		become_command(out[1], err[1]);
	}
	close(out[1]);
	close(err[1]);
	return attend(pid, out[0], err[0], signal_fd);
}

static void report(int status)
{
	char line[64];
	int n = WIFSIGNALED(status)
			? snprintf(line, sizeof(line), "signal %d\n", WTERMSIG(status))
			: snprintf(line, sizeof(line), "exit %d\n", WEXITSTATUS(status));

	write_all(status_fd, line, (size_t)n);
}

int main(int argc, char **argv)
{
	size_t len;
	char *text;

	if (getpid() != 1) { /* asked on the host */
		if (argc == 2 && !strcmp(argv[1], "--tsc-khz"))
			return printf("%ld\n", tsc_khz()) < 0;
		fprintf(stderr, "init: this is process 1 of the test guest\n");
		return 2;
	}
	if (!access("/modules", F_OK)) {
		mkdir("/dev", 0755);
		if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL))
			note("devtmpfs: %s", strerror(errno));
		from_initramfs();
	}
	build_root();
	text = slurp(argc > 1 ? argv[1] : "/job", &len);
	take_job(text, len);
	move_in();
	settle();
	report(run_command());
	stop();
}
