/* From graph and plan to C text: step.c, step_arena.h, step_tables.h, stint_step.h, Makefile. */
#ifndef STINT_CODEGEN_STEP_H
#define STINT_CODEGEN_STEP_H

#include "bridge/from_graph.h"
#include "codegen/sources.h"
#include "planner/plan.h"

struct loss_list;

struct codegen_input {
	const char *name;       /* for the model: stint_model_NAME is a C identifier */
	const char *model_file; /* base name, for the comment at the top */
	/* eval is always there; train.graph is NULL for --loss none. Same residents in both
	 * problems. */
	struct graph_problem train, eval;
	const struct plan *train_plan, *eval_plan;
	int64_t arena_bytes;            /* of both, and of other steps that run in it */
	const struct loss_list *losses; /* NULL: none is told of */
	const char *library_identity;   /* NULL when portable */
	const char *isa_flags; /* for the Makefile: "-march=native" or what --isa said; "" */
	const char *cross;     /* what the compiler's name begins with: "aarch64-linux-gnu"; NULL */
	int shards;            /* micro-batches of a step; 1: there are none */
	int ranks;             /* processes that train; 0: any number up to the shards */
	const char *whole_batch;         /* what training wants all rows for; NULL: it does not */
	const char *const *whole_output; /* by the evaluation's outputs, what each wants them for */
	double lr;                       /* the learning rate to compile in as the default */
	const char *disk_folder;         /* where a step makes its file; NULL: it has none */
	bool beside; /* runs in another step's arena, and has what is common in the folder above */
	bool debug_arena;
};

/* The files' texts; those of files that a step has not are empty. */
struct step_texts {
	struct text step;  /* step.c: kernels' calls, fused loops, the schedule, the arena */
	struct text arena; /* step_arena.h, a part of it: where everything lies */
	struct text train; /* step_train.h, step_eval.h: the schedules, a step a line */
	struct text eval;
	struct text tables;    /* step_tables.h, another: what the runtime knows */
	struct text header;    /* stint_step.h */
	struct text makefile;  /* Makefile */
	struct text weights_h; /* weights.h and weights.c: a microcontroller's step's values */
	struct text weights_c;
	struct text kernels_cu; /* kernels.cu: the kernels that a step for a GPU launches */
	struct text kernels_c;  /* kernels.c: the same text as a string, which step.c knows */
};
/* Their names, ended by NULL. */
struct step_file {
	const char *name;
	size_t at; /* of the text in struct step_texts */
};
extern const struct step_file step_files[];
struct text *step_text(struct step_texts *t, const struct step_file *f);
void step_texts_free(struct step_texts *t);

/* Those, and the kernels' files that belong beside them, in the folder kernels/. Deterministic. The
 * texts are the caller's, also on failure. */
enum status codegen_step(const struct codegen_input *in, struct step_texts *out,
	struct source_files *kernels, struct diag *d);
/* One of those kernels' files as the target's folder has it: for a microcontroller with 32 bits
 * where others have 64. */
void print_kernel_file(const struct embedded_file *f, const struct target *target, struct text *t);

#endif
