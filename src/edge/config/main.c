/* The config process, from start to end: look at the host (CPUs, memory, the file's name)
 * while that is still possible, give up everything, read the descriptors, answer.
 *
 * Whoever could make libyaml misbehave with a config file has then a process without
 * privileges, files, network or other processes, whose one answer is checked field by
 * field by the supervisor.
 */
#include "edge/config/main.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "edge/config/document.h"
#include "edge/config/ids.h"
#include "edge/config/languages.h"
#include "edge/config/parse.h"
#include "kernel/confine.h"
#include "wire/channel.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define CONFIG_OPEN_FILES   16
#define OVERRIDES_BYTES_MAX (1u << 20)  /* manifests are among them */
#define IDS_BYTES_MAX       (16u << 20) /* a passwd of 200,000 people */
#define FILE_NAME_MAX       128

struct blob {
	char *bytes; /* terminated behind `len` bytes */
	size_t len;
};

static void blob_done(struct blob *b)
{
	free(b->bytes);
}

#define CLEANUP_BLOB CLEANUP(blob_done) struct blob

/* All of a descriptor, which must end before `most` bytes. */
static int read_blob(int fd, size_t most, const char *name, struct blob *ret, struct fault *f)
{
	CLEANUP_BLOB b = { .bytes = malloc(most + 1) };
	char *fitted;
	ssize_t n;

	if (!b.bytes)
		return fault_set(f, -ENOMEM, "%s", name);
	n = io_read_all(fd, b.bytes, most + 1);
	if (n < 0)
		return fault_set(f, (int)n, "%s: read", name);
	if ((size_t)n > most)
		return fault_say(f, -EFBIG, "%s: is larger than %zu KiB", name, most >> 10);
	b.bytes[n] = '\0';
	fitted = realloc(b.bytes, (size_t)n + 1);
	ret->bytes = fitted ? fitted : b.bytes;
	ret->len = (size_t)n;
	b.bytes = NULL;
	return 0;
}

/* A file that others may write is not the operator's word. /dev/null is no file. */
static int check_file(int fd, const char *name, struct fault *f)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fault_set(f, -errno, "%s: stat", name);
	if (S_ISCHR(st.st_mode))
		return 0;
	if (!S_ISREG(st.st_mode))
		return fault_say(f, -EINVAL, "%s: is not a regular file", name);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fault_say(
			f, -EPERM, "%s: can be written by group or others; chmod go-w it", name);
	return 0;
}

static int read_file(const char *name, struct config *c, struct fault *f)
{
	CLEANUP_BLOB b = { 0 };
	int r;

	r = check_file(CONFIG_FD_FILE, name, f);
	if (r < 0)
		return r;
	r = read_blob(CONFIG_FD_FILE, DOCUMENT_BYTES_MAX, name, &b, f);
	if (r < 0)
		return r;
	return document_configure(&(struct document){ b.bytes, b.len, name }, c, f);
}

static int read_overrides(
	struct config *c, struct languages *l, languages_set *operators, struct fault *f)
{
	CLEANUP_BLOB b = { 0 };
	int r;

	/* A memfd whose offset is where its writer left it. */
	(void)lseek(CONFIG_FD_OVERRIDES, 0, SEEK_SET);
	r = read_blob(CONFIG_FD_OVERRIDES, OVERRIDES_BYTES_MAX, "overrides", &b, f);
	if (r == 0)
		r = config_override(c, b.bytes, b.len, f);
	return r < 0 ? r : languages_read(l, operators, b.bytes, b.len, f);
}

/* Those that the program carries. */
static int read_manifests(struct languages *l, struct fault *f)
{
	CLEANUP_BLOB b = { 0 };
	int r;

	(void)lseek(CONFIG_FD_RUNTIMES, 0, SEEK_SET);
	r = read_blob(CONFIG_FD_RUNTIMES, DOCUMENT_BYTES_MAX, "runtimes", &b, f);
	return r < 0 ? r : languages_read(l, NULL, b.bytes, b.len, f);
}

static int check_ids(struct settings *s, struct fault *f)
{
	static const struct {
		int fd;
		const char *name;
		ids_names_fn *names;
	} files[] = {
		{ CONFIG_FD_PASSWD, "passwd", ids_passwd_names },
		{ CONFIG_FD_GROUP, "group", ids_group_names },
		{ CONFIG_FD_SUBUID, "subuid", ids_subuid_names },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		CLEANUP_BLOB b = { 0 };
		int r;

		r = read_blob(files[i].fd, IDS_BYTES_MAX, files[i].name, &b, f);
		if (r < 0)
			return r;
		if (ids_are_taken(b.bytes, b.len, files[i].names, s->uid_base))
			s->uid_range_taken = 1;
	}
	return 0;
}

static void look_at_host(struct config_host *ret, char name[FILE_NAME_MAX])
{
	struct sysinfo memory;
	cpu_set_t cpus;
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	ssize_t len;

	/* The affinity mask is what a container was given; it does not fit a host of more
	 * than 1,024 CPUs, where the number that are online has to do. */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		n = CPU_COUNT(&cpus);
	ret->cpus = n > 0 ? (uint32_t)n : 1;
	if (sysinfo(&memory) == 0)
		ret->memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;

	len = readlink("/proc/self/fd/5", name, FILE_NAME_MAX - 1);
	if (len <= 0 || len == FILE_NAME_MAX - 1)
		len = snprintf(name, FILE_NAME_MAX, "config file");
	name[len] = '\0';
}
_Static_assert(CONFIG_FD_FILE == 5, "the path above names it");

/* What is sent on as memory: made ahead, and mapped, as a process that has given up everything can
 * neither make a file nor let one grow. */
struct sent_policy {
	int fd;
	struct network_policy *at;
};

static void sent_policy_done(struct sent_policy *p)
{
	if (p->at)
		(void)munmap(p->at, sizeof(*p->at));
	if (p->fd >= 0)
		(void)close(p->fd);
}

static int make_policy(struct sent_policy *p, struct fault *f)
{
	void *at;

	p->fd = memfd_create("network-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->fd < 0 || ftruncate(p->fd, (off_t)sizeof(*p->at)) < 0)
		return fault_set(f, -errno, "memory for the network's rules");
	at = mmap(NULL, sizeof(*p->at), PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	if (at == MAP_FAILED)
		return fault_set(f, -errno, "map the network's rules");
	p->at = at;
	return 0;
}

/* An unprivileged `serve --config-check` has nothing to give up, and reads what its own
 * user wrote; the supervisor, which is root, never comes this way. */
static int give_up(struct fault *f)
{
	static const struct confine_plan plan = {
		.filter = CONFINE_CONFIG,
		.uid = CONFIG_UID,
		.open_files = CONFIG_OPEN_FILES,
		.forbid_new_files = 1,
	};

	return geteuid() == 0 ? confine(&plan, f) : 0;
}

static bool has_default(const struct languages *l)
{
	return l->count > 0 && strcmp(l->of[0].runtime.name, LANGUAGE_DEFAULT) == 0;
}

static int configure(const struct config_host *host, const char *name, struct config *c,
	struct languages *l, struct fault *f)
{
	languages_set operators = 0;
	const char *broken;
	int r;

	config_init(c);
	r = read_file(name, c, f);
	if (r == 0)
		r = read_manifests(l, f);
	if (r == 0)
		r = read_overrides(c, l, &operators, f);
	if (r == 0)
		r = config_settle(c, host, f);
	if (r == 0)
		r = languages_settle(l, operators, f);
	if (r == 0)
		r = check_ids(&c->settings, f);
	if (r < 0 || !has_default(l))
		return r;
	c->settings.runtime = l->of[0].runtime;
	broken = settings_fault(&c->settings);
	return broken ? fault_say(f, -EINVAL, "%s", broken) : 0;
}

/* Nothing that is mapped for writing can be sealed. */
static int seal_policy(const struct config *c, struct sent_policy *p, struct fault *f)
{
	int r;

	memcpy(p->at, &c->policy, sizeof(*p->at));
	(void)munmap(take_ptr(p->at), sizeof(*p->at));
	r = io_seal(p->fd);
	return r < 0 ? fault_set(f, r, "seal the network's rules") : 0;
}

static int answer(const struct config *c, const struct languages *l, int policy_fd)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < l->count; i++)
		r = channel_send(CONFIG_FD_CHANNEL, MSG_LANGUAGE,
			&(struct msg_language){ .language = l->of[i] }, NULL);
	if (r == 0)
		r = channel_send(CONFIG_FD_CHANNEL, MSG_CONFIG,
			&(struct msg_config){ .settings = c->settings }, &policy_fd);
	return r;
}

int role_config(void)
{
	/* Zeroed, so that no padding carries anything out. */
	static struct config c;
	static struct languages l;
	struct config_host host = { 0 };
	struct fault f = { 0 };
	char name[FILE_NAME_MAX];
	struct sent_policy policy CLEANUP(sent_policy_done) = { .fd = -1 };
	int r;

	log_setup("config", LOG_LEVEL_INFO);
	look_at_host(&host, name);
	r = make_policy(&policy, &f);
	if (r == 0)
		r = give_up(&f);
	if (r == 0)
		r = configure(&host, name, &c, &l, &f);
	if (r == 0)
		r = seal_policy(&c, &policy, &f);
	if (r == 0)
		r = answer(&c, &l, policy.fd);
	else
		(void)channel_send(CONFIG_FD_CHANNEL, MSG_CONFIG_BAD,
			&(struct msg_config_bad){ .fault = f }, NULL);
	return r == 0 ? 0 : 1;
}
