#include "wire/layer.h"

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

enum layer layer_by_word(const char *word)
{
	for (unsigned i = 0; i < LAYER_MAX; i++) {
		if (strcmp(layers[i].word, word) == 0)
			return (enum layer)i;
	}
	return LAYER_MAX;
}
