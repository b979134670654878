/* `glovebox image import`: what others have packed. */
#include "caller/cli/image.h"
#include "caller/cli/image_make.h"

#include "base/fault.h"
#include "base/own.h"
#include "caller/image/source.h"

int image_import(struct image_command *c, struct fault *f)
{
	const char *path = c->operands[0], *name = c->operands[1];
	cleanup_fd int source = -1;
	int r = image_prepare(c, name, f);

	if (r < 0)
		return r;
	source = source_open(&c->store, path, c->ask.bytes_max, f);
	if (source < 0)
		return source;
	c->ask.source = IMAGE_SOURCE_ARCHIVE;
	r = image_make(c, name, source, f);
	return r < 0 ? fault_wrap(f, "%s", path) : 0;
}
