#include "priv/supervisor/factories.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "priv/launch/build.h"
#include "priv/supervisor/images.h"
#include "priv/supervisor/offered.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

void factories_open(struct factories *fs, const struct cell_factory *usual,
	struct languages *languages, const struct settings *settings)
{
	memset(fs, 0, sizeof(*fs));
	fs->usual = usual;
	fs->languages = languages;
	fs->settings = settings;
}

/* Is there something of that name? `what` it is, if that is not plain. */
static int look_for(const struct language *l, const char *path, const char *what, struct stat *ret,
	struct fault *f)
{
	const char *package = l->offer.package;
	int r = sys.fstatat(AT_FDCWD, path, ret, 0);

	if (r == -ENOENT || r == -ENOTDIR)
		return fault_say(f, -ENOENT,
			"%s is not installed on this server: there is no %s%s%s%s", l->runtime.name,
			path, what, package[0] ? "; on Debian: apt-get install " : "", package);
	return r < 0 ? fault_set(f, r, "language %s: look for %s", l->runtime.name, path) : 0;
}

/* One that is mounted stays as long as it is offered: the store is not asked each time. */
static int look_at_image(const struct factories *fs, unsigned language, struct fault *f)
{
	cleanup_fd int root = -1;
	struct image_record record;

	if (!offered_is(fs->languages, language))
		return fault_say(f, -ENOENT, "there is no image \"%s\" any more",
			fs->languages->of[language].runtime.name);
	if (fs->of[language].made)
		return 0;
	return images_open_offered(fs->settings->image_dir, &fs->languages->of[language],
		fs->languages->digests[language], &record, &root, f);
}

/* Something that the compiler makes. */
static bool is_built(const char *path)
{
	return strncmp(path, BUILD_PATH "/", sizeof(BUILD_PATH)) == 0;
}

int factories_look(const struct factories *fs, unsigned language, struct fault *f)
{
	const struct language *l = &fs->languages->of[language];
	const struct runtime *rt = &l->runtime;
	struct stat st;
	int r = 0;

	CHECK(language < fs->languages->count);
	if (l->offer.is_image)
		return look_at_image(fs, language, f);
	if (l->offer.compiled)
		r = look_for(l, l->compile_argv[0], "", &st, f);
	if (r == 0 && !is_built(rt->argv[0]))
		r = look_for(l, rt->argv[0], "", &st, f);
	for (unsigned i = 0; r == 0 && i < RUNTIME_ROOTS_MAX && rt->roots[i][0]; i++) {
		if (rt->roots[i][0] == RUNTIME_OPTIONAL)
			continue;
		r = look_for(l, rt->roots[i], ", one of the roots of its manifest", &st, f);
		if (r == 0 && !S_ISDIR(st.st_mode))
			r = fault_say(f, -ENOTDIR,
				"%s cannot be used: %s, one of the roots of its manifest, is no "
				"directory",
				l->runtime.name, rt->roots[i]);
	}
	return r;
}

bool factories_lack(int code)
{
	/* Our own words, and what the kernel says of a name that leads to nothing. */
	return code == -ENOENT || code == -ENOTDIR || code == -ELOOP || code == -EPERM ||
	       code == -EBADMSG || code == -ESTALE;
}

static int open_view(
	struct factories *fs, unsigned language, struct image_record *ret, struct fault *f)
{
	const struct language *l = &fs->languages->of[language];
	struct view *view = &fs->of[language].view;
	cleanup_fd int root = -1;
	int r;

	if (!l->offer.is_image)
		return view_open_other(view, &l->runtime, language, l->offer.compiled == 1, f);
	r = images_open_offered(
		fs->settings->image_dir, l, fs->languages->digests[language], ret, &root, f);
	if (r == 0)
		r = view_open_image(view, root, language, f);
	return r < 0 ? fault_wrap(f, "image %s", l->runtime.name) : 0;
}

static void make(struct factories *fs, unsigned language, const struct image_record *image)
{
	const struct language *l = &fs->languages->of[language];
	struct cell_factory *made = &fs->of[language].factory;
	struct cell_factory *compiler = &fs->of[language].compiler_factory;

	*made = *fs->usual;
	made->view = &fs->of[language].view;
	made->runtime = &l->runtime;
	made->zygotes = fs->usual->image_zygotes;
	if (!image_is_warm(image))
		made->fork_main = NULL; /* no interpreter of it can be a zygote */
	memcpy(fs->of[language].preload, image->start.preload, sizeof(image->start.preload));
	*compiler = *made;
	compiler->runtime = &fs->of[language].compiler;
	fs->of[language].compiler = l->runtime;
	memcpy(fs->of[language].compiler.argv, l->compile_argv, sizeof(l->compile_argv));
	offer_limits(&l->offer, fs->settings, &made->usual);
	offer_compile_limits(&l->offer, fs->settings, &compiler->usual);
}

/* As its cells are without one, and with it. */
static const struct cell_factory *with_network(struct factories *fs, unsigned language)
{
	struct cell_factory *made = &fs->of[language].network_factory;

	*made = language == 0 ? *fs->usual : fs->of[language].factory;
	made->network = true;
	return made;
}

const struct cell_factory *factories_get(
	struct factories *fs, unsigned language, enum factory_kind kind, struct fault *f)
{
	struct image_record image = { .trusted = 0 }; /* of what is none */

	CHECK(language < fs->languages->count && (language > 0 || kind == FACTORY_NETWORK));
	if (language > 0 && !fs->of[language].made) {
		if (open_view(fs, language, &image, f) < 0)
			return NULL;
		make(fs, language, &image);
		fs->of[language].made = true;
	}
	if (kind == FACTORY_NETWORK)
		return with_network(fs, language);
	return kind == FACTORY_COMPILER ? &fs->of[language].compiler_factory
					: &fs->of[language].factory;
}

int factories_drop(struct factories *fs, unsigned language)
{
	int r;

	CHECK(offered_is_withdrawn(fs->languages, language));
	if (fs->of[language].made) {
		r = view_close_image(&fs->of[language].view);
		if (r < 0)
			return r;
	}
	fs->of[language].made = false;
	offered_forget(fs->languages, language);
	return 0;
}

const char *factories_preload(const struct factories *fs, unsigned language)
{
	CHECK(language < fs->languages->count);
	return fs->of[language].preload;
}
