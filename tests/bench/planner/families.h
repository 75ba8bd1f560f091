/* The makers behind graph_families. Private to this folder. */
#ifndef STINT_TESTS_BENCH_FAMILIES_H
#define STINT_TESTS_BENCH_FAMILIES_H

#include "net.h"

typedef struct problem *family_make(struct arena *a, int n, uint64_t seed);

family_make family_chain, family_rotor, family_trunk, family_layered, family_layered_train,
	family_ladder, family_dense;
family_make family_gpt, family_flash, family_bert;
family_make family_vgg16, family_resnet50, family_mobilenet, family_densenet;

#endif
