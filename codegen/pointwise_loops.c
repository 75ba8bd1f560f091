/* The loop nest of an OP_POINTWISE node, made from its one expression, or from those of the nodes
 * fused into it: each is a stage, and a node by itself is the group of one.
 *
 * Axes along which every input either advances like one array or stays put are merged first, as
 * NumPy's coalescing does: equal shapes become one flat loop, a bias over [N, C, H, W] becomes
 * three, and the innermost loop is as long as the shapes allow, so that it vectorises.
 *
 * In CUDA a turn is a pack of neighbours along that loop, where all that is read and written lies
 * in whole packs: one access to memory for each, instead of one for each element. */
#include "codegen/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"
#include "graph/expr.h"
#include "graph/fused.h"

struct nest {
	int rank;
	int64_t pack; /* elements of a turn of the innermost loop; 1 in C */
	int64_t dim[RANK_MAX];
	int64_t out[RANK_MAX]; /* distance between neighbours of the output, in elements */
	int64_t in[FUSED_INPUTS][RANK_MAX]; /* of each input; 0: the same element again */
};

static void strides_of(const struct tensor *x, const struct tensor *out, int64_t *stride)
{
	int64_t step = 1;
	for (int i = out->rank - 1, k = x->rank - 1; i >= 0; i--, k--) {
		stride[i] = k < 0 || x->dim[k] == 1 ? 0 : step;
		step *= k < 0 ? 1 : x->dim[k];
	}
}

/* Axis `inner` goes on where the axis before it, `outer`, leaves off: in the output and in every
 * input. */
static bool merges(const struct nest *n, int nin, int outer, const int64_t *inner_in, int64_t dim)
{
	for (int i = 0; i < nin; i++)
		if (n->in[i][outer] != inner_in[i] * dim)
			return false;
	return true;
}

static struct nest coalesce(const struct node *n)
{
	const struct tensor *out = n->out[0];
	int64_t stride[FUSED_INPUTS][RANK_MAX] = {0}, out_stride[RANK_MAX];
	struct nest nest = {.pack = 1};
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			strides_of(n->in[i], out, stride[i]);
	strides_of(out, out, out_stride);
	for (int d = 0; d < out->rank; d++) {
		if (out->dim[d] == 1)
			continue;
		int64_t in[FUSED_INPUTS];
		for (int i = 0; i < n->nin; i++)
			in[i] = stride[i][d];
		bool merge = nest.rank > 0 && merges(&nest, n->nin, nest.rank - 1, in, out->dim[d]);
		int to = merge ? nest.rank - 1 : nest.rank++;
		nest.dim[to] = (merge ? nest.dim[to] : 1) * out->dim[d];
		nest.out[to] = out_stride[d];
		for (int i = 0; i < n->nin; i++)
			nest.in[i][to] = in[i];
	}
	return nest;
}

static void index_name(const struct nest *nest, int d, char name[static 16])
{
	if (nest->rank == 1)
		strcpy(name, "i");
	else
		snprintf(name, 16, "i%d", d);
}

/* Small numbers stay in the text, for the compiler to see: strides up to here, and innermost loops
 * below this. */
enum { SMALL = 16, SHORT_LOOP = 256 };

static void emit_stride(struct emit *e, int64_t stride)
{
	if (stride > SMALL)
		emit_size(e, stride);
	else
		emit(e, "%" PRId64, stride);
}

static void emit_index(struct emit *e, const struct nest *nest, const int64_t *stride)
{
	const char *plus = "";
	char name[16];
	for (int d = 0; d < nest->rank; d++) {
		if (stride[d] == 0)
			continue;
		index_name(nest, d, name);
		emit(e, "%s%s", plus, name);
		if (stride[d] != 1) {
			emit(e, " * ");
			emit_stride(e, stride[d]);
		}
		plus = " + ";
	}
	if (!*plus)
		emit(e, "0");
}

static bool stays_put(const struct nest *nest, int input)
{
	for (int d = 0; d < nest->rank; d++)
		if (nest->in[input][d] != 0)
			return false;
	return true;
}

static const char TABS[] = "\t\t\t\t\t\t\t\t\t\t";

/* --- Stages --- */

struct stages {
	const struct node *n;
	int nstage;
	const struct fused_stage *stage;
	struct expr tree[FUSED_STAGES];
	bool alone; /* a node that is not fused: its inputs are called a, b, ... */
	bool live[FUSED_STAGES], used[FUSED_INPUTS];
};

static enum status parse_stages(const struct emit *e, struct stages *x)
{
	for (int q = 0; q < x->nstage; q++) {
		const struct node *n = x->stage[q].node;
		struct expr *tree = &x->tree[q];
		if (!expr_parse(tree, node_expr(n), n->op->option))
			return diag_fail(e->g->diag, ST_INTERNAL,
				&(struct where){.node = x->n->name, .op = n->op->name}, NULL,
				"the record's expression is not understood at \"%s\": %s",
				tree->text + tree->at, tree->wrong);
	}
	return ST_OK;
}

static bool reads_operand(const struct stages *x, int q, int k)
{
	const struct node *n = x->stage[q].node;
	return k < n->nin && n->in[k] && expr_reads(&x->tree[q], EXPR_OPERAND, k);
}

/* Which stages and inputs the last stage comes to read. */
static void mark_used(struct stages *x)
{
	for (int q = 0; q < x->nstage; q++)
		x->live[q] = q == x->nstage - 1;
	for (int q = x->nstage - 1; q >= 0; q--)
		for (int k = 0; x->live[q] && k < POINTWISE_INPUTS; k++) {
			const struct fused_operand o = x->stage[q].in[k];
			if (!reads_operand(x, q, k))
				continue;
			if (fused_reads_slot(x->n, o))
				x->used[o.slot] = true;
			else if (o.stage >= 0)
				x->live[o.stage] = true;
		}
}

static void slot_name(const struct stages *x, int slot, char name[static 16])
{
	if (x->alone)
		snprintf(name, 16, "%c", 'a' + slot);
	else
		snprintf(name, 16, "v%d", slot);
}

static void emit_expr(struct emit *e, const struct stages *x, int q)
{
	struct expr_names as = {0};
	for (int k = 0; k < POINTWISE_INPUTS; k++) {
		const struct fused_operand o = x->stage[q].in[k];
		if (!reads_operand(x, q, k))
			continue;
		if (fused_reads_slot(x->n, o))
			slot_name(x, o.slot, as.operand[k]);
		else
			snprintf(as.operand[k], sizeof as.operand[k], "t%d", o.stage);
	}
	if (!x->alone)
		snprintf(as.behind_option, sizeof as.behind_option, "_%d", q);
	as.near = e->g->target->cuda && dtype_is_narrow(x->stage[q].node->out[0]->dtype);
	expr_print(&x->tree[q], &as, &e->out);
}

static void emit_options(struct emit *e, const struct stages *x)
{
	for (int q = 0; q < x->nstage; q++) {
		const struct node *n = x->stage[q].node;
		const struct op_option *o = n->op->option;
		for (int i = 0; x->live[q] && o && o->name; i++, o++) {
			if (!expr_reads(&x->tree[q], EXPR_OPTION, i))
				continue;
			emit(e, "\tconst real %s", o->name);
			if (!x->alone)
				emit(e, "_%d", q);
			emit(e, " = ");
			emit_number(e, node_option(n, o->name));
			emit(e, ";\n");
		}
	}
}

/* Where an input is read: before the loops, in each turn, or for each element of a turn's pack. */
enum reading { ALWAYS_SAME, EACH_TURN, EACH_ELEMENT };

static enum reading reading_of(const struct nest *nest, int input)
{
	if (stays_put(nest, input))
		return ALWAYS_SAME;
	return nest->pack > 1 && nest->in[input][nest->rank - 1] != 0 ? EACH_ELEMENT : EACH_TURN;
}

/* "const real a = x0[i];" for the inputs that are read there; "p0.of[k]" of a pack. */
static void emit_inputs(struct emit *e, const struct stages *x, const struct nest *nest,
	enum reading where, int tabs)
{
	for (int i = 0; i < x->n->nin; i++) {
		char name[16];
		if (!x->used[i] || reading_of(nest, i) != where)
			continue;
		slot_name(x, i, name);
		const bool narrow = dtype_is_narrow(x->n->in[i]->dtype);
		emit(e, "%.*sconst %s %s = %s", tabs, TABS, emit_value_type(x->n->in[i]), name,
			narrow ? "WIDE(" : "");
		if (where == EACH_ELEMENT) {
			emit(e, "p%d.of[k", i);
		} else {
			emit_input(e, i);
			emit(e, "[");
			emit_index(e, nest, nest->in[i]);
		}
		emit(e, narrow ? "]);\n" : "];\n");
	}
}

static void emit_comment(struct emit *e, const struct stages *x, int q)
{
	const char *name = x->stage[q].node->op->name;
	if (!x->alone)
		emit(e, " /* %s */", !strncmp(name, "stint.", 6) ? name + 6 : name);
}

static void emit_stages(struct emit *e, const struct stages *x, const struct nest *nest, int tabs)
{
	const int last = x->nstage - 1;
	for (int q = 0; q < last; q++) {
		if (!x->live[q])
			continue;
		const struct tensor *t = x->stage[q].node->out[0];
		const bool narrow = dtype_is_narrow(t->dtype); /* the stored one's bits */
		emit(e, "%.*sconst %s t%d = %s", tabs, TABS, emit_value_type(t), q,
			narrow ? "WIDE(NARROW(" : "");
		emit_expr(e, x, q);
		emit(e, narrow ? "));" : ";");
		emit_comment(e, x, q);
		emit(e, "\n");
	}
	emit(e, nest->pack > 1 ? "%.*spacked.of[k" : "%.*sy0[", tabs, TABS);
	if (nest->pack == 1)
		emit_index(e, nest, nest->out);
	const bool narrow = dtype_is_narrow(x->n->out[0]->dtype);
	emit(e, narrow ? "] = NARROW(" : "] = ");
	emit_expr(e, x, last);
	emit(e, narrow ? ");" : ";");
	emit_comment(e, x, last);
	emit(e, "\n");
}

/* --- Packs --- */

/* Bytes of one access; elements of a pack and bytes of all of a turn's, in registers, at most; and
 * turns at least: one block's. */
enum { ACCESS = 16, PACK_MOST = 8, TURN_BYTES = 192, LEAST_TURNS = 256 };

/* Whether turns are whole packs of n. Then packs are aligned as well: tensors begin at multiples of
 * 256 bytes, and all that moves along the innermost loop moves by whole numbers of it along others.
 */
static bool packs_fit(const struct stages *x, const struct nest *nest, int64_t n)
{
	const int last = nest->rank - 1;
	int64_t bytes = n * dtype_bytes(x->n->out[0]->dtype);
	for (int i = 0; i < x->n->nin; i++)
		if (x->used[i] && nest->in[i][last] != 0)
			bytes += n * dtype_bytes(x->n->in[i]->dtype);
	return nest->dim[last] % n == 0 && x->n->out[0]->numel / n >= LEAST_TURNS &&
	       bytes <= TURN_BYTES;
}

static int64_t pack_of(const struct emit *e, const struct stages *x, const struct nest *nest)
{
	int64_t least = dtype_bytes(x->n->out[0]->dtype);
	if (!e->g->target->cuda || nest->rank == 0)
		return 1;
	for (int i = 0; i < x->n->nin; i++)
		if (x->used[i] && nest->in[i][nest->rank - 1] != 0 &&
			dtype_bytes(x->n->in[i]->dtype) < least)
			least = dtype_bytes(x->n->in[i]->dtype);
	int64_t n = ACCESS / least < PACK_MOST ? ACCESS / least : PACK_MOST;
	while (n > 1 && !packs_fit(x, nest, n))
		n /= 2;
	return n;
}

/* A turn's body over a pack: all loads, the elements, the store. */
static void emit_pack_turn(
	struct emit *e, const struct stages *x, const struct nest *nest, int tabs)
{
	const int n = (int)nest->pack;
	for (int i = 0; i < x->n->nin; i++) {
		if (!x->used[i] || reading_of(nest, i) != EACH_ELEMENT)
			continue;
		emit(e, "%.*sconst auto p%d = *(const pack<%s, %d> *)&", tabs, TABS, i,
			emit_type(x->n->in[i]), n);
		emit_input(e, i);
		emit(e, "[");
		emit_index(e, nest, nest->in[i]);
		emit(e, "];\n");
	}
	const char *type = emit_type(x->n->out[0]);
	emit(e, "%.*spack<%s, %d> packed;\n", tabs, TABS, type, n);
	emit(e, "%.*sUNROLL\n", tabs, TABS);
	emit(e, "%.*sfor (int k = 0; k < %d; k++) {\n", tabs, TABS, n);
	emit_inputs(e, x, nest, EACH_ELEMENT, tabs + 1);
	emit_stages(e, x, nest, tabs + 1);
	emit(e, "%.*s}\n", tabs, TABS);
	emit(e, "%.*s*(pack<%s, %d> *)&y0[", tabs, TABS, type, n);
	emit_index(e, nest, nest->out);
	emit(e, "] = packed;\n");
}

/* --- The loops --- */

/* The outer loops are shared among threads when there are enough of them, else the innermost. */
static int parallel_levels(const struct emit *e, const struct nest *nest)
{
	int64_t outer = 1;
	for (int d = 0; d + 1 < nest->rank; d++)
		outer *= nest->dim[d];
	return outer >= 4 * (int64_t)e->g->target->threads ? nest->rank - 1 : 0;
}

static int64_t turns_of(const struct nest *nest, int d)
{
	return nest->dim[d] / (d + 1 == nest->rank ? nest->pack : 1);
}

/* "for (int64_t i0 = 0; i0 < 12; i0++)" */
static void emit_head(struct emit *e, const struct nest *nest, int d)
{
	char i[16];
	index_name(nest, d, i);
	emit(e, "%.*sfor (int64_t %s = 0; %s < ", d + 1, TABS, i, i);
	if (d + 1 < nest->rank || nest->dim[d] >= SHORT_LOOP)
		emit_size(e, nest->dim[d]);
	else
		emit(e, "%" PRId64, nest->dim[d]);
	emit(e, "; %s++)", i);
}

/* OpenMP's words are macros of kernels/turns.h: PARALLEL_ where threads share the loop, EACH where
 * no turn reads what another writes and it is to be vectorised. */
static void emit_heads_c(struct emit *e, const struct nest *nest, double work)
{
	const int last = nest->rank - 1, levels = parallel_levels(e, nest);
	const bool shared = emit_is_shared(e, work);
	e->uses->threads |= shared;
	if (levels > 0 && shared)
		emit(e, "\tPARALLEL_FOR(%d)\n", levels);
	for (int d = 0; d < last; d++) {
		emit_head(e, nest, d);
		emit(e, "\n");
	}
	if (shared)
		emit(e, "%.*s%s\n", last + 1, TABS, levels > 0 ? "EACH" : "PARALLEL_EACH");
	emit_head(e, nest, last);
}

/* Where the index of axis d is at turn number `turn` of `turns`: "turn / 12 % 8 * 4". Where 32 bits
 * hold what they come to, a division of them is several times as fast. */
static void emit_turn(struct emit *e, const struct nest *nest, int d, int64_t turns, int64_t inner)
{
	const bool fits = turns <= INT32_MAX && nest->dim[d] <= INT32_MAX;
	emit(e, fits && (inner > 1 || d > 0) ? "(uint32_t)turn" : "turn");
	if (inner > 1)
		emit(e, " / %" PRId64, inner);
	if (d > 0)
		emit(e, " %% %" PRId64, turns_of(nest, d));
	if (d + 1 == nest->rank && nest->pack > 1)
		emit(e, " * %" PRId64, nest->pack);
}

static void emit_turns_end(struct emit *e, int64_t turns)
{
	if (turns >= SHORT_LOOP)
		emit_size(e, turns);
	else
		emit(e, "%" PRId64, turns);
}

/* "for (int64_t turn = THREAD, i0; turn < 96 && (i0 = (uint32_t)turn / 12, true); turn +=
 * THREADS)", and "ONCE(i1, (uint32_t)turn % 12)" inside: all threads share the turns of all loops.
 */
static void emit_heads_cuda(struct emit *e, const struct nest *nest)
{
	int64_t turns = 1;
	char i[16];
	for (int d = 0; d < nest->rank; d++)
		turns *= turns_of(nest, d);
	e->stage[0] = launch_of_turns(turns, false, 0);
	index_name(nest, 0, i);
	if (nest->rank == 1 && nest->pack == 1) {
		emit(e, "\tfor (int64_t %s = THREAD; %s < ", i, i);
		emit_turns_end(e, turns);
		emit(e, "; %s += THREADS)", i);
		return;
	}
	int64_t inner = turns / turns_of(nest, 0);
	emit(e, "\tfor (int64_t turn = THREAD, %s; turn < ", i);
	emit_turns_end(e, turns);
	emit(e, " && (%s = ", i);
	emit_turn(e, nest, 0, turns, inner);
	emit(e, ", true); turn += THREADS)");
	for (int d = 1; d < nest->rank; d++) {
		index_name(nest, d, i);
		inner /= turns_of(nest, d);
		emit(e, "\n%.*sONCE(%s, ", d + 1, TABS, i);
		emit_turn(e, nest, d, turns, inner);
		emit(e, ")");
	}
}

static void emit_nest(struct emit *e, const struct stages *x)
{
	struct nest nest = coalesce(x->n);
	if (e->g->target->cuda)
		e->stage[e->nstage++] = (struct launch_shape){.blocks = 1, .threads = 1};
	if (x->n->out[0]->numel == 0) {
		emit(e, "\t/* no elements */\n");
		e->uses->told = true;
		return;
	}
	use_output(e, 0);
	nest.pack = pack_of(e, x, &nest);
	double work = 0;
	for (int q = 0; q < x->nstage; q++)
		work += x->live[q] ? 1 + 20 * expr_slow_calls(&x->tree[q]) : 0;
	work *= (double)x->n->out[0]->numel;
	emit_options(e, x);
	if (nest.pack > 1)
		emit_source(e, "elements.cuh", 0, NULL);
	emit_inputs(e, x, &nest, ALWAYS_SAME, 1);
	if (nest.rank > 0) {
		if (e->g->target->cuda)
			emit_heads_cuda(e, &nest);
		else
			emit_heads_c(e, &nest, work);
		emit(e, " {\n");
	}
	emit_inputs(e, x, &nest, EACH_TURN, nest.rank + 1);
	if (nest.pack > 1)
		emit_pack_turn(e, x, &nest, nest.rank + 1);
	else
		emit_stages(e, x, &nest, nest.rank + 1);
	if (nest.rank > 0)
		emit(e, "%.*s}\n", nest.rank, TABS);
}

enum status emit_pointwise(struct emit *e, const struct node *n)
{
	const struct fused *f = node_fused(n);
	struct fused_stage self = {.node = n};
	for (int k = 0; k < POINTWISE_INPUTS; k++)
		self.in[k] = (struct fused_operand){k < n->nin ? k : -1, -1};
	struct stages x = {
		.n = n, .nstage = f ? f->nstage : 1, .stage = f ? f->stage : &self, .alone = !f};
	TRY(parse_stages(e, &x));
	mark_used(&x);
	emit_nest(e, &x);
	return e->out.failed ? diag_nomem(e->g->diag) : ST_OK;
}
