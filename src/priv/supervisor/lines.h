/* Lines of zygotes beside the pool's own, each for the cells of one image: begun when a run asks
 * for the image, which is itself not kept waiting, and ended when none has for a while.
 *
 *   runs in    the supervisor
 *   owns       the lines
 *   threads    none
 *   blocks     never
 *   trusts     a zygote as lineage.h says; whose image may have one is for images.h
 */
#pragma once

#include "priv/supervisor/lineage.h"

#include <stdbool.h>
#include <stdint.h>

/* A warm interpreter with numpy, pandas and matplotlib holds some 100 MB. */
#define LINES_MAX        4
/* One that was asked for since does not give way: to start another one takes a second of a CPU. */
#define LINES_KEPT_NS    (10 * NS_PER_S)
/* A child broke: until then the cells of that image are started cold. */
#define LINES_SHUNNED_NS (5 * NS_PER_S)
/* A preload cost a zygote: those that are started until then are without. It may have been a
 * trouble that passes; a module that hangs costs 20 s of a CPU each time that it is tried. */
#define LINES_SPARED_NS  (300 * NS_PER_S)

struct line {
	uint32_t language; /* whose cells it forks mains for; 0: no line */
	struct lineage lineage;
	char preload[SETTING_TEXT_MAX];
	uint64_t asked_ns;   /* when a run last wanted a cell of that image */
	uint64_t shunned_ns; /* not to be asked before */
	uint64_t spared_ns;  /* nothing is preloaded before */
};

struct lines {
	struct lineage_owner owner; /* of all of them, but for the factory and what is preloaded */
	struct watch watch;         /* three for each line; the opener's to set */
	struct line of[LINES_MAX];
};

/* Begin with none. */
void lines_open(struct lines *ls, const struct lineage_owner *owner) __attribute__((nonnull));

/* A run waits for a cell of `language`, that is made from `factory` (borrowed for as long as there
 * are lines): begin its line, if there is none. Where there are LINES_MAX, the longest unused one
 * gives way; or none does, and its cells are started cold. */
void lines_want(struct lines *ls, uint32_t language, const struct cell_factory *factory,
	const char *preload, uint64_t now_ns) __attribute__((nonnull));

/* End the line of that image, if it has one: nobody can ask for it any more. */
void lines_drop(struct lines *ls, uint32_t language) __attribute__((nonnull));

/* lineage_fork() of that line. A negative errno: there is none, or none that can be asked. */
int lines_fork(struct lines *ls, uint32_t language, struct cell *c, int channel_fd, bool rehearse,
	uint64_t now_ns) __attribute__((nonnull));

/* A child of that line broke. */
void lines_shun(struct lines *ls, uint32_t language, uint64_t now_ns) __attribute__((nonnull));

/* Something happened at number `which` of the watch. */
void lines_look(struct lines *ls, unsigned which) __attribute__((nonnull));

/* End what nobody has asked for during the setting cell-max-age; lineage_tick() the others. */
void lines_tick(struct lines *ls, uint64_t now_ns) __attribute__((nonnull));

/* When they have to be ticked again. */
uint64_t lines_due_ns(const struct lines *ls) __attribute__((nonnull));

/* Does one of them owe an answer? Is `pid` a zygote of them? A bit for each language that has one
 * that can fork. */
bool lines_owe(const struct lines *ls) __attribute__((nonnull));
bool lines_know(const struct lines *ls, pid_t pid) __attribute__((nonnull));
uint32_t lines_warm(const struct lines *ls) __attribute__((nonnull));

/* End all. The owner is told of what they owed. */
void lines_close(struct lines *ls) __attribute__((nonnull));
