/* The passes over a graph, in the order the pipeline calls them. Each says what it requires and
 * what it leaves behind; graph_verify holds between any two. */
#ifndef STINT_GRAPH_PASS_H
#define STINT_GRAPH_PASS_H

#include "graph/lowering.h"
#include "graph/op.h"
#include "graph/op_loss.h"
#include "graph/op_optimizer.h"

/* Every input of a node was made before it, or is overwritten by no update before it; shapes and
 * types are set, ids match. A breach is our bug: ST_INTERNAL. */
enum status graph_verify(const struct graph *g);

/* Requires all of that but that updates come late enough. They, and nodes that read what they make,
 * are put off until the last other reader of what they overwrite has run; a list that is right
 * stays as it is. */
enum status graph_order(struct graph *g);

/* Requires an imported graph. Produces a new graph in *out: spelled-out composites recognised,
 * nodes lowered for training or evaluation, nodes that reach no output gone. Inputs and parameters
 * stay in the same order in both modes, so that residents agree. */
enum status graph_lower(const struct graph *in, const struct lower_options *o, struct graph **out);

/* A loss as written on the command line, parsed. */
struct loss_spec {
	const char *text;        /* as it was written */
	const char *name;        /* what it is told by */
	const char *target;      /* what its target is called; NULL: that of the only loss */
	const char *against;     /* the output that it is compared with instead; NULL: none */
	bool attached;           /* the gradient passes there, too */
	const char *parameter;   /* a penalty of those, by a shell's pattern; NULL: of outputs */
	double weight;           /* that it is summed with */
	const struct op_def *op; /* NULL: the model's own, or */
	bool outside;            /* computed by who calls the step, from these outputs */
	/* Which outputs it reads, or is; ended by NULL. NULL: all that there are. */
	const char *const *output;
	int nattr;
	const struct attr *attr;
};
/* Those whose sum is trained. None: forward only. */
struct loss_list {
	int n;
	const struct loss_spec *item;
};
/* Parameters whose options are others than the optimizer's: those of a name. */
struct param_group {
	const char *text;    /* as it was written */
	const char *pattern; /* for a shell; NULL: all of at most one axis */
	double rate;         /* times the step's learning rate; NAN: as it is */
	int nattr;
	const struct attr *attr;
};
struct optimizer_spec {
	const struct op_def *op;
	double lr; /* the command line's, or PyTorch's default */
	/* Above 0: every gradient's elements are held between this and its negative; then all
	 * gradients are scaled so that their global norm is at most clip_norm. */
	double clip_value, clip_norm;
	double ema; /* above 0: parameters' averages over the steps are kept, with this decay */
	enum dtype state; /* what its states are stored in; DT_F32: as parameters are */
	int nattr;
	const struct attr *attr;
	int ngroup; /* all that match hold, option by option: the later one's where two do */
	const struct param_group *group;
};
/* `text`, ended by NULL: each --loss that was given, or "none" alone. */
enum status losses_parse(struct arena *a, const struct op_table *t, const char *const *text,
	struct loss_list *out, struct diag *d);
enum status optimizer_parse(struct arena *a, const struct op_table *t, const char *text,
	struct optimizer_spec *out, struct diag *d);

/* "PATTERN:lr=0.1x,weight_decay=0", of an optimizer that is parsed. */
enum status group_parse(struct arena *a, const struct optimizer_spec *o, const char *text,
	struct param_group *out, struct diag *d);
/* No weight decay for parameters of at most one axis. */
enum status group_no_decay(
	struct arena *a, const struct optimizer_spec *o, struct param_group *out, struct diag *d);

/* The outputs of a model that its loss reads, *n of them, the one that it is compared with last. */
enum status graph_loss_outputs(const struct graph *g, const struct loss_spec *spec, int *n,
	struct tensor *out[LOSS_OUTPUTS]);

/* What makes an output's values, views apart: it may say which loss that is made for. NULL: nothing
 * does. */
const struct node *loss_maker(const struct tensor *t);
/* Say so where the model's output is what a loss makes of it: probabilities, for cross-entropy.
 * Requires a lowered graph. */
void graph_warn_of_losses(const struct graph *g, const struct loss_list *losses);
/* Requires a lowered graph. Sets g->loss and g->term and adds inputs, the losses' targets: one for
 * all that name the same. Without losses there is a step all the same. */
enum status graph_attach_losses(struct graph *g, const struct loss_list *losses);

/* Requires g->loss, no backward pass yet. Records make in chunks what is large (op.h, `chunk`);
 * outputs of the model that nothing makes whole any more become NULL; a new graph in *out. The
 * chunks' nodes run late, each chunk's backward pass right after its forward pass. */
enum status graph_chunk(const struct graph *in, struct graph **out);

/* Dynamic loss scaling from here on: the loss's gradient is a scale kept as state, and where a
 * gradient is not finite the updates change nothing. */
enum status graph_scale_loss(struct graph *g);

/* Gradients of some tensors by others: those of `from` are given, as sums so far where a tensor
 * stands there more than once; those of `to` are found (NULL: nothing reaches it). Gradients that
 * meet are added in the order of the graph. */
struct gradients_of {
	int nfrom, nto;
	struct tensor *const *from, *const *given;
	struct tensor *const *to;
	struct tensor **found; /* [nto] */
};
/* Adds the nodes of a backward pass. Reports operators without a gradient that lie between. */
enum status graph_gradients(struct graph *g, const struct gradients_of *of);

/* Inputs by which gradients are kept for the caller. */
struct kept_inputs {
	int n;
	struct tensor **input; /* what the caller sets */
	struct tensor **rows;  /* the same, or a micro-batch's part of it */
};
/* Those of these names (ended by NULL; NULL: none), each once. Requires inputs and shards to be
 * there; reports what is no input, or none of real numbers. */
enum status kept_inputs_find(struct graph *g, const char *const *name, struct kept_inputs *out);
/* Requires graph_autodiff, which found these gradients. */
enum status kept_inputs_keep(
	struct graph *g, const struct kept_inputs *of, struct tensor *const *gradient);

/* Requires g->loss. Adds the backward pass; grad[i] is the gradient of parameter i in the order of
 * graph_parameters, times the loss's scale where there is one (NULL when the loss does not depend
 * on it); behind them are those of `inputs` (NULL: none), which *nparam does not count. Gradients
 * that meet are added in the order of the graph. Reports operators without a gradient on a path to
 * a parameter; `hint` is what may help where the loss depends on none. */
enum status graph_autodiff(struct graph *g, const char *hint, const struct kept_inputs *inputs,
	int *nparam, struct tensor ***param, struct tensor ***grad);

/* By tensor id: whether a gradient of the graph's outputs can pass back to it. NULL when out of
 * memory. */
bool *graph_ways_back(const struct graph *g);

/* With what a parameter is updated. */
struct param_options {
	double rate; /* times the step's learning rate */
	bool averaged;
	int nattr;
	const struct attr *attr;
};
/* By the groups. */
enum status param_options_of(struct graph *g, const struct optimizer_spec *spec,
	const struct tensor *param, struct param_options *out);
/* Each parameter's learning rate. Multiples of the step's are made before all else: an update waits
 * for none. */
enum status param_rates(
	struct graph *g, int nparam, const struct param_options *option, struct tensor **lr);
/* Reports a pattern, of `option`, that none of these n names fits. */
enum status no_parameter_fits(
	struct graph *g, const char *option, const char *pattern, int n, const char *const *name);
/* Reports a group of a name that none of the parameters has (skipped: where `given` is NULL). */
enum status groups_check(struct graph *g, const struct optimizer_spec *spec, int nparam,
	struct tensor *const *param, struct tensor *const *given);

enum { SHARDS_MAX = 1024 };

/* Requires an imported graph of one micro-batch of `rows` rows, --batch having made it so. Inputs
 * of so many rows become those of the whole batch, `shards` times as many, of which a shard's are
 * copied; for the evaluation (not `train`), the first's. A new graph in *out. */
enum status graph_shard(
	const struct graph *in, int64_t shards, int64_t rows, bool train, struct graph **out);
/* Makes of x, an input of one shard, that of the whole batch; the shard's rows of it. */
struct tensor *graph_shard_of(struct graph *g, struct tensor *x);
/* So many processes will train, and no others; with `pieces` each has a piece of what `optimizer`
 * keeps, which must be one by elements, or is refused. Before graph_accumulate. */
enum status graph_set_ranks(
	struct graph *g, int64_t ranks, bool pieces, const struct optimizer_spec *optimizer);
/* Requires graph_autodiff. Where shards differ, gradients and loss become their sums over all
 * shards, which are there in the last; gradients, where nothing asks for more, this process's
 * pieces of them. */
enum status graph_accumulate(struct graph *g, const struct optimizer_spec *spec, int nparam,
	struct tensor *const *param, struct tensor **grad);
/* In the last shard, rows [first, first + count) of those that ROLE_KEEP_ROWS keeps. */
struct tensor *graph_take_rows(struct graph *g, struct tensor *rows, int64_t first, int64_t count);
/* Of x, in any pass, where as many processes as there are shards have one each: the rows of all x,
 * one behind the other. NULL: failed. */
struct tensor *graph_share_row(struct graph *g, struct tensor *x);
/* Of x, a vector that each shard has: one row of each, all there in the last. `name`: of the
 * model's tensor that it is for. NULL: failed. */
struct tensor *graph_every_shard(struct graph *g, const char *name, struct tensor *x);

/* One update node per parameter with a gradient; returns the graph's steps' end. */
enum status graph_attach_updates(struct graph *g, const struct optimizer_spec *spec, int nparam,
	struct tensor *const *param, struct tensor *const *grad);

/* Tensors between convolutions stand in blocks of `block` channels, or with all channels last
 * (BLOCK_ALL), where records can (op.h); `everywhere`, for tests: wherever a record knows how.
 * Requires all nodes; a new graph in *out. */
enum status graph_layout(
	const struct graph *in, int64_t block, bool everywhere, struct graph **out);

/* Frozen weights that products read, or rows are taken of, are stored so from here on, and those
 * that the file has in small numbers are in these: graph/frozen.c. Requires real tensors to be F32
 * and layouts to be settled; a new graph in *out. */
enum store { STORE_AS_IS, STORE_BF16, STORE_F16, STORE_INT8, STORE_NF4, STORE_NF4_DOUBLE };
enum status graph_store_frozen(const struct graph *in, enum store store, struct graph **out);
/* The file has some. */
bool graph_has_stored(const struct graph *g);

/* Values that the backward pass reads are stored in `type` (DT_BF16, DT_F16), a weight is rounded
 * to it for its products: what exactly is said in graph/narrow.c. Requires real tensors to be F32
 * and layouts to be settled; a new graph in *out. */
enum narrow_flag {
	NARROW_OUTPUTS = 1, /* the model's outputs too */
	/* For tests: wherever a record knows how; and the same values without that knowledge, each
	 * rounded where it would be stored. */
	NARROW_EVERYWHERE = 2,
	NARROW_CONVERT = 4
};
enum status graph_narrow(
	const struct graph *in, enum dtype type, unsigned flags, struct graph **out);

/* Parameters, weights that are not trained and optimizer states of g->target->away bytes or more
 * are tensors in a file from here on (graph/away.c): each is fetched before it is read and stored
 * when it was updated. Requires all nodes but for their ways; a new graph in *out. */
enum status graph_put_away(const struct graph *in, struct graph **out);

/* Parameters, and weights that are not trained, of `least` bytes or more are this process's pieces
 * from here on (graph/parameter_pieces.c): who reads one fetches those of all before. For exactly
 * g->ranks processes; requires all nodes but for their ways; a new graph in *out. */
enum status graph_share_parameters(const struct graph *in, int64_t least, struct graph **out);

/* Sets every node's ways by the target's `math`. */
void graph_choose(struct graph *g, enum math math);

/* Nodes that neither reach an output, the loss nor an update are removed; ids renumbered. */
enum status graph_prune(struct graph *g);

/* Requires values in the types that they are stored in. Additions that a node before them can do by
 * itself are gone into that node. */
enum status graph_add_inside(struct graph *g);

/* Requires updates to be in their places, where there are any. Pointwise nodes become one where
 * that costs no memory: an intermediate value is then made in the loop of whoever reads it, with
 * the same bits, and never stored. What is fused is said in graph/fuse.c. */
enum status graph_fuse(struct graph *g);
/* never[ntensor], all false: values that all who read them would make so. g stays as it is. */
enum status graph_never_stored(struct graph *g, bool *never);

/* What the backward pass reads of branches of which one runs lies in the same bytes
 * (graph/either.c). Requires a graph that is complete but for which way each node is computed. */
enum status graph_keep_either(struct graph *g);

/* Every TR_CONSTANT is named after its contents: "constant/0123456789abcdef". */
enum status graph_name_constants(struct graph *g);

/* The graph as text, for --dump-after. */
void graph_print(const struct graph *g, struct text *out);

#endif
