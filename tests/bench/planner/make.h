/* Problems put together op by op. Private to this folder.
 *
 *	make_op(m, PHASE_FORWARD, "relu", bytes_cost(2 * n));
 *	make_in(m, x);
 *	y = make_out(m, TK_ACTIVATION, n);
 *	make_pair(m, y, x);
 *
 * An op is open until the next make_op or make_finish. After an allocation failed everything is a
 * no-op and make_finish says NULL. */
#ifndef STINT_TESTS_BENCH_MAKE_H
#define STINT_TESTS_BENCH_MAKE_H

#include "planner/problem/problem.h"

struct make {
	struct arena *a;
	struct problem_tensor *tensor;
	struct problem_op *op;
	int ntensor, ctensor, nop, cop;
	struct problem_choice now; /* of the open op: lists in `in` and `out` */
	int *in, *out, cin, cout;
	struct problem_pair *pair;
	int npair, cpair;
	uint64_t dice;
	bool failed;
};

struct make make_start(struct arena *a, uint64_t seed);
/* [0, n), by xorshift: the same everywhere. */
int make_roll(struct make *m, int n);
/* A tensor without a producer. */
int make_resident(struct make *m, enum tensor_kind kind, int64_t bytes, const char *name);
/* Opens an op; the name is copied. Updates run once. Returns its index. */
int make_op(struct make *m, enum phase phase, const char *name, double cost);
void make_workspace(struct make *m, int64_t bytes);
void make_once(struct make *m);      /* the open op is not recomputable */
void make_in(struct make *m, int t); /* a second mention of the same tensor is ignored */
int make_out(struct make *m, enum tensor_kind kind, int64_t bytes);
void make_pair(struct make *m, int out, int in);
void make_keep(struct make *m, int t);
struct problem *make_finish(struct make *m, const char *name);

/* The roofline of these problems, in microseconds: 1 Tflop/s and 100 GB/s. */
double make_roofline(double flops, double bytes);

#endif
