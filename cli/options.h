/* What `compile` and `plan` (and `show MODEL.onnx`) take. */
#ifndef STINT_CLI_OPTIONS_H
#define STINT_CLI_OPTIONS_H

#include "graph/pass.h"
#include "import/import.h"
#include "planner/plan.h"
#include "planner/problem/insist.h"

enum command_kind { COMMAND_COMPILE, COMMAND_PLAN, COMMAND_SHOW, COMMAND_FRONTIER };

/* Words that an option takes one of, in the order of the table in options.c. */
enum target_choice { TARGET_C, TARGET_CUDA };
enum precision { PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16, PRECISION_FP64 };
enum bn_choice { BN_TRAIN, BN_FROZEN };
enum variance_choice { VARIANCE_UNBIASED, VARIANCE_POPULATION };
enum fuse_choice { FUSE_ON, FUSE_OFF };
enum stage {
	STAGE_IMPORT,
	STAGE_LOWER,
	STAGE_LOSS,
	STAGE_AUTODIFF,
	STAGE_UPDATES,
	STAGE_LAYOUT,
	STAGE_NARROW,
	STAGE_FUSE,
	STAGE_NONE
};

struct options {
	const char *model; /* the positional argument; NULL: none */
	const char *loss, *optimizer, *budget, *out, *isa;
	const char *graph, *dump_graph, *costs;
	enum target_choice target;
	enum math math;
	enum precision precision;
	enum bn_choice bn;
	enum variance_choice bn_variance;
	enum fuse_choice fuse;
	enum stage dump_after;                 /* STAGE_NONE: of none */
	const char *html, *trace, *onnx, *svg; /* what people look at, to write */
	struct import_options import;
	struct insist insist;
	int segments, threads;
	const char *gpu; /* --arch as given; NULL: not */
	int arch;        /* of a GPU: 90 is sm_90 */
	const char *offload;
	int64_t offload_least; /* --offload host: bytes of the smallest tensor; 0: not given */
	double seconds, effort, clip_norm;
	int points, compare, steps;
	int nratio; /* --dropout NODE=P */
	const struct dropout_ratio *ratio;
	const char *const *ops; /* --ops, ended by NULL; NULL: none */
	int keep_all, portable, dropout_off, debug_arena, no_build, no_outputs, json, force;
};

/* A byte budget as written. */
struct budget {
	enum { BUDGET_NONE, BUDGET_BYTES, BUDGET_PERCENT, BUDGET_MIN } kind;
	int64_t bytes;
	double percent;
};

/* Parse argv into *out (strings in `a`). *help is set when --help was answered. ST_USAGE on bad
 * ones. */
enum status options_parse(struct arena *a, enum command_kind kind, int argc, const char **argv,
	struct options *out, bool *help, struct diag *d);

/* "2GiB", "2GB", "1500000", "70%", "min"; NULL gives BUDGET_NONE. */
enum status budget_parse(const char *text, struct budget *out, struct diag *d);

#endif
