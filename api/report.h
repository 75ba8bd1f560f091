/* Plans and models for people: what `compile`, `plan` and `show` print. */
#ifndef STINT_API_REPORT_H
#define STINT_API_REPORT_H

#include <stdio.h>

#include "compile/pipeline.h"
#include "graph/graph.h"
#include "planner/plan.h"

/* Which budgets there are: the smallest that is met, what none is below, what keeping everything
 * takes. */
void report_budgets(FILE *f, int64_t known, int64_t proven, int64_t keep_all);
/* Memory by kind, kept, recomputed, overwritten, cost and bound, a sparkline of memory. */
enum status report_plan(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d);
/* What is kept, and what is recomputed, why and at what cost: the ten largest of each. */
enum status report_details(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d);
/* Where the time goes, by the kind of kernel: the eight dearest; nothing where kernels are not
 * known.
 */
enum status report_kinds(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d);
/* All of them, as a member of an object that has others before it. */
enum status report_kinds_json(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d);
/* Loops that are one node: turns, what is kept of them, what runs again; nothing where there are
 * none. */
void report_loops(FILE *f, const struct problem *p, const struct plan_facts *x);
/* As a member of an object that has others before it. */
enum status report_loops_json(
	FILE *f, const struct problem *p, const struct plan_facts *x, struct diag *d);
/* The schedule, one line a step. */
enum status report_schedule(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d);
/* The same facts as one JSON object. */
enum status report_json(FILE *f, struct arena *a, const struct problem *p, const struct plan *plan,
	const struct pipeline *tried, struct diag *d);
/* Code, libraries, stack and the runtime's own records beside the arena, as `stint bench` measures
 * it on the examples (docs/explanation/memory-model.md); the library's code and kernels are most of
 * it.
 */
#define REPORT_OUTSIDE_BYTES (INT64_C(16) << 20)
/* What a context, its libraries and their kernels take of a device's memory: 531 to 545 MiB on an
 * H200 (docs/benchmarks.md). */
#define REPORT_OUTSIDE_GPU_BYTES (INT64_C(545) << 20)
/* "needs ARENA + about OUTSIDE"; a portable step has no library outside, on a GPU it is the
 * device's memory. */
enum report_place { REPORT_LIBRARY, REPORT_PORTABLE, REPORT_GPU };
void report_needs(FILE *f, int64_t arena_bytes, enum report_place place);
enum report_place report_place_of(const struct pipeline *p);
/* What --frozen-precision did to weights, and which the file has in small numbers; nothing where
 * there are none. */
enum status report_frozen(FILE *f, struct pipeline *p);
/* How the constant t is stored: "int8", "nf4", "bf16"; NULL: as it is. The model's name for it;
 * NULL: it has none. */
const char *report_form(const struct tensor *t);
/* A note in weights.safetensors, with a constant's name behind it: "int8 NAME". */
#define REPORT_STORED "stored/"
const char *report_weight(const struct pipeline *p, const struct tensor *t);
/* The steps for shorter lengths that lie in the same arena; nothing where there are none. */
void report_lengths(FILE *f, const struct pipeline *p);
/* As a member of an object that has others before it. */
void report_lengths_json(FILE *f, const struct pipeline *p);
/* What `compile` tells. Requires what pipeline_run makes. */
enum status report_compiled(FILE *f, struct pipeline *p);
/* Inputs, outputs, operators, and the table of parameters with what is trained. */
enum status report_model(FILE *f, const struct graph *g);
enum status report_model_json(FILE *f, const struct graph *g);

/* A name from a model, unsafe bytes escaped (api/safe_put.h), whole: patterns want it so. On a
 * terminal it is shortened to `width` columns and as many as there are beyond 80. `column`: padded
 * to `width`. */
void name_put(FILE *f, const char *name, int width, bool column);

/* How else the batch was taken in parts, where that was tried. */
void report_trials(FILE *f, const struct pipeline *p);

#endif
