/* What a problem must satisfy, whoever made it. */
#include "planner/problem/problem.h"
#include "planner/problem/idmap.h"
#include "planner/problem/loop_facts.h"
#include "planner/problem/transfer.h"

#include <math.h>
#include <stdlib.h>

const char *const tensor_kind_name[6] = {
	"input", "parameter", "state", "activation", "gradient", "output"};
const char *const phase_name[3] = {"forward", "backward", "update"};

struct validation {
	const struct problem *p;
	const char *file;
	struct diag *d;
	bool bad;
	bool *made;       /* [ntensor] produced so far in the listed order */
	int *overwritten; /* [ntensor] the op whose declared output replaces this resident, or -1 */
};

int problem_original(const struct problem *p, int t)
{
	int o = p->tensor[t].producer;
	if (o < 0 || !p->op[o].repeats)
		return t;
	const struct problem_op *first = &p->op[p->op[o].repeats - 1];
	for (int c = 0; c < p->op[o].nchoice; c++)
		for (int i = 0; i < p->op[o].choice[c].nout; i++)
			if (p->op[o].choice[c].out[i] == t)
				return first->choice[c].out[i];
	return t;
}

double problem_one_pass(const struct problem *p)
{
	double sum = 0;
	for (int o = 0; o < p->nop; o++) {
		const struct problem_op *op = &p->op[o];
		double least = op->choice[0].cost;
		for (int c = 1; c < op->nchoice; c++)
			least = op->choice[c].cost < least ? op->choice[c].cost : least;
		sum += op->optional || op->repeats ? 0 : least;
	}
	return sum;
}

static void fault(struct validation *v, const char *node, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void fault(struct validation *v, const char *node, const char *hint, const char *fmt, ...)
{
	struct where w = {.file = v->file, .node = node};
	va_list ap;
	va_start(ap, fmt);
	diag_vfail(v->d, ST_INVALID, &w, hint, fmt, ap);
	va_end(ap);
	v->bad = true;
}

static bool in_list(const int *list, int n, int x)
{
	for (int i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

static bool tensor_ok(const struct problem *p, int t)
{
	return t >= 0 && t < p->ntensor;
}

static void check_tensors(struct validation *v)
{
	const struct problem *p = v->p;
	int64_t sum = 0;
	bool overflow = false;
	for (int i = 0; i < p->ntensor; i++) {
		const struct problem_tensor *t = &p->tensor[i];
		if ((unsigned)t->kind > TK_OUTPUT) {
			fault(v, t->name, NULL, "unknown tensor kind %d", (int)t->kind);
			continue;
		}
		if (t->bytes < 0)
			fault(v, t->name, "sizes are whole numbers of bytes, zero or more",
				"tensor has %lld bytes", (long long)t->bytes);
		else if (!overflow && (!size_add(sum, t->bytes, &sum) || sum > INT64_MAX / 8)) {
			overflow = true;
			fault(v, t->name, "check the sizes of this tensor and of those before it",
				"the sizes of all tensors add up to more than can be counted");
		}
		bool resident = tensor_kind_resident(t->kind);
		if (resident && t->producer >= 0)
			fault(v, t->name,
				"an op that changes it has an output of its own, paired with it in "
				"place",
				"a tensor of kind %s is an output of an op",
				tensor_kind_name[t->kind]);
		if (!resident && (t->producer < 0 || t->producer >= p->nop))
			fault(v, t->name,
				"add the op that makes it, or make it an input, parameter or state",
				"no op produces this tensor of kind %s", tensor_kind_name[t->kind]);
	}
}

static void check_ids(struct validation *v)
{
	const struct problem *p = v->p;
	struct idmap m;
	if (!idmap_init(&m, p->ntensor > p->nop ? p->ntensor : p->nop)) {
		v->bad = true;
		diag_nomem(v->d);
		return;
	}
	for (int i = 0; i < p->ntensor; i++)
		if (!idmap_put(&m, p->tensor[i].id, i))
			fault(v, p->tensor[i].name, "every tensor needs an id of its own",
				"tensor id %lld is used twice", (long long)p->tensor[i].id);
	idmap_free(&m);
	if (!idmap_init(&m, p->nop)) {
		v->bad = true;
		diag_nomem(v->d);
		return;
	}
	for (int i = 0; i < p->nop; i++)
		if (!idmap_put(&m, p->op[i].id, i))
			fault(v, p->op[i].name, "every op needs an id of its own",
				"op id %lld is used twice", (long long)p->op[i].id);
	idmap_free(&m);
}

static void check_choice(struct validation *v, int o, const struct problem_choice *c)
{
	const struct problem *p = v->p;
	const char *name = p->op[o].name;
	if (!isfinite(c->cost) || c->cost < 0 || c->cost > 1e200)
		fault(v, name, "costs are finite numbers, zero or more", "cost is %g", c->cost);
	if (c->workspace < 0 || c->workspace > INT64_MAX / 8)
		fault(v, name, NULL, "workspace of %lld bytes", (long long)c->workspace);
	if (c->nin < 0 || c->nout < 0) {
		fault(v, name, NULL, "negative number of inputs or outputs");
		return;
	}
	for (int i = 0; i < c->nin; i++)
		if (!tensor_ok(p, c->in[i]))
			fault(v, name, NULL, "input %d names no tensor", i);
	for (int i = 0; i < c->nout; i++) {
		int t = c->out[i];
		if (!tensor_ok(p, t)) {
			fault(v, name, NULL, "output %d names no tensor", i);
			continue;
		}
		if (p->tensor[t].producer != o && p->op[o].fetches != 1 + t &&
			!tensor_kind_resident(p->tensor[t].kind))
			fault(v, name, "a tensor has one producer",
				"output %s is also produced by another op", p->tensor[t].name);
		if (in_list(c->in, c->nin, t))
			fault(v, name,
				"give the result a tensor of its own and pair the two in place",
				"%s is both input and output", p->tensor[t].name);
		if (in_list(c->out, i, t))
			fault(v, name, NULL, "output %s is listed twice", p->tensor[t].name);
	}
}

static bool pair_somewhere(const struct problem_op *op, const struct problem_pair *pair)
{
	for (int k = 0; k < op->nchoice; k++)
		if (in_list(op->choice[k].out, op->choice[k].nout, pair->out) &&
			in_list(op->choice[k].in, op->choice[k].nin, pair->in))
			return true;
	return false;
}

static void check_pair(struct validation *v, int o, int i)
{
	const struct problem *p = v->p;
	const struct problem_op *op = &p->op[o];
	const struct problem_pair *pr = &op->pair[i];
	if (!tensor_ok(p, pr->out) || !tensor_ok(p, pr->in)) {
		fault(v, op->name, NULL, "in-place pair %d names no tensor", i);
		return;
	}
	const struct problem_tensor *out = &p->tensor[pr->out], *in = &p->tensor[pr->in];
	if (!pair_somewhere(op, pr)) {
		fault(v, op->name, "a pair is [output, input] of the same op",
			"in-place pair %s over %s: not an output and an input of this op",
			out->name, in->name);
		return;
	}
	if (out->bytes > in->bytes)
		fault(v, op->name, "leave the pair out",
			"in-place output %s (%lld bytes) is larger than input %s (%lld bytes)",
			out->name, (long long)out->bytes, in->name, (long long)in->bytes);
	if (!tensor_kind_resident(in->kind))
		return;
	if (op->phase != PHASE_UPDATE)
		fault(v, op->name, "only ops of phase update may", "overwrites the %s %s",
			tensor_kind_name[in->kind], in->name);
	if (in->keep)
		fault(v, op->name, "keep the output that replaces it",
			"overwrites %s, which is to be kept", in->name);
	for (int j = 0; j < i; j++)
		if (op->pair[j].out == pr->out && tensor_ok(p, op->pair[j].in) &&
			tensor_kind_resident(p->tensor[op->pair[j].in].kind))
			fault(v, op->name, "a result replaces one resident",
				"output %s is paired with several residents", out->name);
	if (v->overwritten[pr->in] >= 0)
		fault(v, op->name, "a resident is replaced once a step",
			"%s %s is overwritten a second time", tensor_kind_name[in->kind], in->name);
	else
		v->overwritten[pr->in] = o;
}

/* Whether this way can run now, in the listed order. */
static bool choice_ready(const struct validation *v, const struct problem_choice *c, int *missing)
{
	for (int i = 0; i < c->nin; i++) {
		int t = c->in[i];
		if (tensor_ok(v->p, t) && !v->made[t]) {
			*missing = t;
			return false;
		}
	}
	return true;
}

static void check_order(struct validation *v)
{
	const struct problem *p = v->p;
	for (int i = 0; i < p->ntensor; i++)
		v->made[i] = tensor_kind_resident(p->tensor[i].kind);
	for (int o = 0; o < p->nop; o++) {
		const struct problem_op *op = &p->op[o];
		int missing = -1, pick = -1;
		for (int k = 0; k < op->nchoice && pick < 0; k++)
			if (choice_ready(v, &op->choice[k], &missing))
				pick = k;
		if (pick < 0 && missing >= 0) {
			const struct problem_tensor *t = &p->tensor[missing];
			if (t->producer >= o)
				fault(v, op->name,
					"list ops in an order in which they can run; a cycle has "
					"none",
					"reads %s before the op that produces it", t->name);
			else if (t->producer >= 0)
				fault(v, op->name,
					"that op makes it only under another of its choices",
					"reads %s, which is not produced", t->name);
		}
		const struct problem_choice *c = &op->choice[pick < 0 ? 0 : pick];
		for (int i = 0; i < c->nin; i++) {
			int t = c->in[i];
			if (tensor_ok(p, t) && v->overwritten[t] >= 0 && v->overwritten[t] < o)
				fault(v, op->name, "move it before the update",
					"reads %s after its update", p->tensor[t].name);
		}
		for (int i = 0; i < c->nout; i++)
			if (tensor_ok(p, c->out[i]))
				v->made[c->out[i]] = true;
	}
	for (int i = 0; i < p->ntensor; i++)
		if (p->tensor[i].keep && !v->made[i] && p->tensor[i].producer >= 0)
			fault(v, p->tensor[i].name, NULL,
				"is to be kept, but its op does not make it");
}

/* An op that repeats another makes the same things under the same choices, later. */
static void check_repeats(struct validation *v, int o)
{
	const struct problem_op *op = &v->p->op[o];
	if (!op->repeats)
		return;
	const struct problem_op *first = &v->p->op[op->repeats - 1];
	bool ok = op->repeats - 1 < o && !first->repeats && op->nchoice == first->nchoice;
	for (int c = 0; ok && c < op->nchoice; c++)
		ok = op->choice[c].nout == first->choice[c].nout;
	if (!ok)
		fault(v, op->name, NULL,
			"\"repeats\" an op that is not before it or has other choices or outputs");
}

static void check_transfer(struct validation *v, int o)
{
	const char *why = problem_op_transfers(&v->p->op[o]) ? transfer_fault(v->p, o) : NULL;
	if (why)
		fault(v, v->p->op[o].name, why, "cannot be \"%s\"",
			v->p->op[o].offloads ? "offload" : "fetch");
}

/* Requires that tensors and the op's choices are checked. */
static void check_loop(struct validation *v, int o)
{
	const char *why = v->p->op[o].loop && !v->bad ? loop_fault(v->p, o) : NULL;
	if (why)
		fault(v, v->p->op[o].name, why, "cannot be such a \"loop\"");
}

/* What says whether an op runs is read before it does, whichever way that is. */
static void check_when(struct validation *v, int o)
{
	const struct problem_op *op = &v->p->op[o];
	for (int c = 0; op->when && c < op->nchoice; c++) {
		const struct problem_choice *way = &op->choice[c];
		int i = 0;
		while (i < way->nin && way->in[i] != op->when - 1)
			i++;
		if (i == way->nin) {
			fault(v, op->name, "list it under \"inputs\"",
				"\"when\" is a tensor that the op does not read");
			return;
		}
	}
}

static void check_ops(struct validation *v)
{
	const struct problem *p = v->p;
	int64_t workspace = 0;
	for (int o = 0; o < p->nop; o++) {
		const struct problem_op *op = &p->op[o];
		if ((unsigned)op->phase > PHASE_UPDATE)
			fault(v, op->name, NULL, "unknown phase %d", (int)op->phase);
		if (op->nchoice < 1) {
			fault(v, op->name, NULL, "has no way to execute");
			continue;
		}
		if (op->phase == PHASE_UPDATE && op->recomputable)
			fault(v, op->name, "say \"recomputable\": false",
				"an update op runs exactly once");
		check_repeats(v, o);
		check_transfer(v, o);
		check_when(v, o);
		for (int k = 0; k < op->nchoice; k++) {
			check_choice(v, o, &op->choice[k]);
			if (!size_add(workspace, op->choice[k].workspace, &workspace))
				workspace = INT64_MAX;
		}
		for (int i = 0; i < op->npair; i++)
			check_pair(v, o, i);
		check_loop(v, o);
	}
	if (workspace > INT64_MAX / 8 && !v->bad)
		fault(v, NULL, NULL,
			"the workspaces of all ops add up to more than can be counted");
}

enum status problem_validate(const struct problem *p, const char *file, struct diag *d)
{
	struct validation v = {.p = p, .file = file, .d = d};
	size_t n = (size_t)p->ntensor + 1;
	v.made = calloc(n, sizeof *v.made);
	v.overwritten = malloc(n * sizeof *v.overwritten);
	enum status st = ST_OK;
	if (!v.made || !v.overwritten) {
		st = diag_nomem(d);
	} else {
		for (size_t i = 0; i < n; i++)
			v.overwritten[i] = -1;
		if (p->nop == 0)
			fault(&v, NULL, NULL, "the problem has no ops");
		check_tensors(&v);
		check_ids(&v);
		check_ops(&v);
		bool ways = true;
		for (int o = 0; o < p->nop; o++)
			ways = ways && p->op[o].nchoice >= 1;
		if (ways)
			check_order(&v);
		if (v.bad)
			st = d->worst == ST_INTERNAL ? ST_INTERNAL : ST_INVALID;
	}
	free(v.made);
	free(v.overwritten);
	return st;
}
