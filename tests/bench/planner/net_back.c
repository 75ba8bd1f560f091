/* The backward half of net.h: the tape read from its end. */
#include "net.h"

static const char *named(struct net *n, const char *name, const char *what)
{
	const char *s = arena_printf(n->m.a, "%s.%s", name, what);
	if (!s)
		n->m.failed = true;
	return s ? s : "";
}

static void back_op(struct net *n, const struct net_record *r, const char *what, double cost)
{
	make_op(&n->m, PHASE_BACKWARD, named(n, r->name, what), cost);
}

static int sum_of(struct net *n, const char *name, int a, int b)
{
	struct make *m = &n->m;
	make_op(m, PHASE_BACKWARD, named(n, name, "sum"),
		make_roofline(0, 3 * (double)net_bytes(n, a)));
	make_in(m, a);
	make_in(m, b);
	int y = make_out(m, TK_GRADIENT, net_bytes(n, a));
	make_pair(m, y, a);
	make_pair(m, y, b);
	return y;
}

/* One more contribution to the gradient of t. */
static void contribute(struct net *n, int t, int g)
{
	if (!n->m.failed && t != n->input)
		n->grad[t] = n->grad[t] < 0 ? g : sum_of(n, n->m.tensor[t].name, n->grad[t], g);
}

static bool wanted(const struct net *n, int t)
{
	return t != n->input;
}

/* One op that replaces all parameters of the list and their momenta. */
static void add_update(struct net *n, const char *name, const int *param, int count)
{
	struct make *m = &n->m;
	double bytes = 0;
	for (int i = 0; i < count; i++)
		bytes += 5 * (double)n->param[param[i]].bytes;
	make_op(m, PHASE_UPDATE, named(n, name, "update"), make_roofline(0, bytes));
	for (int i = 0; i < count; i++) {
		make_in(m, n->param[param[i]].tensor);
		make_in(m, n->param[param[i]].state);
		make_in(m, n->param[param[i]].grad);
	}
	for (int i = 0; i < count; i++)
		for (int k = 0; k < 2; k++) {
			struct net_param *p = &n->param[param[i]];
			int t = make_out(m, TK_OUTPUT, p->bytes);
			make_pair(m, t, k ? p->state : p->tensor);
			make_keep(m, t);
		}
}

/* The record's parameters got these gradients; those with no use left are updated. */
static void parameters_done(struct net *n, const struct net_record *r, const int *grad)
{
	int ready[2], count = 0;
	for (int i = 0; i < r->nparam && !n->m.failed; i++) {
		struct net_param *p = &n->param[r->param[i]];
		p->grad = p->grad < 0 ? grad[i]
				      : sum_of(n, n->m.tensor[p->tensor].name, p->grad, grad[i]);
		if (--p->uses == 0)
			ready[count++] = r->param[i];
	}
	if (n->m.failed || count == 0)
		return;
	if (n->fused || count == 1) {
		add_update(n, r->name, ready, count);
		return;
	}
	for (int i = 0; i < count; i++)
		add_update(n, n->m.tensor[n->param[ready[i]].tensor].name, &ready[i], 1);
}

static int parameter(const struct net *n, const struct net_record *r, int i)
{
	return n->m.failed ? 0 : n->param[r->param[i]].tensor;
}

/* gx = gy · wᵀ, then gw = xᵀ · gy with the bias's sum. */
static void linear_back(struct net *n, const struct net_record *r, int gy)
{
	struct make *m = &n->m;
	int x = r->x[0], w = parameter(n, r, 0), grad[2];
	double bytes = (double)(net_bytes(n, x) + net_bytes(n, gy) + net_bytes(n, w));
	if (wanted(n, x)) {
		back_op(n, r, "dx", make_roofline(r->flops, bytes));
		make_workspace(m, r->workspace);
		make_in(m, gy);
		make_in(m, w);
		contribute(n, x, make_out(m, TK_GRADIENT, net_bytes(n, x)));
	}
	back_op(n, r, "dw", make_roofline(r->flops, bytes));
	make_workspace(m, r->workspace);
	make_in(m, gy);
	make_in(m, x);
	grad[0] = make_out(m, TK_GRADIENT, net_bytes(n, w));
	grad[1] = r->nparam > 1 ? make_out(m, TK_GRADIENT, r->bias) : -1;
	parameters_done(n, r, grad);
}

static void lookup_back(struct net *n, const struct net_record *r, int gy)
{
	int w = parameter(n, r, 0), grad;
	back_op(n, r, "dw", make_roofline(0, (double)(net_bytes(n, gy) + net_bytes(n, w))));
	make_in(&n->m, gy);
	make_in(&n->m, r->x[0]);
	grad = make_out(&n->m, TK_GRADIENT, net_bytes(n, w));
	parameters_done(n, r, &grad);
}

static void norm_back(struct net *n, const struct net_record *r, int gy)
{
	struct make *m = &n->m;
	int x = r->x[0], gamma = parameter(n, r, 0), grad[2];
	back_op(n, r, "dx", make_roofline(0, 3 * (double)net_bytes(n, x)));
	make_in(m, gy);
	make_in(m, x);
	make_in(m, gamma);
	make_in(m, r->y[1]);
	make_in(m, r->y[2]);
	int gx = make_out(m, TK_GRADIENT, net_bytes(n, x));
	grad[0] = make_out(m, TK_GRADIENT, net_bytes(n, gamma));
	grad[1] = make_out(m, TK_GRADIENT, net_bytes(n, gamma));
	contribute(n, x, gx);
	parameters_done(n, r, grad);
}

static void unary_back(struct net *n, const struct net_record *r, int gy)
{
	struct make *m = &n->m;
	int64_t bytes = net_bytes(n, gy);
	back_op(n, r, "dx", make_roofline(0, (r->saves == NET_NOTHING ? 2 : 3) * (double)bytes));
	make_in(m, gy);
	int g = make_out(m, TK_GRADIENT, bytes);
	make_pair(m, g, gy);
	if (r->saves != NET_NOTHING) {
		int saved = r->saves == NET_INPUT ? r->x[0] : r->y[0];
		make_in(m, saved);
		make_pair(m, g, saved);
	}
	contribute(n, r->x[0], g);
}

static void pool_back(struct net *n, const struct net_record *r, int gy)
{
	struct make *m = &n->m;
	int64_t bytes = net_bytes(n, r->x[0]);
	back_op(n, r, "dx", make_roofline(0, (double)(bytes + net_bytes(n, gy))));
	make_in(m, gy);
	if (r->index)
		make_in(m, r->y[1]);
	contribute(n, r->x[0], make_out(m, TK_GRADIENT, bytes));
}

/* One slice for each part. */
static void concat_back(struct net *n, const struct net_record *r, int gy)
{
	for (int i = 0; i < r->nx; i++) {
		if (!wanted(n, r->x[i]))
			continue;
		int64_t bytes = net_bytes(n, r->x[i]);
		back_op(n, r, "slice", make_roofline(0, 2 * (double)bytes));
		make_in(&n->m, gy);
		contribute(n, r->x[i], make_out(&n->m, TK_GRADIENT, bytes));
	}
}

static void split_back(struct net *n, const struct net_record *r)
{
	int64_t bytes = net_bytes(n, r->x[0]);
	back_op(n, r, "join", make_roofline(0, 2 * (double)bytes));
	for (int i = 0; i < r->ny && !n->m.failed; i++)
		if (n->grad[r->y[i]] >= 0)
			make_in(&n->m, n->grad[r->y[i]]);
	contribute(n, r->x[0], make_out(&n->m, TK_GRADIENT, bytes));
}

static void product_back(struct net *n, const struct net_record *r, int gy)
{
	for (int i = 0; i < 2; i++) {
		int other = r->x[1 - i];
		int64_t bytes = net_bytes(n, r->x[i]);
		back_op(n, r, i ? "db" : "da",
			make_roofline(r->flops,
				(double)(bytes + net_bytes(n, other) + net_bytes(n, gy))));
		make_in(&n->m, gy);
		make_in(&n->m, other);
		contribute(n, r->x[i], make_out(&n->m, TK_GRADIENT, bytes));
	}
}

static void attention_back(struct net *n, const struct net_record *r, int gy)
{
	struct make *m = &n->m;
	int64_t bytes = net_bytes(n, r->x[0]);
	back_op(n, r, "dqkv", make_roofline(2.5 * r->flops, 3 * (double)bytes));
	make_in(m, gy);
	make_in(m, r->x[0]);
	make_in(m, r->y[0]);
	make_in(m, r->y[1]);
	contribute(n, r->x[0], make_out(m, TK_GRADIENT, bytes));
}

static void record_back(struct net *n, const struct net_record *r)
{
	int gy = n->grad[r->y[0]];
	if (r->kind == NET_SPLIT)
		split_back(n, r);
	if (gy < 0)
		return;
	switch (r->kind) {
	case NET_LINEAR:
	case NET_SHARED:
		linear_back(n, r, gy);
		break;
	case NET_LOOKUP:
		lookup_back(n, r, gy);
		break;
	case NET_NORM:
		norm_back(n, r, gy);
		break;
	case NET_UNARY:
		unary_back(n, r, gy);
		break;
	case NET_ADD: /* both take gy itself */
		contribute(n, r->x[0], gy);
		contribute(n, r->x[1], gy);
		break;
	case NET_POOL:
		pool_back(n, r, gy);
		break;
	case NET_CONCAT:
		concat_back(n, r, gy);
		break;
	case NET_PRODUCT:
		product_back(n, r, gy);
		break;
	case NET_ATTENTION:
		attention_back(n, r, gy);
		break;
	case NET_SPLIT:
		break;
	}
}

struct problem *net_train(struct net *n, int logits, int64_t target_bytes, const char *name)
{
	struct make *m = &n->m;
	int64_t bytes = net_bytes(n, logits);
	int target = net_input(n, target_bytes, "target");
	make_op(m, PHASE_FORWARD, "loss", make_roofline(0, 2 * (double)bytes));
	make_in(m, logits);
	make_in(m, target);
	int loss = make_out(m, TK_OUTPUT, 4);
	int normaliser = make_out(m, TK_ACTIVATION, target_bytes);
	make_keep(m, loss);
	make_op(m, PHASE_BACKWARD, "loss.dx", make_roofline(0, 2 * (double)bytes));
	make_in(m, logits);
	make_in(m, target);
	make_in(m, normaliser);
	int g = make_out(m, TK_GRADIENT, bytes);
	make_pair(m, g, logits);
	int nforward = m->ntensor; /* gradients of gradients are not asked for */
	n->grad = arena_alloc(m->a, (size_t)nforward, sizeof *n->grad);
	if (!n->grad || m->failed)
		return NULL;
	for (int i = 0; i < nforward; i++)
		n->grad[i] = -1;
	contribute(n, logits, g);
	for (int i = n->ntape; i-- > 0 && !m->failed;)
		record_back(n, &n->tape[i]);
	return make_finish(m, name);
}
