/* Fuzz target: everything that the config process reads. The first byte chooses: a config file,
 * overrides, both and then settled; a manifest; all manifests; a file of the user database. Checks,
 * beyond memory errors, that what is taken is what the supervisor would take, and that what is
 * refused is explained in a text that can be printed.
 */
#include "base/fault.h"
#include "edge/config/document.h"
#include "edge/config/ids.h"
#include "edge/config/languages.h"
#include "edge/config/parse.h"
#include "edge/config/runtime.h"
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>

static const struct config_host host = { .cpus = 4, .memory_bytes = UINT64_C(8) << 30 };

static void check_refusal(const struct fault *f)
{
	size_t n = strnlen(f->text, sizeof(f->text));

	CHECK(f->code < 0 && n > 0 && n < sizeof(f->text));
	for (size_t i = 0; i < n; i++)
		CHECK((unsigned char)f->text[i] >= 0x20 && (unsigned char)f->text[i] < 0x7f);
}

static void fill_runtime(struct runtime *r)
{
	*r = (struct runtime){ .name = "x", .main_file = "m", .argv = { "/x" }, .roots = { "/x" } };
}

static void read_config(struct fuzz *z)
{
	struct config *c = malloc(sizeof(*c));
	struct fault f = { 0 };
	size_t n = z->len;
	const char *cut = memmem(z->at, z->len, "\n---8<---\n", 10);
	struct document d = { .name = "g.yaml" };
	char *file, *records = NULL;
	int r;

	CHECK(c);
	if (cut)
		n = (size_t)(cut - (const char *)z->at);
	/* The file is terminated behind its length; the overrides end with a NUL of their own. */
	file = malloc(n + 1);
	CHECK(file);
	memcpy(file, z->at, n);
	file[n] = '\0';
	d.bytes = file;
	d.len = n;
	config_init(c);
	r = document_configure(&d, c, &f);
	if (r == 0 && cut) {
		size_t len = z->len - n - 10;

		records = fuzz_block(cut + 10, len);
		r = config_override(c, records, len, &f);
	}
	if (r == 0)
		r = config_settle(c, &host, &f);
	if (r < 0) {
		check_refusal(&f);
	} else {
		fill_runtime(&c->settings.runtime);
		CHECK(settings_fault(&c->settings) == NULL);
	}
	free(records);
	free(file);
	free(c);
}

static void read_manifest(struct fuzz *z)
{
	static struct language l;
	struct fault f = { 0 };
	char *text = malloc(z->len + 1);
	struct document d = { text, z->len, "runtime.yaml" };

	CHECK(text);
	memcpy(text, z->at, z->len);
	text[z->len] = '\0';
	if (runtime_parse(&d, &l, &f) < 0) {
		check_refusal(&f);
	} else {
		const struct runtime *r = &l.runtime;
		struct config c;

		config_init(&c);
		CHECK(config_settle(&c, &host, &f) == 0);
		c.settings.runtime = *r;
		CHECK(language_fault(&l) == NULL && settings_fault(&c.settings) == NULL);
		CHECK(r->argv[RUNTIME_ARGV_MAX - 1][0] == '\0' &&
			r->env[RUNTIME_ENV_MAX - 1][0] == '\0' &&
			r->roots[RUNTIME_ROOTS_MAX - 1][0] == '\0');
	}
	free(text);
}

/* Records of manifests, as the caller or the program itself hands them over. */
static void read_manifests(struct fuzz *z)
{
	static struct languages l;
	bool own = fuzz_u8(z) % 2;
	languages_set operators = 0;
	struct fault f = { 0 };
	char *text = fuzz_block(z->at, z->len);

	l.count = 0;
	if (languages_read(&l, own ? &operators : NULL, text, z->len, &f) < 0 ||
		languages_settle(&l, operators, &f) < 0)
		check_refusal(&f);
	else
		for (uint32_t i = 0; i < l.count; i++)
			CHECK(language_fault(&l.of[i]) == NULL);
	free(text);
}

static void read_ids(struct fuzz *z)
{
	const struct id_range range = { 2000000, 2065535 };
	uint32_t base = fuzz_u8(z) % 2 ? 2000000 : 65536;
	char *text = fuzz_block(z->at, z->len);

	(void)ids_passwd_names(text, z->len, &range);
	(void)ids_group_names(text, z->len, &range);
	(void)ids_are_taken(text, z->len, ids_subuid_names, base);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz z = { bytes, len };

	switch (fuzz_u8(&z) % 5) {
	case 4:
		read_manifests(&z);
		break;
	case 1:
		read_manifest(&z);
		break;
	case 2:
		read_ids(&z);
		break;
	default:
		read_config(&z);
	}
	return 0;
}
