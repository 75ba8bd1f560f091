/* SPDX-License-Identifier: MIT-0 */
/* What a call comes to in oneDNN. Private to stint_lib*.c. */
#ifndef STINT_LIB_RECIPE_H
#define STINT_LIB_RECIPE_H

#include <stddef.h>
#include <stdint.h>

#include <oneapi/dnnl/dnnl.h>

#include "stint_call.h"

enum { MAX_OPERAND = 4 };

/* A tensor of the call: `plain` outside, `used` by the primitive. */
struct operand {
	int arg; /* DNNL_ARG_ of the primitive */
	int output;
	dnnl_memory_desc_t plain, used;
	int copied;
	int batched;   /* has the batch's axis: another part in every round */
	size_t part;   /* bytes of a part, plain */
	size_t offset; /* of the copy in the workspace */
	dnnl_primitive_desc_t reorder;
};

/* What a call will do, before anything is generated. */
struct recipe {
	dnnl_engine_t engine;
	dnnl_primitive_attr_t attr, adding; /* adding: to what is there */
	dnnl_primitive_desc_t main, hint;
	int rounds;   /* parts of the batch */
	int noperand; /* inputs first, in order, then the output */
	struct operand operand[MAX_OPERAND];
	size_t workspace;
	size_t begin; /* bytes of the output that begin as input 2, to which the primitive adds */
};

/* 0 with a recipe, to be freed; -1 when the call is not one for the library. `threads`: those that
 * OpenMP is set to. */
int recipe_make(struct recipe *r, const struct stint_lib_call *call, int threads);
void recipe_free(struct recipe *r);
/* The output's parts are summed: the weight's gradient. */
int operand_adds(const struct recipe *r, const struct operand *o);
/* Bytes of a primitive's scratchpad. */
size_t scratch_of(const_dnnl_primitive_desc_t pd);

#endif
