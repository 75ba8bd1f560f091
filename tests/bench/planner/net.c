/* The forward half of net.h: each call adds an op and remembers it on the tape. */
#include "net.h"

#include <string.h>

struct net net_start(struct arena *a, uint64_t seed)
{
	return (struct net){.m = make_start(a, seed), .input = -1};
}

int64_t net_bytes(const struct net *n, int t)
{
	return n->m.failed ? 0 : n->m.tensor[t].bytes;
}

int net_input(struct net *n, int64_t bytes, const char *name)
{
	return make_resident(&n->m, TK_INPUT, bytes, name);
}

int net_param(struct net *n, int64_t bytes, const char *name)
{
	if (n->nparam == n->cparam) {
		int more = n->cparam * 2 + 64;
		struct net_param *p = ARENA_ARRAY(n->m.a, struct net_param, more);
		n->m.failed = n->m.failed || !p;
		if (!p)
			return 0;
		if (n->nparam)
			memcpy(p, n->param, (size_t)n->nparam * sizeof *p);
		n->param = p;
		n->cparam = more;
	}
	char *state = arena_printf(n->m.a, "%s.momentum", name ? name : "");
	int t = make_resident(&n->m, TK_PARAMETER, bytes, name ? name : "");
	int s = make_resident(&n->m, TK_STATE, bytes, state ? state : "");
	n->param[n->nparam] = (struct net_param){
		.tensor = t, .state = s, .bytes = bytes, .grad = -1};
	return n->nparam++;
}

static int own_param(struct net *n, const char *name, const char *what, int64_t bytes)
{
	return net_param(n, bytes, arena_printf(n->m.a, "%s.%s", name, what));
}

/* The record of the op just made: what it read and what it made. */
static struct net_record *record(struct net *n, enum net_kind kind, const int *x, int nx)
{
	static struct net_record nowhere; /* never read: the failure is sticky */
	struct make *m = &n->m;
	if (n->ntape == n->ctape) {
		int more = n->ctape * 2 + 64;
		struct net_record *p = ARENA_ARRAY(m->a, struct net_record, more);
		m->failed = m->failed || !p;
		if (p && n->ntape)
			memcpy(p, n->tape, (size_t)n->ntape * sizeof *p);
		n->tape = p ? p : n->tape;
		n->ctape = p ? more : n->ctape;
	}
	if (m->failed) {
		nowhere = (struct net_record){0};
		return &nowhere;
	}
	struct net_record *r = &n->tape[n->ntape++];
	*r = (struct net_record){.kind = kind,
		.name = m->op[m->nop - 1].name,
		.x = arena_memdup(m->a, x, (size_t)nx, sizeof *x),
		.nx = nx,
		.y = arena_memdup(m->a, m->out, (size_t)m->now.nout, sizeof *m->out),
		.ny = m->now.nout};
	m->failed = !r->x || !r->y;
	return r;
}

static void use_param(struct net *n, struct net_record *r, int param)
{
	if (n->m.failed)
		return;
	r->param[r->nparam++] = param;
	n->param[param].uses++;
}

static void read_param(struct net *n, int param)
{
	if (!n->m.failed)
		make_in(&n->m, n->param[param].tensor);
}

static double moved(const struct net *n, int64_t extra, const int *x, int nx)
{
	double sum = (double)extra;
	for (int i = 0; i < nx; i++)
		sum += (double)net_bytes(n, x[i]);
	return sum;
}

int net_linear(struct net *n, const char *name, int x, const struct net_linear *l)
{
	struct make *m = &n->m;
	int w = own_param(n, name, "weight", l->weight);
	int b = l->bias ? own_param(n, name, "bias", l->bias) : -1;
	make_op(m, PHASE_FORWARD, name,
		make_roofline(l->flops, moved(n, l->out + l->weight, &x, 1)));
	make_workspace(m, l->workspace);
	make_in(m, x);
	read_param(n, w);
	if (b >= 0)
		read_param(n, b);
	int y = make_out(m, TK_ACTIVATION, l->out);
	struct net_record *r = record(n, NET_LINEAR, &x, 1);
	r->flops = l->flops;
	r->workspace = l->workspace;
	r->bias = l->bias;
	use_param(n, r, w);
	if (b >= 0)
		use_param(n, r, b);
	return y;
}

int net_shared(struct net *n, const char *name, int x, int param, int64_t out, double flops)
{
	struct make *m = &n->m;
	make_op(m, PHASE_FORWARD, name, make_roofline(flops, moved(n, out, &x, 1)));
	make_in(m, x);
	read_param(n, param);
	int y = make_out(m, TK_ACTIVATION, out);
	struct net_record *r = record(n, NET_SHARED, &x, 1);
	r->flops = flops;
	use_param(n, r, param);
	return y;
}

int net_lookup(struct net *n, const char *name, int tokens, int param, int64_t out)
{
	struct make *m = &n->m;
	make_op(m, PHASE_FORWARD, name, make_roofline(0, 2 * (double)out));
	make_in(m, tokens);
	read_param(n, param);
	int y = make_out(m, TK_ACTIVATION, out);
	use_param(n, record(n, NET_LOOKUP, &tokens, 1), param);
	return y;
}

/* Batch norm's running statistics: replaced once a step from what this batch had. */
static void add_running(struct net *n, const char *name, int mean, int deviation)
{
	struct make *m = &n->m;
	int old[2];
	for (int i = 0; i < 2; i++) {
		char *s = arena_printf(m->a, "%s.running_%s", name, i ? "var" : "mean");
		old[i] = make_resident(m, TK_STATE, net_bytes(n, mean), s ? s : "");
	}
	char *s = arena_printf(m->a, "%s.running", name);
	make_op(m, PHASE_UPDATE, s ? s : "", make_roofline(0, 6 * (double)net_bytes(n, mean)));
	make_in(m, old[0]);
	make_in(m, old[1]);
	make_in(m, mean);
	make_in(m, deviation);
	for (int i = 0; i < 2; i++) {
		int t = make_out(m, TK_OUTPUT, net_bytes(n, mean));
		make_pair(m, t, old[i]);
		make_keep(m, t);
	}
}

int net_norm(struct net *n, const char *name, int x, int64_t stat, int64_t width, bool running)
{
	struct make *m = &n->m;
	int gamma = own_param(n, name, "weight", width), beta = own_param(n, name, "bias", width);
	int64_t bytes = net_bytes(n, x);
	make_op(m, PHASE_FORWARD, name, make_roofline(0, 2 * (double)bytes));
	make_in(m, x);
	read_param(n, gamma);
	read_param(n, beta);
	int y = make_out(m, TK_ACTIVATION, bytes);
	int mean = make_out(m, TK_ACTIVATION, stat), deviation = make_out(m, TK_ACTIVATION, stat);
	struct net_record *r = record(n, NET_NORM, &x, 1);
	use_param(n, r, gamma);
	use_param(n, r, beta);
	if (running)
		add_running(n, name, mean, deviation);
	return y;
}

int net_unary(struct net *n, const char *name, int x, enum net_saves saves)
{
	struct make *m = &n->m;
	int64_t bytes = net_bytes(n, x);
	make_op(m, PHASE_FORWARD, name, make_roofline(0, 2 * (double)bytes));
	make_in(m, x);
	int y = make_out(m, TK_ACTIVATION, bytes);
	make_pair(m, y, x);
	record(n, NET_UNARY, &x, 1)->saves = saves;
	return y;
}

int net_add(struct net *n, const char *name, int a, int b)
{
	struct make *m = &n->m;
	int64_t bytes = net_bytes(n, a);
	make_op(m, PHASE_FORWARD, name, make_roofline(0, 3 * (double)bytes));
	make_in(m, a);
	make_in(m, b);
	int y = make_out(m, TK_ACTIVATION, bytes);
	make_pair(m, y, a);
	make_pair(m, y, b);
	record(n, NET_ADD, (int[]){a, b}, 2);
	return y;
}

int net_pool(struct net *n, const char *name, int x, int64_t out, bool index)
{
	struct make *m = &n->m;
	make_op(m, PHASE_FORWARD, name, make_roofline(0, moved(n, out, &x, 1)));
	make_in(m, x);
	int y = make_out(m, TK_ACTIVATION, out);
	if (index)
		make_out(m, TK_ACTIVATION, out / 4);
	record(n, NET_POOL, &x, 1)->index = index;
	return y;
}

int net_concat(struct net *n, const char *name, const int *x, int nx)
{
	struct make *m = &n->m;
	int64_t bytes = (int64_t)moved(n, 0, x, nx);
	make_op(m, PHASE_FORWARD, name, make_roofline(0, 2 * (double)bytes));
	for (int i = 0; i < nx; i++)
		make_in(m, x[i]);
	int y = make_out(m, TK_ACTIVATION, bytes);
	record(n, NET_CONCAT, x, nx);
	return y;
}

void net_split(struct net *n, const char *name, int x, int parts, int *out)
{
	struct make *m = &n->m;
	int64_t bytes = net_bytes(n, x);
	make_op(m, PHASE_FORWARD, name, make_roofline(0, 2 * (double)bytes));
	make_in(m, x);
	for (int i = 0; i < parts; i++)
		out[i] = make_out(m, TK_ACTIVATION, bytes / parts);
	record(n, NET_SPLIT, &x, 1);
}

int net_product(struct net *n, const char *name, int a, int b, int64_t out, double flops)
{
	struct make *m = &n->m;
	int x[2] = {a, b};
	make_op(m, PHASE_FORWARD, name, make_roofline(flops, moved(n, out, x, 2)));
	make_in(m, a);
	make_in(m, b);
	int y = make_out(m, TK_ACTIVATION, out);
	record(n, NET_PRODUCT, x, 2)->flops = flops;
	return y;
}

int net_attention(struct net *n, const char *name, int qkv, int64_t sums, double flops)
{
	struct make *m = &n->m;
	int64_t out = net_bytes(n, qkv) / 3;
	make_op(m, PHASE_FORWARD, name, make_roofline(flops, moved(n, out, &qkv, 1)));
	make_in(m, qkv);
	int y = make_out(m, TK_ACTIVATION, out);
	make_out(m, TK_ACTIVATION, sums);
	record(n, NET_ATTENTION, &qkv, 1)->flops = flops;
	return y;
}
