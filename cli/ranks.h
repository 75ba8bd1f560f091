/* Several processes that train one model together, started by MPI. The part that knows MPI is a
 * library in the step's folder, which is opened when it is wanted: stint itself needs none. */
#ifndef STINT_CLI_RANKS_H
#define STINT_CLI_RANKS_H

#include "api/load.h"

enum { RANKS_PATIENCE = 60 };

struct ranks {
	int rank, n;     /* n 1: this process is alone */
	double patience; /* seconds to wait for another rank; 0: forever */
	void *handle;
	struct stint_ranks_part *part;
	bool agreed;      /* all ranks have come to the same failure: the first one tells it */
	struct diag told; /* of ranks but the first: where errors go, and nothing else */
};

/* Whether a launcher of MPI has started this process as one of several. ST_USAGE where another
 * launcher has. */
enum status ranks_asked(bool *asked, struct diag *d);
/* Starts MPI, where this process was started so; the part that knows it is in `dir`. Ranks but the
 * first say nothing on standard output from now on. */
enum status ranks_start(struct arena *a, const char *dir, struct ranks *r, struct diag *d);
/* The step, in the folder `dir`, is theirs. All must have the same, and be as many as it was
 * compiled for. Requires ranks_start, of all ranks; states are read after it. */
enum status ranks_take(
	struct arena *a, const char *dir, struct ranks *r, const struct loaded *l, struct diag *d);
/* Whether all have the same values, when each has read its files. From then on a rank waits for
 * another for `patience` seconds; before, for 5 minutes: files may be slow. */
enum status ranks_same(struct ranks *r, const struct loaded *l, double patience, struct diag *d);
/* From now on ranks wait for each other for so many seconds; 0: as usual. */
void ranks_wait(const struct ranks *r, const struct loaded *l, double patience);
/* The largest of what ranks say. */
enum status ranks_most(
	const struct ranks *r, const struct loaded *l, int64_t *value, struct diag *d);
/* By all at once. `fast`: gradients are added in whichever order MPI likes, not along the tree. */
enum status ranks_reduce(const struct ranks *r, const struct loaded *l, bool fast, struct diag *d);
/* By all at once. Each of n numbers: its sum over the ranks. Each byte, which is zero in all ranks
 * but one: to all. */
enum status ranks_add(
	const struct ranks *r, const struct loaded *l, int64_t *x, int64_t n, struct diag *d);
enum status ranks_merge(
	const struct ranks *r, const struct loaded *l, void *data, int64_t bytes, struct diag *d);
/* Whether all have the same values still. */
enum status ranks_check(struct ranks *r, const struct loaded *l, struct diag *d);
/* What is between them: struct ranks_link's numbers (planner/problem/ranks_cost.h). By all at once.
 */
enum status ranks_measure(const struct ranks *r, double link[3], struct diag *d);
/* Before the step is closed. A status that not all ranks have come to ends them all. */
void ranks_end(struct ranks *r, const struct loaded *l, enum status st, struct diag *d);

/* Whether the step in `dir` is one for so many ranks; if not, how to start it. */
enum status ranks_fit(
	struct arena *a, const char *dir, const struct stint_model *m, int64_t n, struct diag *d);
/* --ranks N: mpirun starts this command so many times; what it comes to. With `restart`, up to so
 * many times again after a rank was lost, with --resume and one fewer, but where the number is
 * `fixed`. */
bool ranks_started(void); /* by that */
enum status ranks_launch(struct arena *a, int64_t n, bool fixed, int64_t restart, struct diag *d);
/* --ranks N, for the step in `dir`; 0: it was not given. Not *done: this process is to go on, as
 * one that was started or alone. */
enum status ranks_launch_for(
	struct arena *a, const char *dir, int64_t n, int64_t restart, bool *done, struct diag *d);

#endif
