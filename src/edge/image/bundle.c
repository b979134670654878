#include "edge/image/bundle.h"

#include "base/fault.h"
#include "base/own.h"
#include "edge/image/layer.h"
#include "edge/image/start.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_BYTES_MAX (4u << 20) /* an image's configuration is some kilobytes */
#define NESTED_MAX     4          /* an index of an index of … */
#define HEX_DIGEST     64

#define CLEANUP_JSON CLEANUP(drop_json) json_t

static void drop_json(json_t **j)
{
	json_decref(*j);
}

/* ---- Members ---- */

static int read_text(struct archive *a, char *text, size_t room, const char *name, struct fault *f)
{
	size_t used = 0;

	for (;;) {
		ssize_t n = archive_read_data(a, text + used, room - used);

		if (n < 0)
			return layer_fault(a, f, name);
		used += (size_t)n;
		if (used == room)
			return fault_say(
				f, -EFBIG, "%s is larger than %u KiB", name, JSON_BYTES_MAX >> 10);
		if (n == 0)
			return (int)used;
	}
}

static void hex(const uint8_t *bytes, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* `digest`: what the member must have, in hexadecimal, or NULL. */
static int read_json(const struct origin *from, const char *name, const char *digest, json_t **ret,
	struct fault *f)
{
	cleanup_free char *text = malloc(JSON_BYTES_MAX);
	struct archive *a;
	struct sha256_ctx hash;
	uint8_t its[SHA256_DIGEST_SIZE];
	char its_hex[2 * SHA256_DIGEST_SIZE + 1];
	json_error_t why;
	int r;

	if (!text)
		return fault_set(f, -ENOMEM, "%s", name);
	r = layer_find_member(from, name, &a, f);
	if (r < 0)
		return r;
	r = read_text(a, text, JSON_BYTES_MAX, name, f);
	(void)archive_read_free(a);
	if (r < 0)
		return r;
	if (digest) {
		sha256_init(&hash);
		sha256_update(&hash, (size_t)r, (const uint8_t *)text);
		sha256_digest(&hash, sizeof(its), its);
		hex(its, sizeof(its), its_hex);
		if (strcmp(its_hex, digest) != 0)
			return fault_say(
				f, -EBADMSG, "%s is damaged: its SHA-256 is another", name);
	}
	*ret = json_loadb(text, (size_t)r, JSON_REJECT_DUPLICATES, &why);
	if (!*ret)
		return fault_say(f, -EINVAL, "%s line %d, column %d: %.120s", name, why.line,
			why.column, why.text);
	return 0;
}

static int broken(struct fault *f, const char *what)
{
	return fault_say(f, -EINVAL, "%s is missing, or not what it should be", what);
}

/* "sha256:HEX" of a descriptor, as the hexadecimal part and as the member that has it. */
static int blob_of(const json_t *descriptor, char hex_digest[static HEX_DIGEST + 1],
	char name[static BUNDLE_NAME_MAX], struct fault *f)
{
	const char *digest = json_string_value(json_object_get(descriptor, "digest"));

	if (!digest || strncmp(digest, "sha256:", 7) != 0 ||
		strspn(digest + 7, "0123456789abcdef") != HEX_DIGEST ||
		digest[7 + HEX_DIGEST] != '\0')
		return broken(f, "a digest (sha256:…) of the OCI layout");
	memcpy(hex_digest, digest + 7, HEX_DIGEST + 1);
	(void)snprintf(name, BUNDLE_NAME_MAX, "blobs/sha256/%s", hex_digest);
	return 0;
}

static int read_blob(
	const struct origin *from, const json_t *descriptor, json_t **ret, struct fault *f)
{
	char digest[HEX_DIGEST + 1], name[BUNDLE_NAME_MAX];
	int r = blob_of(descriptor, digest, name, f);

	return r < 0 ? r : read_json(from, name, digest, ret, f);
}

/* ---- The image's configuration ---- */

static unsigned nibble(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static int take_digests(const json_t *config, struct bundle *b, struct fault *f)
{
	const json_t *ids = json_object_get(json_object_get(config, "rootfs"), "diff_ids");

	if (json_array_size(ids) != b->count)
		return broken(f, "rootfs.diff_ids of the image's configuration");
	for (unsigned i = 0; i < b->count; i++) {
		const char *id = json_string_value(json_array_get(ids, i));

		if (!id || strncmp(id, "sha256:", 7) != 0 ||
			strspn(id + 7, "0123456789abcdef") != HEX_DIGEST)
			return broken(f, "an entry of rootfs.diff_ids (sha256:…)");
		for (unsigned k = 0; k < IMAGE_DIGEST_MAX; k++)
			b->digests[i][k] =
				(uint8_t)(nibble(id[7 + 2 * k]) << 4 | nibble(id[8 + 2 * k]));
	}
	return 0;
}

static void take_env(const json_t *config, struct bundle *b)
{
	const json_t *env = json_object_get(json_object_get(config, "config"), "Env"), *value;
	unsigned used = 0;
	size_t i;

	json_array_foreach(env, i, value)
	{
		const char *text = json_string_value(value);

		if (!text || text[0] == '=' || !strchr(text, '=') ||
			strlen(text) >= RUNTIME_PATH_MAX || !start_has_room(b->env, text))
			b->lost_variables++;
		else
			(void)snprintf(b->env[used++], RUNTIME_PATH_MAX, "%s", text);
	}
}

static int take_config(const json_t *config, struct bundle *b, struct fault *f)
{
	const char *arch = json_string_value(json_object_get(config, "architecture"));
	const char *os = json_string_value(json_object_get(config, "os"));

	if (!arch || !os)
		return broken(f, "architecture or os of the image's configuration");
	if (strcmp(os, "linux") != 0)
		return fault_say(f, -ENOEXEC, "the image is for %.30s, this host is linux", os);
	if (strcmp(arch, image_host_arch()) != 0)
		return fault_say(f, -ENOEXEC, "the image is for %.30s, this host is %s", arch,
			image_host_arch());
	(void)snprintf(b->arch, sizeof(b->arch), "%s", arch);
	take_env(config, b);
	return take_digests(config, b, f);
}

/* ---- docker save ---- */

static int take_member(const json_t *name, char ret[static BUNDLE_NAME_MAX], struct fault *f)
{
	const char *text = json_string_value(name);

	if (!text || !*text || strlen(text) >= BUNDLE_NAME_MAX)
		return broken(f, "a member that manifest.json names");
	(void)snprintf(ret, BUNDLE_NAME_MAX, "%s", text);
	return 0;
}

static int count_layers(const json_t *layers, struct bundle *b, struct fault *f)
{
	size_t n = json_array_size(layers);

	if (n < 1 || n > BUNDLE_LAYERS_MAX)
		return fault_say(f, -EINVAL, "the image has %zu layers; 1 to %d can be read", n,
			BUNDLE_LAYERS_MAX);
	b->count = (unsigned)n;
	return 0;
}

static int read_docker(
	const struct origin *from, const json_t *manifest, struct bundle *b, struct fault *f)
{
	const json_t *image = json_array_get(manifest, 0);
	const json_t *layers = json_object_get(image, "Layers");
	CLEANUP_JSON *config = NULL;
	char name[BUNDLE_NAME_MAX];
	int r;

	if (json_array_size(manifest) != 1)
		return fault_say(f, -EINVAL,
			"it holds %zu images; `docker save` one of them at a time",
			json_array_size(manifest));
	r = count_layers(layers, b, f);
	for (unsigned i = 0; r == 0 && i < b->count; i++)
		r = take_member(json_array_get(layers, i), b->layers[i], f);
	if (r == 0)
		r = take_member(json_object_get(image, "Config"), name, f);
	if (r == 0)
		r = read_json(from, name, NULL, &config, f);
	return r < 0 ? r : take_config(config, b, f);
}

/* ---- OCI layout ---- */

/* For which architecture a descriptor says that it is; one that says nothing is for any. */
static bool is_for_us(const json_t *descriptor)
{
	const json_t *platform = json_object_get(descriptor, "platform");
	const char *arch = json_string_value(json_object_get(platform, "architecture"));

	return !arch || strcmp(arch, image_host_arch()) == 0;
}

static int choose(const json_t *index, const json_t **ret, struct fault *f)
{
	const json_t *all = json_object_get(index, "manifests"), *m, *found = NULL;
	char seen[128] = "";
	size_t i, fitting = 0;

	json_array_foreach(all, i, m)
	{
		const char *arch = json_string_value(
			json_object_get(json_object_get(m, "platform"), "architecture"));
		size_t used = strlen(seen);

		if (is_for_us(m) && fitting++ == 0)
			found = m;
		if (arch)
			(void)snprintf(seen + used, sizeof(seen) - used, "%s%.20s",
				used ? ", " : "", arch);
	}
	if (fitting == 0)
		return fault_say(f, -ENOEXEC, "the image is for %s, this host is %s",
			seen[0] ? seen : "nothing", image_host_arch());
	if (fitting > 1)
		return fault_say(f, -EINVAL,
			"the OCI layout holds %zu images for this host; it must hold one", fitting);
	*ret = found;
	return 0;
}

static int take_layers(const json_t *manifest, struct bundle *b, struct fault *f)
{
	const json_t *layers = json_object_get(manifest, "layers");
	char digest[HEX_DIGEST + 1];
	int r = count_layers(layers, b, f);

	for (unsigned i = 0; r == 0 && i < b->count; i++)
		r = blob_of(json_array_get(layers, i), digest, b->layers[i], f);
	return r;
}

static int read_oci(const struct origin *from, json_t *index, struct bundle *b, struct fault *f)
{
	CLEANUP_JSON *document = json_incref(index), *config = NULL;
	int r = 0;

	for (unsigned i = 0; json_object_get(document, "manifests"); i++) {
		const json_t *one = NULL;
		json_t *next = NULL;

		r = i < NESTED_MAX ? choose(document, &one, f)
				   : fault_say(f, -ELOOP, "indexes lead to indexes");
		if (r == 0)
			r = read_blob(from, one, &next, f);
		if (r < 0)
			return r;
		json_decref(document);
		document = next;
	}
	r = take_layers(document, b, f);
	if (r == 0)
		r = read_blob(from, json_object_get(document, "config"), &config, f);
	return r < 0 ? r : take_config(config, b, f);
}

int bundle_read(const struct origin *from, struct bundle *ret, struct fault *f)
{
	CLEANUP_JSON *manifest = NULL, *index = NULL;
	int r = read_json(from, "manifest.json", NULL, &manifest, f);

	/* Docker from 25 on writes both, and only the first names nothing that is not there. */
	if (r == 0)
		return read_docker(from, manifest, ret, f);
	if (r != -ENOENT)
		return r;
	*f = (struct fault){ 0 };
	r = read_json(from, "index.json", NULL, &index, f);
	if (r == 0)
		return read_oci(from, index, ret, f);
	if (r == -ENOENT)
		return fault_say(f, -EINVAL,
			"it has neither manifest.json nor index.json: it is no archive of "
			"`docker save`, and no OCI layout");
	return r;
}
