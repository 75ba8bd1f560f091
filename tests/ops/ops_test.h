/* The operators' test: every example of every record, through the whole pipeline.
 *
 * An example becomes a small model: one node, whose real inputs are parameters; the loss is the sum
 * of all real outputs, weighted. It is lowered, differentiated, planned, printed, compiled with cc
 * and run, in several variants (enum variant_kind), and what comes out is compared:
 *	outputs with the record's host evaluation (fold), where it has one;
 *	every gradient with central finite differences of the loss, in double precision;
 *	the smallest plan with keep-everything, bit for bit;
 *	single with double precision; library calls with plain C;
 *	bf16 in kernels that know it with the same values rounded by conversions;
 *	in tests/gpu, CUDA's kernels, run through the shim, with double precision. */
#ifndef STINT_OPS_TEST_H
#define STINT_OPS_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "codegen/step.h"
#include "graph/op_example.h"
#include "graph/pass.h"
#include "ops/ops.h"
#include "planner/plan.h"
#include "runtime/stint_rt_device.h"

/* Generated code must compile without a warning, and quickly here: optimizing changes no bit. */
#define STEP_CFLAGS                                                                                \
	"-std=gnu11 -O0 -ffp-contract=off -fno-math-errno -fno-trapping-math -fPIC -fopenmp "      \
	"-Wall "                                                                                   \
	"-Wextra -Werror -I" STINT_SOURCE

/* What is compiled for its values alone: tests/values_cc.sh. */
#define VALUES_CC "${STINT_VALUES_CC:-${CC:-cc}}"

enum { CASE_INPUTS = 16, CASE_ATTRS = 16, CASE_OUTPUTS = 8 };

enum input_kind { VALUE_ABSENT, VALUE_REAL, VALUE_INT, VALUE_BOOL, VALUE_KNOWN };

/* An input of an example, drawn: the numbers are exact in single precision. */
struct example_input {
	enum input_kind kind;
	bool integer; /* VALUE_KNOWN: I64 or real */
	bool data;    /* VALUE_REAL: an input, not a parameter */
	int rank;
	int64_t dim[RANK_MAX], numel;
	double *v;
};

enum variant_kind {
	VAR_DOUBLE,  /* portable, fp64, everything kept */
	VAR_TIGHT,   /* the same under the smallest budget */
	VAR_SINGLE,  /* portable, fp32, channels in blocks of 2 where records know them */
	VAR_LIBRARY, /* fp32 with library calls, where the graph has any; the machine's blocks */
	VAR_NARROW,  /* bf16 wherever a record knows it, where one does; library calls */
	VAR_ROUNDED, /* the same by conversions around records that are not asked */
	VAR_CUDA,    /* fp32 for a GPU, plain loops for its libraries */
	VAR_CUDA_NARROW, /* bf16 for a GPU, wherever a record knows it, where one does */
	VAR_COUNT
};

/* Numbers that a variant computed, as doubles. */
struct result {
	double loss;
	double *output[CASE_OUTPUTS]; /* of evaluation */
	double *grad[CASE_INPUTS];    /* NULL: no update, so no gradient */
};

struct variant {
	bool built;
	char symbol[64]; /* of the model in the shared object, and the folder of its source */
	struct graph_problem train, eval;
	bool output_known[CASE_OUTPUTS]; /* made at compile time: nothing to run */
	bool same_sums; /* no product, whose library adds up in an order of its own */
	int noutput;
	stint_step *step;
	void *object; /* for a GPU: the library, once opened */
	struct result result;
};

struct test_case {
	const struct op_def *op;
	const struct op_example *example;
	int draw; /* of the sizes, below example_draws */
	char name[160];
	struct arena *arena;
	const char *in_text, *attr_text; /* the example's, sizes filled in */
	int nin, nattr;
	struct example_input in[CASE_INPUTS];
	struct attr attr[CASE_ATTRS];
	double *reference[CASE_OUTPUTS]; /* from fold; NULL: the record has none */
	struct variant variant[VAR_COUNT];
	char error[1500]; /* why it could not be built; "" when it could */
};

/* step.c: plan both graphs (train may be NULL), with everything kept or under the smallest budget,
 * and write the sources to `folder`/`symbol`/. */
enum status step_write(struct arena *a, struct diag *d, const char *symbol,
	const struct graph *train, const struct graph *eval, bool tight, const char *folder,
	struct graph_problem *train_problem, struct graph_problem *eval_problem);

/* The same under the budget at this share of the way from the residents to keep-everything, or the
 * smallest budget that is met; 1: keep everything.
 * The evaluation keeps everything unless the share is 0. `effort` is the planner's (struct
 * plan_options).
 */
enum status step_write_share(struct arena *a, struct diag *d, const char *symbol,
	const struct graph *train, const struct graph *eval, double share, double effort,
	const char *folder, struct graph_problem *train_problem,
	struct graph_problem *eval_problem);

/* The files to `folder`/`name`/, which is made if need be. */
enum status step_save(struct arena *a, struct diag *d, const char *folder, const char *name,
	struct step_texts *texts);

/* Note the first failure. */
void case_error(struct test_case *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Uniform in [0, 1), the same for the same arguments. */
double case_draw(uint64_t key, uint64_t i);
/* n values of a type of the runtime's. */
double *case_doubles(struct arena *a, int dtype, const void *data, int64_t n);

/* example.c: how many times an example is run: where letters stand for sizes STINT_TEST_DRAWS
 * times, or three. */
int example_draws(const struct op_example *ex);
/* Read the example, draw its sizes and inputs. */
bool case_parse(struct test_case *c);
/* build.c: graphs, plans, and sources under `folder`/<symbol>/; the reference. `cuda`: the variants
 * for a GPU and what they are compared with, else the others. */
void case_build(struct test_case *c, int index, const char *folder, bool cuda);
/* Parts of that, for graphs of other cases (test_special.c). The case's node with inputs of its
 * own, their names and its outputs' behind `scope`; `inputs` is room for the graph's. */
enum status case_node(struct test_case *c, struct graph *g, const char *scope, bool known,
	struct tensor **inputs, struct node **node);
/* c->reference: what fold makes of the same inputs, in double precision. */
enum status case_reference(struct test_case *c, struct diag *d, const struct target *t);
/* The sum over output k's elements, each with a weight of its own. */
struct tensor *case_weighted_sum(struct test_case *c, struct graph *g, struct tensor *y, int k);
/* What a variant is built for; of examples of `op`, or NULL. */
void case_target(const struct op_def *op, enum variant_kind v, struct target *target);
static inline bool variant_is_cuda(int kind)
{
	return kind == VAR_CUDA || kind == VAR_CUDA_NARROW;
}
/* check.c: run the built variants (opened as `object`, those for a GPU from libraries of their own
 * under `folder`/<symbol>/) and compare. The first difference as text in `why`; false when there is
 * one. */
bool case_check(struct test_case *c, void *object, const char *folder, char *why, size_t size);
void case_free(struct test_case *c);

#endif
