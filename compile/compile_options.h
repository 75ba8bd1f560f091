/* What a model is compiled with: parsed, and checked against each other by whoever fills it
 * (api/options.c). */
#ifndef STINT_COMPILE_OPTIONS_H
#define STINT_COMPILE_OPTIONS_H

#include "graph/lowering.h"
#include "import/import.h"
#include "planner/plan.h"
#include "planner/problem/insist.h"
#include "planner/problem/ranks_cost.h"

enum { UNROLL_MOST = 15 };
enum { MICRO_BATCH_AUTO = -1, SPLIT_AUTO = -1 };
enum target_choice { TARGET_C, TARGET_CUDA };
enum precision { PRECISION_FP32, PRECISION_TF32, PRECISION_BF16, PRECISION_FP16, PRECISION_FP64 };
enum frozen_precision {
	FROZEN_FP32,
	FROZEN_BF16,
	FROZEN_FP16,
	FROZEN_INT8,
	FROZEN_NF4,
	FROZEN_NF4_DOUBLE
};
enum state_precision { STATE_FP32, STATE_BF16 };
enum bn_choice { BN_TRAIN, BN_FROZEN, BN_SYNC };
enum variance_choice { VARIANCE_UNBIASED, VARIANCE_POPULATION };
enum share_choice { SHARE_STATE, SHARE_NONE }; /* --shard */
enum fuse_choice { FUSE_ON, FUSE_OFF };

/* What lasts over steps in a file: --offload disk. */
struct disk_options {
	const char *folder;   /* where the file is; NULL: there is none */
	double reads, writes; /* bytes a microsecond */
	int64_t least;        /* bytes of the smallest tensor that goes there */
};

/* --dim NAME=A,B,...: what the dimension is besides the longest, which import.dim has. */
struct length_options {
	const char *dim; /* NULL: one length */
	int n;
	const int64_t *length; /* growing */
};

/* Zeros stand for the defaults, but for `threads` and `effort`, 1 or more and above 0, and
 * `budget`. */
struct compile_options {
	const char *model; /* path; NULL: none */
	const char *graph; /* path of a stint-graph-1 file in the place of a model; NULL */
	struct import_options import;
	struct length_options lengths;
	const char *const *ops;  /* shared objects with operators, ended by NULL; NULL: none */
	const char *const *loss; /* --loss as written, ended by NULL; NULL: not given */
	const char *optimizer;   /* so, too */
	int guess; /* what is not given is guessed, and sizes of axes, too (compile/guess.h) */
	double clip_value, clip_norm, ema;
	const char *const *lora;  /* --lora, ended by NULL; NULL: none */
	const char *adapter;      /* a folder to go on from; NULL */
	const char *const *group; /* --group, ended by NULL; NULL: none */
	int no_decay_1d;
	int batch_auto; /* import.batch: the largest that a plan within the budget is found for */
	/* Rows of a micro-batch, import.batch being the whole one's; MICRO_BATCH_AUTO: those of the
	 * shortest step within the budget. 0: there are none. */
	int64_t micro_batch;
	int64_t ranks; /* processes that train together; 0: any number up to the micro-batches */
	enum share_choice share; /* what of it is shared among them... */
	int64_t share_least;     /* ... and parameters of so many bytes, too; 0: none */
	struct ranks_link link;  /* what is between them; bytes 0: a usual one */
	/* Slices of a batch, or of a micro-batch, in which the first part of the model runs;
	 * SPLIT_AUTO: as many as the shortest step within the budget has, or none. 0: none. */
	int64_t split;
	const char *split_until; /* the last node of that part; NULL: by the budget */
	struct plan_budget budget;
	enum target_choice target;
	int arch; /* of a GPU: 90 is sm_90 */
	enum math math;
	enum precision precision;
	enum frozen_precision
		frozen_precision;             /* what weights that are not trained are stored in */
	enum state_precision state_precision; /* what optimizer states are stored in */
	enum fuse_choice fuse;
	bool everywhere; /* layouts wherever a record knows how: for tests */
	int portable, threads;
	int bare; /* for a microcontroller; then portable, and one thread */
	enum bn_choice bn;
	enum variance_choice bn_variance;
	int dropout_off, nratio; /* and --dropout NODE=P */
	const struct dropout_ratio *ratio;
	int keep_all, segments, no_outputs;
	const char *const *input_gradient; /* names, ended by NULL; NULL: none */
	double seconds, effort, gap;
	int64_t unroll; /* loops of so many turns become their turns; 0: of UNROLL_MOST */
	struct insist insist;
	int64_t offload_least; /* bytes of the smallest tensor that may wait on the host; 0: none */
	struct disk_options disk;
	const char *costs; /* path of measured times; NULL */
	const char *isa;   /* -march of the step; NULL: this machine's */
	const char *cross; /* what its compiler's name begins with; NULL: this machine's */
	int debug_arena;
	int no_cache;              /* compile all kernels anew (api/objects.h) */
	int link_weights;          /* frozen ones stay in the model's files (api/links.h) */
	struct onlooker *onlooker; /* of whoever waits; NULL */
};

#endif
