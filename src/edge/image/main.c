/* The process that reads what others made: confined before the first byte, it has its
 * descriptors and nothing else. One job, by name, then it ends.
 *
 *     unpack   UNPACK comes, an archive is read, a clean tar is written; LISTED and UNPACKED, or
 *              IMAGE_BAD
 *     digest   DIGEST of a file
 *     manifest PLAN of what a manifest says, or IMAGE_BAD
 */
#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/log.h"
#include "edge/config/document.h"
#include "edge/image/manifest.h"
#include "edge/image/unpack.h"
#include "kernel/confine.h"
#include "wire/channel.h"

#include <errno.h>
#include <locale.h>
#include <nettle/sha2.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define MANIFEST_BYTES_MAX (64u << 10)

#define OPEN_FILES   16
#define MEMORY_BYTES (UINT64_C(1) << 30) /* a million names, and what decompressors want */
#define CPU_SECONDS  1800
#define READ_BYTES   (256u << 10)

static void on_progress(void *ctx, const struct msg_unpacking *now)
{
	(void)ctx;
	/* A word that does not fit is not needed. */
	(void)channel_send(IMAGE_FD_CHANNEL, MSG_UNPACKING, now, NULL);
}

static int on_listed(void *ctx, const char *text, size_t len)
{
	static struct msg_listed m;
	int r = 0;

	(void)ctx;
	for (size_t at = 0; r == 0 && at < len; at += m.len) {
		m.len = (uint32_t)(len - at < LISTED_MAX ? len - at : LISTED_MAX);
		memcpy(m.text, text + at, m.len);
		r = channel_send(IMAGE_FD_CHANNEL, MSG_LISTED, &m, NULL);
	}
	return r;
}

static int await_unpack(struct msg *m, struct fault *f)
{
	const char *rule = "it has ended";
	int r = channel_recv(IMAGE_FD_CHANNEL, ROLE_CLIENT, ROLE_IMAGER, m, &rule);

	if (r == 1 && m->as.UNPACK.source < IMAGE_SOURCE_MAX)
		return 0;
	return fault_say(f, -EPROTO, "the command line: %s", rule);
}

static int unpack(struct fault *f)
{
	static struct msg m;
	static struct msg_unpacked done;
	struct unpack u = {
		.in_fd = IMAGE_FD_IN,
		.out_fd = IMAGE_FD_OUT,
		.ask = &m.as.UNPACK,
		.progress = on_progress,
		.listed = on_listed,
	};
	int r = await_unpack(&m, f);

	if (r == 0)
		r = unpack_run(&u, &done, f);
	if (r == 0)
		r = channel_send(IMAGE_FD_CHANNEL, MSG_UNPACKED, &done, NULL);
	return r;
}

static int digest(struct fault *f)
{
	static unsigned char bytes[READ_BYTES];
	struct msg_digest m = { .bytes = 0 };
	struct sha256_ctx hash;
	ssize_t n;

	sha256_init(&hash);
	while ((n = pread(IMAGE_FD_IN, bytes, sizeof(bytes), (off_t)m.bytes)) > 0) {
		sha256_update(&hash, (size_t)n, bytes);
		m.bytes += (uint64_t)n;
	}
	if (n < 0)
		return fault_set(f, -errno, "read");
	sha256_digest(&hash, sizeof(m.digest), m.digest);
	return channel_send(IMAGE_FD_CHANNEL, MSG_DIGEST, &m, NULL);
}

static int manifest(struct fault *f)
{
	static char text[MANIFEST_BYTES_MAX + 1];
	static struct msg_plan plan;
	ssize_t n = io_read_all(IMAGE_FD_IN, text, sizeof(text));
	int r;

	if (n < 0)
		return fault_set(f, (int)n, "read");
	if (n > MANIFEST_BYTES_MAX)
		return fault_say(
			f, -EFBIG, "the manifest is larger than %u KiB", MANIFEST_BYTES_MAX >> 10);
	text[n] = '\0';
	r = manifest_parse(&(struct document){ text, (size_t)n, "the manifest" }, &plan, f);
	return r < 0 ? r : channel_send(IMAGE_FD_CHANNEL, MSG_PLAN, &plan, NULL);
}

static const struct {
	const char *name;
	int (*run)(struct fault *f);
} jobs[] = {
	{ "unpack", unpack },
	{ "digest", digest },
	{ "manifest", manifest },
};

/* An archive that wants more than this is a bomb. */
static int bound(struct fault *f)
{
	const struct rlimit memory = { MEMORY_BYTES, MEMORY_BYTES };
	const struct rlimit cpu = { CPU_SECONDS, CPU_SECONDS };

	if (setrlimit(RLIMIT_AS, &memory) < 0 || setrlimit(RLIMIT_CPU, &cpu) < 0)
		return fault_set(f, -errno, "limits");
	return 0;
}

static int give_up(struct fault *f)
{
	static const struct confine_plan plan = {
		.filter = CONFINE_CONFIG,
		.uid = IMAGER_UID,
		.open_files = OPEN_FILES,
		.forbid_new_files = 1,
	};
	int r = bound(f);

	return r < 0 ? r : confine(&plan, f);
}

int main(int argc, char **argv)
{
	struct fault f = { 0 };
	int r = -EINVAL;

	log_setup("imager", LOG_LEVEL_INFO);
	/* Names of archives are UTF-8 or bytes: neither is lost then. Built into the C library. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)signal(SIGPIPE, SIG_IGN);
	/* In a session of its own, it would work on for nobody when the command is ended: confine() keeps
	 * the signal. If that has been before, the channel is closed. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (argc == 2)
		r = give_up(&f);
	for (size_t i = 0; argc == 2 && r == 0 && i < ARRAY_LEN(jobs); i++)
		if (strcmp(argv[1], jobs[i].name) == 0)
			r = jobs[i].run(&f);
	if (r < 0)
		(void)channel_send(
			IMAGE_FD_CHANNEL, MSG_IMAGE_BAD, &(struct msg_image_bad){ f }, NULL);
	return r < 0;
}
