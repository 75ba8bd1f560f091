/* The planner's view of a training step: ops with costs, tensors with bytes, and nothing else.
 * Plain data. The JSON form is stint-graph-1 (docs/reference/formats.md). */
#ifndef STINT_PLANNER_PROBLEM_H
#define STINT_PLANNER_PROBLEM_H

#include "base/base.h"

enum tensor_kind { TK_INPUT, TK_PARAMETER, TK_STATE, TK_ACTIVATION, TK_GRADIENT, TK_OUTPUT };
enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_UPDATE };

extern const char *const tensor_kind_name[6];
extern const char *const phase_name[3];

/* Tensors and ops are named by their index here. `id` is the number a JSON file gave (the index,
 * for problems made by stint) and is what plans written to files use. */
struct problem_tensor {
	int64_t id;
	const char *name; /* may hold any bytes but NUL */
	int64_t bytes;    /* ≥ 0 */
	enum tensor_kind kind;
	int producer; /* op index; -1 for residents (input, parameter, state). An op that fetches it
			 makes it too */
	bool keep;    /* must be live after the last step */
};

/* Output `out` may take the bytes of input `in` (tensor indices). */
struct problem_pair {
	int out, in;
};

/* One way to execute an op. The first `nchoice` of an op's ways; ops without choices have one. */
struct problem_choice {
	double cost;       /* microseconds, or any unit: ≥ 0, finite */
	int64_t workspace; /* bytes */
	int nin, nout;
	const int *in, *out; /* tensor indices */
	const char *kernel;  /* what runs, in words (graph/op.h, kernel_key); NULL: not known */
	double roofline;     /* where `kernel` is known: the cost by committed constants */
};

/* What is kept of a loop for its backward pass: nothing is asked for; values inside turns that it
 * reads; carries after each turn; carries in places, at turns that Revolve's schedule says. */
enum problem_keeps { KEEPS_NOTHING, KEEPS_INSIDE, KEEPS_CARRIES, KEEPS_PLACES };
extern const char *const problem_keeps_name[4];

/* Of an op that is all turns of a loop, or of its backward pass: for people, to a plan it is an op
 * like others (planner/problem/loop_facts.h). */
struct problem_loop {
	int64_t turns;
	bool ends_early; /* data say when: these are the most */
	enum problem_keeps keeps;
	int64_t places;     /* KEEPS_PLACES: so many carries at once; 0 */
	int64_t again;      /* turns that a backward pass goes forward again to where carries are
			       not kept */
	int64_t turn_bytes; /* of the op's workspace, what one turn needs */
	int64_t kept_bytes; /* what a backward pass reads of what is kept for it */
	int64_t nat;        /* KEEPS_PLACES, of a backward pass: */
	const int64_t *at;  /* the turns before which carries are kept when it begins, ascending */
};

struct problem_op {
	int64_t id;
	const char *name;
	enum phase phase;
	int nchoice;                         /* ≥ 1 */
	const struct problem_choice *choice; /* choice[0] is the default */
	bool has_choices; /* the file said "choices": plans then state "choice" */
	int npair;
	const struct problem_pair *pair;
	bool recomputable; /* may run more than once; false for updates */
	bool optional;     /* may never run */
	bool waits;        /* for what the ops before it have begun, and that goes on by itself */
	int repeats;       /* 1 + the op that this one runs again for the backward pass, because
			      the user insists (planner/problem/insist.h); 0: none */
	int offloads;      /* 1 + the tensor that this op copies to the host's memory: its input */
	int fetches;       /* 1 + the tensor that this op copies back: its output; 0: none
			      (planner/problem/transfer.h) */
	int64_t from_disk, to_disk; /* bytes a step that it brings from a file or takes there, and
				       computes nothing; 0: none */
	int64_t from_ranks;         /* the same from other processes */
	const struct problem_loop *loop; /* NULL: it is none */
	int when; /* 1 + the tensor, an input in all ways, that says in each step whether
		     this op runs or is passed over; 0: it runs. To a plan it runs */
};

struct problem {
	const char *name;
	const char *costs; /* where the costs come from, in words; NULL: not said */
	int ntensor, nop;
	struct problem_tensor *tensor;
	struct problem_op *op; /* in a valid order */
};

static inline bool tensor_kind_resident(enum tensor_kind k)
{
	return k == TK_INPUT || k == TK_PARAMETER || k == TK_STATE;
}

/* Moves a tensor to the host or back, and computes nothing. */
static inline bool problem_op_transfers(const struct problem_op *op)
{
	return op->offloads || op->fetches;
}

/* The same, or between memory and a file, or other processes: an op as others are, to a plan. */
static inline bool problem_op_moves(const struct problem_op *op)
{
	return problem_op_transfers(op) || op->from_disk || op->to_disk || op->from_ranks;
}

/* The tensor of which `t` is made again by an op that repeats another; `t` itself as a rule. */
int problem_original(const struct problem *p, int t);
/* Cost of every op once that must run: without those that repeat another. */
double problem_one_pass(const struct problem *p);

/* Everything a hand-made or parsed problem must satisfy: ids unique, indices in range, one producer
 * per non-resident, none for residents, valid order, costs finite and ≥ 0, bytes ≥ 0 with a checked
 * sum, pairs naming an input and an output of their op with bytes(out) ≤ bytes(in), residents only
 * overwritten by updates, transfers as planner/problem/transfer.h makes them. Reports every fault
 * found; ST_INVALID. `file` is for the messages. */
enum status problem_validate(const struct problem *p, const char *file, struct diag *d);

/* stint-graph-1. Objects live in `a`. */
enum status problem_parse(struct arena *a, const char *text, size_t len, const char *file,
	struct problem **out, struct diag *d);
enum status problem_read(struct arena *a, const char *path, struct problem **out, struct diag *d);
void problem_print(const struct problem *p, struct text *out);

#endif
