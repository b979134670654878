#include "wire/layer.h"

#include "base/fault.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *word, *lost, *remedy;
} layers[LAYER_MAX] = {
#define X(name, word_, lost_, remedy_) [LAYER_##name] = { word_, lost_, remedy_ },
	LAYERS(X)
#undef X
};

const char *layer_word(uint32_t layer)
{
	return layer < LAYER_MAX ? layers[layer].word : "unknown";
}

const char *layer_lost(uint32_t layer)
{
	return layer < LAYER_MAX ? layers[layer].lost : "unknown";
}

const char *layer_remedy(uint32_t layer)
{
	return layer < LAYER_MAX ? layers[layer].remedy : "unknown";
}

const char *layer_remedy_for(uint32_t layer, const struct fault *why)
{
	/* Namespaces and mounts are refused for want of rights far more often than for want of
	 * a kernel that has them. */
	if (layer <= LAYER_NET_NS && layer != LAYER_USER_NS && why->code == -EPERM)
		return "start as root with CAP_SYS_ADMIN; in a container, allow namespaces";
	if (layer == LAYER_ROOT && !strstr(why->text, "overlay"))
		return "start as root with CAP_SYS_ADMIN and CAP_MKNOD; in a container, allow "
		       "mounts and device nodes";
	return layer_remedy(layer);
}

enum layer layer_by_word(const char *word)
{
	for (unsigned i = 0; i < LAYER_MAX; i++) {
		if (strcmp(layers[i].word, word) == 0)
			return (enum layer)i;
	}
	return LAYER_MAX;
}
