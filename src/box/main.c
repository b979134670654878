/* What runs inside a cell on Glovebox's behalf, or after it, as one small static program that shares
 * no memory with any other process:
 *
 *   init   pid 1 of the cell. Builds the cage from inside (init/steps.c), gives up every
 *          privilege, then only reaps until its channel closes.
 *   enter  born into the finished cage by the supervisor, joins the namespaces, drops
 *          everything (enter/steps.c), waits for its work and becomes the program by
 *          execve().
 *
 *   zygote builds the same view for an interpreter that forks into cells (zygote/steps.c),
 *          and becomes it by execve().
 *
 *   collect reads what a dead program has left in its workspace (collect/walk.c), outside of
 *          any cell, as its user and with nothing but the descriptors for that.
 *
 * All speak to the supervisor over descriptor 3, and to nobody else. A failure is one
 * BROKEN message; then the process ends and the supervisor kills the cell.
 */
#include "box/collect/collect.h"
#include "box/enter/enter.h"
#include "box/init/init.h"
#include "box/zygote/zygote.h"

#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "init") == 0)
		return box_init();
	if (argc == 2 && strcmp(argv[1], "enter") == 0)
		return box_enter();
	if (argc == 2 && strcmp(argv[1], "zygote") == 0)
		return box_zygote();
	if (argc == 2 && strcmp(argv[1], "collect") == 0)
		return box_collect();
	return 2;
}
