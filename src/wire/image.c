#include "wire/image.h"

#include "wire/language.h"

#include <string.h>

/* As OCI's image configuration does, which has them from Go's GOARCH. */
#if defined(__x86_64__)
#define HOST_ARCH "amd64"
#elif defined(__aarch64__)
#define HOST_ARCH "arm64"
#else
#error "no name for this architecture"
#endif

const char *image_host_arch(void)
{
	return HOST_ARCH;
}

static bool is_text(const char *text, size_t room)
{
	return memchr(text, '\0', room) != NULL;
}

/* What image_start shares with a runtime's manifest obeys the same rules. */
void image_runtime(const struct image_record *r, struct runtime *ret)
{
	/* The library by which a program tells is made for the version of Python that a zygote is. */
	struct runtime made = { .full_proc = r->start.full_proc, .reports = r->start.warm };

	memcpy(made.name, r->name, sizeof(made.name));
	memcpy(made.main_file, r->start.main_file, sizeof(made.main_file));
	memcpy(made.argv, r->start.argv, sizeof(made.argv));
	memcpy(made.env, r->start.env, sizeof(made.env));
	*ret = made;
}

void image_offer(const struct image_record *r, struct offer *ret)
{
	struct offer made = { .limits = r->start.limits, .reports = r->start.warm, .is_image = 1 };

	memcpy(made.name, r->name, sizeof(made.name));
	memcpy(made.main_file, r->start.main_file, sizeof(made.main_file));
	*ret = made;
}

bool image_is_warm(const struct image_record *r)
{
	return r->trusted == 1 && r->start.warm == 1;
}

/* Would a terminal obey any of it? Also the controls that UTF-8 writes as C2 80 to C2 9F. */
static bool has_controls(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (*p < ' ' || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0))
			return true;
	return false;
}

/* Of texts that are terminated. These are shown to root, and were chosen by who made the image. */
static const char *shown_fault(const struct image_start *s)
{
	bool bad = has_controls(s->main_file);

	for (unsigned i = 0; i < RUNTIME_ARGV_MAX; i++)
		bad |= has_controls(s->argv[i]);
	return bad ? "the path of what runs programs has a control character in it; --interpreter "
		     "names another one"
		   : NULL;
}

static const char *image_start_fault(const struct image_start *s)
{
	struct image_record r = { .name = "its", .start = *s };
	struct runtime made;
	const char *why;

	image_runtime(&r, &made);
	if (s->warm > 1)
		return "a flag is neither 0 nor 1";
	if (!is_text(s->preload, sizeof(s->preload)) || !is_modules(s->preload))
		return "preload is no list of modules";
	why = language_limits_fault(&s->limits);
	if (!why)
		why = runtime_fault(&made);
	return why ? why : shown_fault(s);
}

const char *image_record_fault(const struct image_record *r)
{
	if (r->magic != IMAGE_MAGIC)
		return "it was made by another version of Glovebox; import or build it again";
	if (r->trusted > 1)
		return "a flag is neither 0 nor 1";
	if (!is_text(r->name, sizeof(r->name)) || !image_name_is_valid(r->name))
		return "its name is none";
	if (!is_text(r->arch, sizeof(r->arch)) || !is_text(r->at, sizeof(r->at)))
		return "a text is not terminated";
	if (strcmp(r->arch, HOST_ARCH) != 0)
		return "it is for another architecture";
	if (r->inventory_bytes < 1 || r->inventory_bytes > IMAGE_INVENTORY_MAX)
		return "its inventory has no size of one";
	return image_start_fault(&r->start);
}

bool image_inventory_is_valid(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != '\n' && (text[i] < ' ' || text[i] > '~'))
			return false;
	return len > 0 && len <= IMAGE_INVENTORY_MAX && text[len - 1] == '\n';
}

static bool consists_of(const char *text, const char *more)
{
	for (const char *p = text; *p; p++)
		if (!(*p >= 'a' && *p <= 'z') && !(*p >= '0' && *p <= '9') &&
			(p == text || !strchr(more, *p)))
			return false;
	return *text != '\0';
}

bool plan_package_is_valid(const char *name)
{
	return consists_of(name, "+-.") && name[1] != '\0';
}

bool plan_word_is_valid(const char *word)
{
	return consists_of(word, "-");
}

const char *plan_fault(const struct msg_plan *p)
{
	if (!is_text(p->name, sizeof(p->name)) || !image_name_is_valid(p->name))
		return "the name is none";
	if (!is_text(p->suite, sizeof(p->suite)) || !is_text(p->variant, sizeof(p->variant)) ||
		(p->suite[0] && !plan_word_is_valid(p->suite)) || !plan_word_is_valid(p->variant))
		return "the release or the variant is no word";
	for (unsigned i = 0; i < PLAN_PACKAGES_MAX && p->packages[i][0]; i++)
		if (!is_text(p->packages[i], PLAN_PACKAGE_MAX) ||
			!plan_package_is_valid(p->packages[i]))
			return "a package has no name of one";
	if (p->packages[0][0] == '\0' || p->packages[PLAN_PACKAGES_MAX - 1][0] != '\0')
		return "there are no packages, or no end to them";
	return image_start_fault(&p->start);
}
