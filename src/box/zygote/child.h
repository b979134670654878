/* The life of a zygote's child: enter the cell, rehearse, park, run one program, end.
 *
 *   runs in    a zygote's child, from the fork to its end
 *   blocks     for ENTER, and parked for START, fully locked down
 *   trusts     the supervisor
 */
#pragma once

struct rehearsal;

/* Once, in the zygote: note what the fork will lose. 0 or a negative errno. */
int child_init(void);

/* The agent's part, in the interpreter; the functions return 0, or -1 with an exception
 * set. */
struct child_script {
	int (*after_fork)(void);           /* what it must not share */
	const struct rehearsal *rehearsal; /* NULL: none */
	struct _object *arrange;           /* a function: the program's arguments and environment */
};

/* `channel_fd` becomes its channel; everything but the streams is closed. */
_Noreturn void child_live(int channel_fd, const struct child_script *script);
