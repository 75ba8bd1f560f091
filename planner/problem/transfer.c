/* Transfers to the host and back as ops of a problem. */
#include "planner/problem/transfer.h"

#include <string.h>

/* A copy's start, and the events around it. */
static const double MICROSECONDS_PER_COPY = 10;
/* The part of a transfer that nothing hides. Copies run beside kernels; how much of them the step
 * waits for depends on what runs meanwhile, which a sum over ops does not know. All would be too
 * much: the step would be planned as if copies stopped it. None would be too little: nothing would
 * limit what a link has to move. */
static const double SHARE_WAITED_FOR = 1.0 / TRANSFER_TIMES_COST;

static double transfer_cost(int64_t bytes, double link)
{
	return SHARE_WAITED_FOR * (MICROSECONDS_PER_COPY + (double)bytes / link);
}

/* By tensor: an op of the backward pass reads it, in one of its ways. */
static bool *find_read(struct arena *a, const struct problem *p)
{
	bool *read = ARENA_ARRAY(a, bool, p->ntensor + 1);
	for (int o = 0; read && o < p->nop; o++)
		for (int c = 0; p->op[o].phase == PHASE_BACKWARD && c < p->op[o].nchoice; c++)
			for (int i = 0; i < p->op[o].choice[c].nin; i++)
				read[p->op[o].choice[c].in[i]] = true;
	return read;
}

static bool is_offered(const struct problem *p, int t, int64_t least)
{
	const struct problem_tensor *x = &p->tensor[t];
	return x->kind == TK_ACTIVATION && !x->keep && x->bytes >= least && x->producer >= 0 &&
	       p->op[x->producer].phase == PHASE_FORWARD && !p->op[x->producer].from_disk;
}

static int *one(struct arena *a, int t)
{
	int *list = ARENA_ARRAY(a, int, 1);
	if (list)
		*list = t;
	return list;
}

/* Op `o` reads `in` and makes `out`; `t` is moved. */
static bool add_op(
	struct arena *a, struct problem *p, int64_t id, double cost, int t, int in, int out)
{
	const struct problem_tensor *x = &p->tensor[t];
	struct problem_choice *c = ARENA_ARRAY(a, struct problem_choice, 1);
	const bool away = in == t;
	if (!c || !(c->in = one(a, in)) || !(c->out = one(a, out)))
		return false;
	c->nin = c->nout = 1;
	c->cost = c->roofline = cost;
	struct problem_op *op = &p->op[p->nop++];
	*op = (struct problem_op){.id = id,
		.name = arena_printf(a, "%s %s", away ? "offload" : "fetch", x->name),
		.phase = away ? PHASE_FORWARD : PHASE_BACKWARD,
		.nchoice = 1,
		.choice = c,
		.optional = true,
		.recomputable = !away};
	*(away ? &op->offloads : &op->fetches) = 1 + t;
	return op->name != NULL;
}

static bool add_token(struct arena *a, struct problem *p, int64_t id, int t)
{
	struct problem_tensor *x = &p->tensor[p->ntensor++];
	*x = (struct problem_tensor){.id = id,
		.name = arena_printf(a, "%s, on the host", p->tensor[t].name),
		.kind = TK_ACTIVATION,
		.producer = p->nop};
	return x->name != NULL;
}

enum status transfers_add(
	struct arena *a, struct problem *p, int64_t least, double link, struct diag *d)
{
	int n = 0, ntensor = p->ntensor, nop = p->nop;
	int64_t tensor_id = -1, op_id = -1;
	bool *offer = find_read(a, p);
	if (!offer)
		return diag_nomem(d);
	for (int t = 0; t < ntensor; t++) {
		offer[t] = offer[t] && is_offered(p, t, least);
		n += offer[t];
		tensor_id = p->tensor[t].id > tensor_id ? p->tensor[t].id : tensor_id;
	}
	for (int o = 0; o < nop; o++)
		op_id = p->op[o].id > op_id ? p->op[o].id : op_id;
	if (n == 0)
		return ST_OK;
	struct problem_tensor *tensor = ARENA_ARRAY(a, struct problem_tensor, (int64_t)ntensor + n);
	struct problem_op *op = ARENA_ARRAY(a, struct problem_op, nop + 2 * (int64_t)n);
	if (!tensor || !op || tensor_id > INT64_MAX - n || op_id > INT64_MAX - 2 * (int64_t)n)
		return diag_nomem(d);
	p->tensor = memcpy(tensor, p->tensor, (size_t)ntensor * sizeof *tensor);
	p->op = memcpy(op, p->op, (size_t)nop * sizeof *op);
	for (int t = 0; t < ntensor; t++) {
		const int token = p->ntensor;
		if (!offer[t])
			continue;
		const double cost = transfer_cost(p->tensor[t].bytes, link);
		if (!add_token(a, p, ++tensor_id, t) || !add_op(a, p, ++op_id, cost, t, t, token) ||
			!add_op(a, p, ++op_id, cost, t, token, t))
			return diag_nomem(d);
	}
	return ST_OK;
}

bool transfers_without(const struct problem *p, struct problem *out)
{
	*out = *p;
	while (out->nop > 0 && problem_op_transfers(&p->op[out->nop - 1])) {
		out->nop--;
		out->ntensor -= p->op[out->nop].offloads != 0;
	}
	return out->nop < p->nop;
}

/* Its one input and its one output. */
static bool single(const struct problem_op *op, int *in, int *out)
{
	if (op->nchoice != 1 || op->choice->nin != 1 || op->choice->nout != 1)
		return false;
	*in = op->choice->in[0];
	*out = op->choice->out[0];
	return true;
}

/* Both transfers of a tensor stand together, pairs by tensor, behind all other ops. */
static bool in_place(const struct problem *p, int o, int t)
{
	const struct problem_op *op = &p->op[o];
	if (op->fetches)
		return o > 0 && p->op[o - 1].offloads == 1 + t;
	return o + 1 < p->nop && p->op[o + 1].fetches == 1 + t &&
	       (o + 2 == p->nop || p->op[o + 2].offloads > 1 + t);
}

const char *transfer_fault(const struct problem *p, int o)
{
	const struct problem_op *op = &p->op[o];
	const int t = (op->offloads ? op->offloads : op->fetches) - 1;
	int in, out;
	if (!op->optional || op->phase == PHASE_UPDATE || op->npair > 0 ||
		op->recomputable != (op->fetches != 0))
		return "a transfer is optional, in place of nothing, and runs once to the host";
	if (!single(op, &in, &out))
		return "a transfer has one input and one output";
	if ((op->offloads && op->fetches) || !in_place(p, o, t))
		return "transfers stand behind all other ops: away, back, by tensor";
	if (t != (op->offloads ? in : out) || t >= p->ntensor ||
		tensor_kind_resident(p->tensor[t].kind) || p->tensor[t].producer >= o)
		return "it moves its input to the host, or its output back";
	const int token = op->offloads ? out : in;
	const int place = p->ntensor - (p->nop - o + 1) / 2;
	if (token != place || p->tensor[token].bytes != 0 ||
		p->tensor[token].producer != o - (op->fetches != 0))
		return "the copy on the host is a tensor of no bytes, behind all other tensors";
	return NULL;
}
