/* An update for every parameter. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

static enum dtype state_type(const struct op_state *s, const struct update_of *u)
{
	return s->shape == STATE_CODES                            ? DT_U8
	       : dtype_is_narrow(u->state) && op_state_narrows(s) ? u->state
								  : u->param->dtype;
}

/* The shape of a state of x. */
static int state_dims(const struct op_state *s, const struct tensor *x, int64_t *dim)
{
	memcpy(dim, x->dim, sizeof x->dim);
	if (s->shape == STATE_ROWS)
		dim[x->rank - 1] = 1;
	else if (s->shape == STATE_COLUMNS)
		dim[x->rank - 2] = 1;
	else if (s->shape == STATE_SCALES)
		dim[0] = x->numel / OP_STATE_BLOCK + (x->numel % OP_STATE_BLOCK != 0);
	return s->shape == STATE_NUMBER ? 0 : s->shape == STATE_SCALES ? 1 : x->rank;
}

enum status graph_update(
	struct graph *g, const struct op_def *op, const struct update_of *u, struct node **n)
{
	struct tensor *in[4 + OP_STATES];
	const struct tensor *param = u->param;
	const struct node given = {.op = op, .nattr = u->nattr, .attr = u->attr};
	struct op_state state[OP_STATES];
	int nstate = 0;
	for (const struct op_state *s = op->optimizer->state; s->name; s++)
		if (node_has_state(&given, s))
			state[nstate++] = *s;
	if (u->averaged)
		state[nstate++] = (struct op_state){.name = OP_AVERAGE, .exact = true};
	memcpy(in, u->read, sizeof u->read);
	for (int k = 0; k < nstate; k++) {
		int64_t dim[RANK_MAX];
		const int rank = state_dims(&state[k], u->read[0], dim);
		const enum dtype type = state_type(&state[k], u);
		const char *name = arena_printf(
			g->arena, "state/%s/%s", state[k].name, param->name);
		in[4 + k] = name ? graph_tensor(g, name, type, rank, dim) : NULL;
		if (!in[4 + k])
			return name ? g->failed : diag_nomem(g->diag);
		in[4 + k]->role = TR_STATE;
		if (u->read[0] != param && state[k].shape != STATE_NUMBER)
			in[4 + k]->piece_of = param;
	}
	return graph_node(
		g, op->name, param->name, 4 + nstate, in, 1 + nstate, u->nattr, u->attr, NULL, n);
}

/* What updates a parameter, read[0]. */
static enum status attach_update(
	struct graph *g, const struct optimizer_spec *spec, const struct update_of *u)
{
	struct node *n;
	return spec->op->optimizer->build ? spec->op->optimizer->build(g, spec->op, u)
					  : graph_update(g, spec->op, u, &n);
}

/* The same of this process's piece, from a gradient that is whole or, scattered, its piece. */
static enum status attach_piece(
	struct graph *g, const struct optimizer_spec *spec, const struct update_of *whole)
{
	struct update_of u = *whole;
	struct node *n;
	if (!graph_scatters(g, spec))
		u.read[1] = graph_own_piece(g, u.read[1], NULL);
	u.read[0] = u.read[1] ? graph_own_piece(g, u.read[0], u.read[1]) : NULL;
	if (!u.read[0])
		return g->failed;
	TRY(graph_update(g, spec->op, &u, &n));
	return graph_gather_pieces(g, whole->read[0], n->out[0]) ? ST_OK : g->failed;
}

/* --- What depends on all gradients: nothing is updated before the last is there, and the plan pays
 * for holding them. --- */

/* Behind `n` others in `list`; how many there are then. */
static int list_gradients(int n, struct tensor **list, int nparam, struct tensor *const *grad)
{
	for (int i = 0; i < nparam; i++)
		if (grad[i])
			list[n++] = grad[i];
	return n;
}

static enum status multiply(
	struct graph *g, int nparam, struct tensor **grad, struct tensor *factor)
{
	const char *mul = op_by_role(g->table, ROLE_MUL)->name;
	for (int i = 0; i < nparam; i++)
		grad[i] = grad[i] ? OP2(g, mul, grad[i], factor) : NULL;
	return g->failed;
}

static enum status clamp(struct graph *g, double most, int nparam, struct tensor **grad)
{
	const struct attr attr[] = {ATTR_F("min", -most), ATTR_F("max", most)};
	g->scope = "clip-value";
	for (int i = 0; i < nparam; i++)
		grad[i] = grad[i] ? graph_op(g, op_by_role(g->table, ROLE_CLAMP)->name, 1, &grad[i],
					    2, attr)
				  : NULL;
	return g->failed;
}

static enum status clip(struct graph *g, double max_norm, int nparam, struct tensor **grad)
{
	const struct attr attr = ATTR_F("max_norm", max_norm);
	struct tensor **in = ARENA_ARRAY(g->arena, struct tensor *, nparam);
	if (!in)
		return diag_nomem(g->diag);
	g->scope = "clip-norm";
	struct tensor *scale = graph_op(g, op_by_role(g->table, ROLE_CLIP_SCALE)->name,
		list_gradients(0, in, nparam, grad), in, 1, &attr);
	return multiply(g, nparam, grad, scale);
}

enum status graph_scale_loss(struct graph *g)
{
	const int64_t numbers = 3;
	g->loss_scale = graph_tensor(g, "state/loss_scale", g->real, 1, &numbers);
	if (!g->loss_scale)
		return g->failed;
	g->loss_scale->role = TR_STATE;
	return ST_OK;
}

/* Divide the loss's scale out; *control: what the updates are to read. */
static enum status unscale(
	struct graph *g, int nparam, struct tensor **grad, struct tensor **control)
{
	struct tensor **in = ARENA_ARRAY(g->arena, struct tensor *, 2 + nparam);
	if (!in)
		return diag_nomem(g->diag);
	in[0] = g->loss_scale;
	in[1] = graph_control(g);
	g->scope = "loss-scale";
	*control = graph_op(g, op_by_role(g->table, ROLE_LOSS_SCALE_CHECK)->name,
		list_gradients(2, in, nparam, grad), in, 0, NULL);
	return multiply(g, nparam, grad, g->loss_unscale);
}

/* --- Updates --- */

/* Before which of the first `nplain` nodes each late one is to stand: its first reader, or the one
 * before which that stands; nplain: none reads it. */
static void late_places(const struct graph *g, int nplain, int *reader, int *place)
{
	for (int i = 0; i < g->ntensor; i++)
		reader[i] = nplain;
	for (int i = nplain - 1; i >= 0; i--) {
		const struct node *n = g->node[i];
		place[i] = n->late ? nplain : i;
		for (int k = 0; n->late && k < n->nout; k++)
			if (n->out[k] && reader[n->out[k]->id] < place[i])
				place[i] = reader[n->out[k]->id];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && place[i] < reader[n->in[k]->id])
				reader[n->in[k]->id] = place[i];
	}
}

/* Late ones of the first `nplain` nodes to their places, in their order; all others stay in
 * theirs. */
static enum status delay(struct graph *g, int nplain)
{
	int *reader = ARENA_ARRAY(g->arena, int, g->ntensor);
	int *place = ARENA_ARRAY(g->arena, int, g->nnode);
	if (!reader || !place)
		return diag_nomem(g->diag);
	late_places(g, nplain, reader, place);
	/* those that are late stand before the node of their place */
	for (int i = 0; i < g->nnode; i++)
		place[i] = i < nplain ? 2 * place[i] + !g->node[i]->late : 2 * nplain + 1;
	return graph_sort(g, 2 * nplain + 2, place);
}

/* Where update `u` may stand: behind every node that reads its parameter and the one that makes its
 * gradient. */
static void update_slots(const struct graph *g, int nplain, int *slot)
{
	for (int i = 0; i < nplain; i++) {
		const struct node *n = g->node[i];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k])
				slot[tensor_storage(n->in[k])->id] = i;
	}
}

/* By node at the end, the plain one that it shall stand behind: what makes all that it reads, as
 * its gradient (or what that is a piece or a view of), and the last that reads what it overwrites.
 */
static enum status find_slots(struct graph *g, int nplain, int *slot)
{
	int *last_read = ARENA_ARRAY(g->arena, int, g->ntensor);
	if (!last_read)
		return diag_nomem(g->diag);
	update_slots(g, nplain, last_read);
	for (int i = nplain; i < g->nnode; i++) {
		const struct node *u = g->node[i];
		slot[i] = last_read[u->in[0]->id];
		for (int k = 0; k < 2 * u->nin; k++) {
			struct tensor *x = u->in[k / 2];
			const struct node *made = (k % 2 ? tensor_storage(x) : x)->maker;
			const int id = made ? made->id : 0;
			const int at = id < nplain ? id : slot[id];
			slot[i] = at > slot[i] ? at : slot[i];
		}
	}
	return ST_OK;
}

/* Move each update from the end to just behind its gradient and the parameter's last reader, so
 * that the listed order is already a good one. */
static enum status interleave(struct graph *g, int nplain)
{
	int *slot = ARENA_ARRAY(g->arena, int, g->nnode);
	if (!slot)
		return diag_nomem(g->diag);
	TRY(find_slots(g, nplain, slot));
	for (int i = 0; i < nplain; i++)
		slot[i] = i;
	return graph_sort(g, nplain + 1, slot);
}

enum status graph_attach_updates(struct graph *g, const struct optimizer_spec *spec, int nparam,
	struct tensor *const *param, struct tensor *const *grad)
{
	struct tensor **final = arena_memdup(g->arena, grad, (size_t)nparam, sizeof(*final));
	struct tensor *control = graph_control(g),
		      **lr = ARENA_ARRAY(g->arena, struct tensor *, nparam);
	struct param_options *option = ARENA_ARRAY(g->arena, struct param_options, nparam);
	if (!final || !control || !lr || !option)
		return diag_nomem(g->diag);
	TRY(groups_check(g, spec, nparam, param, grad));
	for (int i = 0; i < nparam; i++)
		TRY(param_options_of(g, spec, param[i], &option[i]));
	g->phase = NODE_BACKWARD;
	TRY(param_rates(g, nparam, option, lr));
	g->last = g->shards_differ;
	if (g->loss_scale)
		TRY(unscale(g, nparam, final, &control));
	if (spec->clip_value > 0)
		TRY(clamp(g, spec->clip_value, nparam, final));
	if (spec->clip_norm > 0)
		TRY(clip(g, spec->clip_norm, nparam, final));
	g->phase = NODE_UPDATE;
	const int before = g->nnode;
	for (int i = 0; i < nparam; i++) {
		if (!final[i])
			continue;
		const struct update_of u = {.param = param[i],
			.read = {param[i], final[i], lr[i], control},
			.state = spec->state,
			.averaged = option[i].averaged,
			.nattr = option[i].nattr,
			.attr = option[i].attr};
		g->scope = param[i]->name;
		TRY(g->pieces ? attach_piece(g, spec, &u) : attach_update(g, spec, &u));
	}
	if (g->loss_scale) {
		g->scope = "loss-scale";
		OP2(g, op_by_role(g->table, ROLE_LOSS_SCALE_UPDATE)->name, g->loss_scale, control);
		TRY(g->failed);
	}
	const int nupdate = g->nnode - before;
	g->phase = NODE_FORWARD;
	g->last = false;
	g->scope = NULL;
	TRY(graph_prune(g));
	TRY(delay(g, g->nnode - nupdate));
	TRY(interleave(g, g->nnode - nupdate));
	TRY(graph_order(g));
	return graph_verify(g);
}
