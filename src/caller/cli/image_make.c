#include "caller/cli/image_make.h"

#include "base/fault.h"
#include "caller/image/make.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void image_say_step(const char *name, const char *step)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (step)
		(void)fprintf(stderr, "\r%s: %s\033[K", name, step);
	else
		(void)fputs("\r\033[K", stderr);
	(void)fflush(stderr);
}

static void on_progress(void *ctx, const struct msg_unpacking *now)
{
	char step[80];

	if (now)
		(void)snprintf(step, sizeof(step), "%s layer %u of %u, %lu MB",
			now->pass == 0 ? "reading" : "packing", now->layer, now->layers,
			(unsigned long)(now->bytes / 1000000));
	image_say_step(ctx, now ? step : NULL);
}

static void say_losses(const struct image_losses *l)
{
	const struct {
		uint32_t count;
		const char *what;
	} all[] = {
		{ l->devices, "device nodes, sockets or pipes were left out" },
		{ l->set_ids, "files have lost their set-user-ID or set-group-ID bit" },
		{ l->attributes, "files have lost capabilities or other attributes" },
		{ l->variables, "variables of its environment are too long, or too many" },
		{ l->packages, "of its packages are not listed: there are too many, or their names "
			       "are none" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].count > 0)
			(void)fprintf(stderr, "glovebox: note: %u %s\n", all[i].count, all[i].what);
}

static void say_made(const struct image_record *r)
{
	(void)printf(
		"%s: %lu files and directories, %.1f MB, packed %.1f MB; programs are run by %s\n",
		r->name, (unsigned long)r->entries, (double)r->unpacked_bytes / 1e6,
		(double)r->bytes / 1e6, r->start.argv[0]);
}

/* Why its programs start cold though they need not. */
static void say_cold(const struct image_record *r)
{
	if (r->start.warm && !r->trusted)
		(void)fprintf(stderr,
			"glovebox: note: its programs start cold; with --trusted a server keeps "
			"its "
			"interpreter warm, in a process of root's outside of cells\n");
}

int image_lock(struct image_command *c, struct fault *f)
{
	int r = store_lock(&c->store, false, f);

	if (r != -EWOULDBLOCK)
		return r;
	(void)fprintf(stderr,
		"glovebox: note: another `glovebox image` works on %s; waiting for it\n", c->dir);
	*f = (struct fault){ 0 };
	return store_lock(&c->store, true, f);
}

int image_prepare(struct image_command *c, const char *name, struct fault *f)
{
	static struct image_record record;
	struct fault none = { 0 };
	int r;

	if (!image_name_is_valid(name))
		return fault_say(f, -EINVAL,
			"\"%.100s\" is no name for an image: 1 to %d of letters, digits, -, _ and "
			"., "
			"the first neither - nor .",
			name, IMAGE_NAME_MAX - 1);
	r = store_open(&c->store, c->dir, true, f);
	if (r == 0)
		r = image_lock(c, f);
	if (r == 0 && !c->replace && store_read(&c->store, name, &record, &none) != -ENOENT)
		r = fault_say(
			f, -EEXIST, "there is an image \"%s\"; --replace takes its place", name);
	return r;
}

int image_make(struct image_command *c, const char *name, int source_fd, struct fault *f)
{
	static struct image_record record;
	struct image_losses losses = { 0 };
	char shown[IMAGE_NAME_MAX];
	int r;

	(void)snprintf(shown, sizeof(shown), "%s", name);
	r = make_image(
		&(struct make){
			.store = &c->store,
			.name = name,
			.source_fd = source_fd,
			.ask = c->ask,
			.trusted = c->trusted,
			.progress = on_progress,
			.ctx = shown,
		},
		&record, &losses, f);
	if (r < 0)
		return r;
	say_losses(&losses);
	say_made(&record);
	say_cold(&record);
	return 0;
}
