/* What cells of each language are made from: for number 0 without a network that is the engine's own factory, for
 * the others it is made when the first run of that language comes.
 *
 *   runs in    the supervisor and the probe
 *   owns       the views of the other languages, until the process ends; of images until
 *              factories_drop()
 *   threads    none
 *   blocks     a millisecond, when the view of a language is made
 */
#pragma once

#include "priv/launch/cell.h"
#include "priv/launch/view.h"
#include "wire/language.h"

#include <stdbool.h>

struct fault;

struct factories {
	const struct cell_factory *usual; /* of number 0; what the others have in common with it */
	struct languages *languages;
	const struct settings *settings;
	struct {
		bool made;
		struct view view;
		struct cell_factory factory;
		char preload[SETTING_TEXT_MAX]; /* of an image that may have a zygote */
		struct runtime compiler;        /* as the language's own, but for its argv */
		struct cell_factory compiler_factory, network_factory;
	} of[LANGUAGES_MAX];
};

/* Begin with none made. All three stay the caller's, and must outlive it. */
void factories_open(struct factories *fs, const struct cell_factory *usual,
	struct languages *languages, const struct settings *settings) __attribute__((nonnull));

/* Is what the language needs on this host now? 0, or a negative errno. If factories_lack() it, the
 * fault names what is missing and the package that has it; any other says that it could not be
 * looked for. Some system calls. */
int factories_look(const struct factories *fs, unsigned language, struct fault *f)
	__attribute__((nonnull));

/* Does this error of factories_look() say that something is not there, or not as it was offered? */
bool factories_lack(int code);

/* Nothing uses that image, which is withdrawn (offered.h), any more: take its view away, and free its
 * number. A negative errno: it could not be done now. */
int factories_drop(struct factories *fs, unsigned language) __attribute__((nonnull));

enum factory_kind {
	FACTORY_PROGRAM, /* not of number 0 */
	FACTORY_COMPILER,
	FACTORY_NETWORK /* of programs with a network */
};

/* The factory of a language; NULL with the reason in `f`. */
const struct cell_factory *factories_get(struct factories *fs, unsigned language,
	enum factory_kind kind, struct fault *f) __attribute__((nonnull));

/* What a zygote for such cells is to import ahead, if the factory has `fork_main`. */
const char *factories_preload(const struct factories *fs, unsigned language)
	__attribute__((nonnull));
