/* Small steps, compiled together into one shared object and then tried one by one. */
#ifndef STINT_TESTS_OPS_TRIALS_H
#define STINT_TESTS_OPS_TRIALS_H

#include "bridge/from_graph.h"
#include "runtime/stint_rt.h"

struct trials {
	const char *folder;
	void *object; /* of all steps; NULL: they do not compile */
	struct text command;
};

/* One of them: the first member of what a test knows of it besides. */
struct trial_step {
	struct trials *of;
	struct arena *arena;
	struct graph_problem train, eval;
	char symbol[32];
	char error[400]; /* the first that was reported while it was built, or "" */
};

/* In `folder`, which is made; `runtime` is where the runtime's headers are. */
void trials_begin(struct trials *t, const char *folder, const char *runtime);
/* A step, called NAME and its number, to be built in s->arena with trial_diag's messages (false: no
 * memory); and when it has been, to be compiled, unless that failed. */
bool trial_begin(struct trials *t, struct trial_step *s, const char *name, int number);
struct diag trial_diag(struct trial_step *s);
void trial_built(struct trial_step *s, enum status built);
/* When all are built: compiles and opens them. */
void trials_open(struct trials *t);
/* In a test: the step, set up, its residents as the graph has them. Fails the test where it was not
 * built or compiled. The caller frees it. */
stint_step *trial_start(const struct trial_step *s);
void trial_end(struct trial_step *s);
void trials_end(struct trials *t);

/* The loss of such a graph is its first output: graph_options.attach. */
enum status trial_attach_loss(void *user, struct graph *g);

#endif
