/* From graph and plan to C text: step.c, step_tables.h, stint_step.h, Makefile. */
#ifndef STINT_CODEGEN_STEP_H
#define STINT_CODEGEN_STEP_H

#include "bridge/from_graph.h"
#include "codegen/sources.h"
#include "planner/plan.h"

struct codegen_input {
	const char *name;       /* C identifier for the model: stint_model_NAME */
	const char *model_file; /* base name, for the comment at the top */
	/* eval is always there; train.graph is NULL for --loss none. Same residents in both
	 * problems. */
	struct graph_problem train, eval;
	const struct plan *train_plan, *eval_plan;
	const char *loss_name, *loss_options; /* NULL: none */
	const char *library_identity;         /* NULL when portable */
	const char *isa_flags; /* for the Makefile: "-march=native" or what --isa said; "" */
	double lr;             /* the learning rate to compile in as the default */
	bool debug_arena;
};

/* The files' texts. */
struct step_texts {
	struct text step;   /* step.c: kernels' calls, fused loops, the schedule, the arena's map */
	struct text tables; /* step_tables.h, which it includes: what the runtime knows of it */
	struct text header; /* stint_step.h */
	struct text makefile; /* Makefile */
};
void step_texts_free(struct step_texts *t);

/* Those, and the kernels' files that belong beside them, in the folder kernels/. Deterministic. The
 * texts are the caller's, also on failure. */
enum status codegen_step(const struct codegen_input *in, struct step_texts *out,
	struct source_files *kernels, struct diag *d);
/* The kernels that a step for a GPU launches, kernels.cu, and kernels.c: the same text as a string
 * that step.c knows. Its graphs' target is CUDA. */
enum status codegen_kernels(const struct codegen_input *in, struct text *kernels_cu,
	struct text *kernels_c, struct diag *d);

#endif
