/* The list of families, and the way to them by name. */
#include "graphs.h"
#include "families.h"

#include <string.h>

const struct graph_family graph_families[] = {
	{"chain", "N equal ops, the loss, N backward ops", 1, 50000, family_chain},
	{"rotor", "a chain of N ops of different sizes, costs and workspaces", 1, 50000,
		family_rotor},
	{"trunk", "as rotor, dear and cheap ops mixed, backward reads the output too", 1, 50000,
		family_trunk},
	{"layered", "N nodes in layers, edges to later layers, one sink", 2, 50000, family_layered},
	{"layered-train", "N nodes in layers and their gradients", 2, 20000, family_layered_train},
	{"ladder", "a U-shape with N levels", 1, 5000, family_ladder},
	{"dense", "a dense block of N ops", 1, 200, family_dense},
	{"gpt", "a GPT-2 stack of N layers, attention spelled out", 1, 5000, family_gpt},
	{"flash", "a GPT-2 stack of N layers, attention in one op", 1, 5000, family_flash},
	{"bert", "a BERT-large stack of N layers", 1, 5000, family_bert},
	{"vgg16", "VGG-16 for a batch of N", 1, 4096, family_vgg16},
	{"resnet50", "ResNet-50 for a batch of N", 1, 4096, family_resnet50},
	{"mobilenetv2", "MobileNetV2 for a batch of N", 1, 4096, family_mobilenet},
	{"densenet121", "DenseNet-121 for a batch of N", 1, 4096, family_densenet},
};

const int graph_nfamily = sizeof graph_families / sizeof *graph_families;

const struct graph_family *graph_family_find(const char *name)
{
	for (int i = 0; i < graph_nfamily; i++)
		if (strcmp(graph_families[i].name, name) == 0)
			return &graph_families[i];
	return NULL;
}

struct problem *graph_make(struct arena *a, const char *family, int n, uint64_t seed)
{
	const struct graph_family *f = graph_family_find(family);
	return f && n >= f->least && n <= f->most ? f->make(a, n, seed) : NULL;
}
