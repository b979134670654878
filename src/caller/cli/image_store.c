/* `glovebox image list`, `verify` and `remove`. */
#include "caller/cli/image.h"
#include "caller/cli/image_make.h"

#include "api/fields.h"
#include "api/runtimes.h"
#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "caller/image/imager.h"

#include <errno.h>
#include <error.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define FORM "squashfs" /* how a root is kept: one file, mounted through a loop device */

static void free_names(char ***names)
{
	store_free_names(*names);
}

/* The names of the store; none where there is no store yet. */
static int open_and_read(struct image_command *c, char ***ret, struct fault *f)
{
	int r = store_open(&c->store, c->dir, false, f);

	if (r == -ENOENT) {
		*f = (struct fault){ 0 };
		*ret = NULL;
		return 0;
	}
	return r < 0 ? r : store_names(&c->store, ret, f);
}

/* On stderr: who reads the list by a program gets one that is empty. */
static void say_none(const struct image_command *c)
{
	(void)fprintf(stderr,
		"glovebox: note: there are no images in %s; `glovebox image import` or `glovebox "
		"image build` makes one\n",
		c->dir);
}

static void hex(const uint8_t *bytes, char ret[static 2 * IMAGE_DIGEST_MAX + 1])
{
	for (size_t i = 0; i < IMAGE_DIGEST_MAX; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static json_t *texts(const char (*list)[RUNTIME_PATH_MAX], size_t most)
{
	json_t *all = json_array();

	for (size_t i = 0; i < most && list[i][0]; i++)
		(void)json_array_append_new(all, json_string(list[i]));
	return all;
}

/* The limits that an image has, by the names that a request has for them. */
static const enum api_meaning limits[] = { API_TIMEOUT, API_MEMORY, API_CPU, API_PIDS };

/* null: the server's. */
static json_t *limits_as_json(const struct run_limits *l)
{
	json_t *all = json_object();

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		const struct api_field *f = &api_fields[limits[i]];
		double value = api_field_get(f, l);
		bool whole = value == (double)(json_int_t)value;

		(void)json_object_set_new(all, f->name,
			value <= 0 ? json_null()
			: whole    ? json_integer((json_int_t)value)
				   : json_real(value));
	}
	return all;
}

/* What is installed, as GET /runtimes has it. */
static int read_inventory(
	const struct store *s, const char *name, struct inventory *ret, struct fault *f)
{
	static char text[IMAGE_INVENTORY_MAX];
	cleanup_fd int fd = store_open_inventory(s, name, f);
	ssize_t n = fd < 0 ? fd : io_read_all(fd, text, sizeof(text));

	if (fd < 0)
		return fd;
	if (n < 0 || inventory_take(ret, text, (size_t)n, true) < 0)
		return fault_set(f, n < 0 ? (int)n : -ENOMEM, "%s: the inventory", name);
	return 0;
}

/* What is wrong with it, or all that is known of it. */
static json_t *as_json(
	const struct store *s, const char *name, const struct image_record *r, struct fault *why)
{
	CLEANUP(inventory_clear) struct inventory in = { .packages = NULL };
	char digest[2 * IMAGE_DIGEST_MAX + 1];

	if (why->code < 0 || read_inventory(s, name, &in, why) < 0)
		return json_pack("{s:s, s:s}", "name", name, "error", why->text);
	hex(r->digest, digest);
	return json_pack(
		"{s:s, s:s, s:s+, s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:s, s:o, s:s?, s:o?}", "name",
		name, "form", FORM, "digest", "sha256:", digest, "arch", r->arch, "made", r->at,
		"bytes", (json_int_t)r->bytes, "unpacked_bytes", (json_int_t)r->unpacked_bytes,
		"entries", (json_int_t)r->entries, "argv", texts(r->start.argv, RUNTIME_ARGV_MAX),
		"env", texts(r->start.env, RUNTIME_ENV_MAX), "main_file", r->start.main_file,
		"limits", limits_as_json(&r->start.limits), "version",
		in.version[0] ? in.version : NULL, "packages",
		in.packages ? json_loads(in.packages, 0, NULL) : NULL);
}

static void print_row(const char *name, const struct image_record *r, const struct fault *why)
{
	if (why->code < 0) {
		(void)printf("%-20s %s\n", name, why->text);
		return;
	}
	(void)printf("%-20s %-8s %8.1f MB  %s  %s", name, FORM, (double)r->bytes / 1e6, r->at,
		r->start.argv[0]);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		const struct api_field *f = &api_fields[limits[i]];
		double value = api_field_get(f, &r->start.limits);

		if (value > 0)
			(void)printf("  %s=%.12g", f->name, value);
	}
	(void)putchar('\n');
}

int image_list(struct image_command *c, struct fault *f)
{
	CLEANUP(free_names) char **names = NULL;
	static struct image_record record;
	json_t *all = c->json ? json_array() : NULL;
	int r = open_and_read(c, &names, f);

	for (char **n = names; r == 0 && n && *n; n++) {
		struct fault why = { 0 };

		(void)store_read(&c->store, *n, &record, &why);
		if (c->json)
			(void)json_array_append_new(all, as_json(&c->store, *n, &record, &why));
		else
			print_row(*n, &record, &why);
	}
	if (r == 0 && !c->json && (!names || !*names))
		say_none(c);
	if (r == 0 && c->json && (json_dumpf(all, stdout, JSON_INDENT(2)) < 0 || putchar('\n') < 0))
		r = fault_set(f, -EIO, "write");
	json_decref(all);
	return r;
}

/* The file in `fd`, or the errno that it could not be opened with. */
static int verify_file(int fd, const char *image, const char *file, uint64_t bytes,
	const uint8_t *digest, struct fault *f)
{
	struct msg_digest d;
	int r = fd < 0 ? fd : imager_digest(fd, &d, f);

	if (r < 0)
		return r;
	if (d.bytes != bytes)
		return fault_say(f, -EBADMSG, "%s: %s has %lu bytes, not %lu", image, file,
			(unsigned long)d.bytes, (unsigned long)bytes);
	if (memcmp(d.digest, digest, sizeof(d.digest)) != 0)
		return fault_say(f, -EBADMSG,
			"%s: the SHA-256 of %s is another than when it was made", image, file);
	return 0;
}

static int verify_one(const struct store *s, const char *name, struct fault *f)
{
	static struct image_record record;
	cleanup_fd int root = -1, inventory = -1;
	int r = store_read(s, name, &record, f);

	if (r < 0)
		return r;
	root = store_open_root(s, name, f);
	r = verify_file(root, name, IMAGE_ROOT_FILE, record.bytes, record.digest, f);
	if (r < 0)
		return r;
	inventory = store_open_inventory(s, name, f);
	return verify_file(inventory, name, IMAGE_INVENTORY_FILE, record.inventory_bytes,
		record.inventory_digest, f);
}

int image_verify(struct image_command *c, struct fault *f)
{
	CLEANUP(free_names) char **names = NULL;
	unsigned bad = 0;
	int r = open_and_read(c, &names, f);

	if (r < 0)
		return r;
	if (c->count > 0 && c->store.fd < 0)
		return fault_say(f, -ENOENT, "there is no image \"%.100s\"", c->operands[0]);
	if (c->count == 0 && (!names || !*names))
		say_none(c);
	for (unsigned i = 0; c->count > 0 ? i < c->count : names && names[i]; i++) {
		const char *name = c->count > 0 ? c->operands[i] : names[i];
		struct fault why = { 0 };

		if (verify_one(&c->store, name, &why) == 0) {
			(void)printf("%s: as it was made\n", name);
			continue;
		}
		error(0, 0, "%s", why.text);
		bad++;
	}
	return bad == 0 ? 0 : fault_say(f, -EBADMSG, "%u of them cannot be trusted", bad);
}

int image_remove(struct image_command *c, struct fault *f)
{
	int r = store_open(&c->store, c->dir, false, f);

	if (r == 0)
		r = image_lock(c, f);
	for (unsigned i = 0; r == 0 && i < c->count; i++) {
		if (!image_name_is_valid(c->operands[i]))
			return fault_say(
				f, -EINVAL, "\"%.100s\" is no name of an image", c->operands[i]);
		r = store_remove(&c->store, c->operands[i], f);
	}
	return r;
}
