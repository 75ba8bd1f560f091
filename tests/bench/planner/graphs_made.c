/* Families without a network behind them: chains, layered graphs, U-shapes, dense blocks. */
#include "families.h"

#include <stdio.h>

enum { PAGE = 4096 };

static int64_t pages(struct make *m, int least, int most)
{
	return (int64_t)PAGE * (least + make_roll(m, most - least + 1));
}

static double hundredths(struct make *m, int least, int most)
{
	return (double)(least + make_roll(m, most - least + 1)) / 100;
}

/* --- Chains. Forward op i makes x_i from x_{i-1}; the loss makes the gradient of x_n; backward op
 * i reads that gradient and x_{i-1} and makes the gradient of x_{i-1}. --- */

struct link {
	int64_t bytes, saved; /* of x_i; of what op i makes for its gradient alone, if anything */
	int64_t workspace, backward_workspace;
	double forward, backward;
};

static struct problem *chain(
	struct make *m, int n, const char *name, struct link (*link)(struct make *m), bool kept_too)
{
	struct link *l = ARENA_ARRAY(m->a, struct link, n + 1);
	int *x = ARENA_ARRAY(m->a, int, n + 1), *saved = ARENA_ARRAY(m->a, int, n + 1);
	char s[32];
	if (!l || !x || !saved)
		return NULL;
	for (int i = 0; i <= n; i++)
		l[i] = link(m);
	x[0] = make_resident(m, TK_INPUT, l[0].bytes, "x0");
	for (int i = 1; i <= n; i++) {
		snprintf(s, sizeof s, "f%d", i);
		make_op(m, PHASE_FORWARD, s, l[i].forward);
		make_workspace(m, l[i].workspace);
		make_in(m, x[i - 1]);
		x[i] = make_out(m, TK_ACTIVATION, l[i].bytes);
		if (l[i].saved)
			saved[i] = make_out(m, TK_ACTIVATION, l[i].saved);
	}
	make_op(m, PHASE_BACKWARD, "loss", l[0].forward);
	make_in(m, x[n]);
	int g = make_out(m, TK_GRADIENT, l[n].bytes);
	for (int i = n; i >= 1; i--) {
		snprintf(s, sizeof s, "b%d", i);
		make_op(m, PHASE_BACKWARD, s, l[i].backward);
		make_workspace(m, l[i].backward_workspace);
		make_in(m, g);
		make_in(m, x[i - 1]);
		if (kept_too)
			make_in(m, x[i]);
		if (l[i].saved)
			make_in(m, saved[i]);
		g = make_out(m, TK_GRADIENT, l[i - 1].bytes);
	}
	make_keep(m, g);
	return make_finish(m, name);
}

static struct link same_link(struct make *m)
{
	(void)m;
	return (struct link){.bytes = 1 << 20, .forward = 10, .backward = 20};
}

static struct link any_link(struct make *m)
{
	struct link l = {.bytes = pages(m, 16, 256), .forward = hundredths(m, 100, 2000)};
	l.backward = 2 * l.forward;
	if (make_roll(m, 2) == 0)
		l.saved = pages(m, 8, 256);
	if (make_roll(m, 3) == 0)
		l.workspace = pages(m, 1, 32);
	if (make_roll(m, 3) == 0)
		l.backward_workspace = pages(m, 1, 32);
	return l;
}

/* As a convolutional trunk: sizes shrink along the way, products and cheap ops take turns. */
static struct link trunk_link(struct make *m)
{
	int i = (int)(m->dice >> 40 & 3);
	struct link l = {.bytes = pages(m, 64, 256)};
	l.forward = i == 0 ? hundredths(m, 1000, 4000) : hundredths(m, 50, 200);
	l.backward = i == 0 ? 2 * l.forward : 1.5 * l.forward;
	return l;
}

struct problem *family_chain(struct arena *a, int n, uint64_t seed)
{
	struct make m = make_start(a, seed);
	return chain(&m, n, arena_printf(a, "chain-%d", n), same_link, false);
}

static const char *title(struct arena *a, const char *family, int n, uint64_t seed)
{
	return arena_printf(a, "%s-%d-%llu", family, n, (unsigned long long)seed);
}

struct problem *family_rotor(struct arena *a, int n, uint64_t seed)
{
	struct make m = make_start(a, seed);
	return chain(&m, n, title(a, "rotor", n, seed), any_link, false);
}

struct problem *family_trunk(struct arena *a, int n, uint64_t seed)
{
	struct make m = make_start(a, seed);
	return chain(&m, n, title(a, "trunk", n, seed), trunk_link, true);
}

/* --- Random layered graphs. --- */

/* The forward half into out[0..n): layers of about √n nodes, each node reads one of the layer
 * before and, on average, a few of earlier ones. */
static void layered_nodes(struct make *m, int n, int source, int *out, int (*in)[6], int *nin)
{
	int width = 1, before = 0, start = 0;
	char s[32];
	while (width * width < n)
		width++;
	for (int i = 0; i < n; i++) {
		if (i - start == width || (i > start + width / 2 && make_roll(m, width) == 0)) {
			before = start;
			start = i;
		}
		snprintf(s, sizeof s, "n%d", i);
		make_op(m, PHASE_FORWARD, s, hundredths(m, 100, 2000));
		nin[i] = 0;
		if (start == 0)
			in[i][nin[i]++] = source;
		else
			in[i][nin[i]++] = out[before + make_roll(m, start - before)];
		for (int k = 0; start > 0 && k < 5 && make_roll(m, 5) < 4; k++)
			in[i][nin[i]++] = out[make_roll(m, start)];
		for (int k = 0; k < nin[i]; k++)
			make_in(m, in[i][k]);
		out[i] = make_out(m, TK_ACTIVATION, pages(m, 128, 1024));
	}
}

struct layers {
	int *out, (*in)[6], *nin, *grad, *reads;
};

static bool layers_room(struct make *m, int n, struct layers *l)
{
	*l = (struct layers){.out = ARENA_ARRAY(m->a, int, n),
		.in = arena_alloc(m->a, (size_t)n, sizeof *l->in),
		.nin = ARENA_ARRAY(m->a, int, n),
		.grad = ARENA_ARRAY(m->a, int, 2 * n + 2),
		.reads = ARENA_ARRAY(m->a, int, 2 * n + 2)};
	return l->out && l->in && l->nin && l->grad && l->reads;
}

static void count_reads(struct layers *l, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < l->nin[i]; k++)
			l->reads[l->in[i][k]]++;
}

struct problem *family_layered(struct arena *a, int n, uint64_t seed)
{
	struct make m = make_start(a, seed);
	struct layers l;
	if (!layers_room(&m, n, &l))
		return NULL;
	int source = make_resident(&m, TK_INPUT, PAGE, "source");
	layered_nodes(&m, n - 1, source, l.out, l.in, l.nin);
	if (m.failed)
		return NULL;
	count_reads(&l, n - 1);
	make_op(&m, PHASE_FORWARD, "sink", 1);
	for (int i = 0; i < n - 1; i++)
		if (l.reads[l.out[i]] == 0)
			make_in(&m, l.out[i]);
	make_keep(&m, make_out(&m, TK_OUTPUT, PAGE));
	return make_finish(&m, title(a, "layered", n, seed));
}

/* The gradient of node i towards its k-th input, added to what is there. */
static void layered_gradient(struct make *m, struct layers *l, int i, int k)
{
	char s[48];
	int t = l->in[i][k];
	int64_t bytes = m->tensor[t].bytes;
	for (int j = 0; j < k; j++)
		if (l->in[i][j] == t)
			return;
	snprintf(s, sizeof s, "n%d.d%d", i, k);
	make_op(m, PHASE_BACKWARD, s, hundredths(m, 100, 2000));
	make_in(m, l->grad[l->out[i]]);
	make_in(m, t);
	int g = make_out(m, TK_GRADIENT, bytes);
	if (l->grad[t] >= 0) {
		snprintf(s, sizeof s, "n%d.sum%d", i, k);
		make_op(m, PHASE_BACKWARD, s, 0.5);
		make_in(m, l->grad[t]);
		make_in(m, g);
		int sum = make_out(m, TK_GRADIENT, bytes);
		make_pair(m, sum, l->grad[t]);
		make_pair(m, sum, g);
		g = sum;
	}
	l->grad[t] = g;
}

struct problem *family_layered_train(struct arena *a, int n, uint64_t seed)
{
	struct make m = make_start(a, seed);
	struct layers l;
	if (!layers_room(&m, n, &l))
		return NULL;
	int source = make_resident(&m, TK_INPUT, PAGE, "source");
	layered_nodes(&m, n, source, l.out, l.in, l.nin);
	if (m.failed)
		return NULL;
	count_reads(&l, n);
	for (int t = 0; t <= 2 * n + 1; t++)
		l.grad[t] = -1;
	make_op(&m, PHASE_BACKWARD, "loss", 1);
	for (int i = 0; i < n; i++)
		if (l.reads[l.out[i]] == 0)
			make_in(&m, l.out[i]);
	for (int i = 0; i < n; i++)
		if (l.reads[l.out[i]] == 0)
			l.grad[l.out[i]] = make_out(&m, TK_GRADIENT, m.tensor[l.out[i]].bytes);
	for (int i = n - 1; i >= 0 && !m.failed; i--)
		for (int k = 0; k < l.nin[i] && !m.failed; k++)
			layered_gradient(&m, &l, i, k);
	make_keep(&m, l.grad[source]);
	return make_finish(&m, title(a, "layered-train", n, seed));
}

/* --- U-shapes: n levels down, n up, each level up reads the same level's end down. --- */

struct problem *family_ladder(struct arena *a, int n, uint64_t seed)
{
	struct net u = net_start(a, seed);
	int *skip = ARENA_ARRAY(a, int, n + 1);
	char s[32];
	if (!skip)
		return NULL;
	int64_t bytes = 8 << 20;
	int x = u.input = net_input(&u, bytes, "x");
	for (int i = 0; i < n; i++) {
		struct net_linear l = {.out = bytes,
			.weight = 1 << 16,
			.flops = 1e6 * (20 + make_roll(&u.m, 200))};
		snprintf(s, sizeof s, "down%d", i);
		x = net_unary(
			&u, arena_printf(a, "%s.relu", s), net_linear(&u, s, x, &l), NET_OUTPUT);
		skip[i] = x;
		if (i % 3 == 2 && bytes > 1 << 16)
			x = net_pool(&u, arena_printf(a, "%s.pool", s), x, bytes /= 2, true);
	}
	for (int i = n - 1; i >= 0; i--) {
		bytes = net_bytes(&u, skip[i]);
		struct net_linear l = {.out = bytes,
			.weight = 1 << 16,
			.flops = 1e6 * (20 + make_roll(&u.m, 200))};
		snprintf(s, sizeof s, "up%d", i);
		x = net_linear(&u, s, x, &l);
		x = net_add(&u, arena_printf(a, "%s.add", s), x, skip[i]);
		x = net_unary(&u, arena_printf(a, "%s.relu", s), x, NET_OUTPUT);
	}
	return net_train(&u, x, 1 << 12, title(a, "ladder", n, seed));
}

/* A dense block: op i reads everything before it, so that nothing can be dropped for long. */
struct problem *family_dense(struct arena *a, int n, uint64_t seed)
{
	struct net d = net_start(a, seed);
	int *x = ARENA_ARRAY(a, int, n + 1);
	if (!x)
		return NULL;
	d.input = net_input(&d, 4 << 20, "x");
	struct net_linear stem = {.out = 2 << 20, .weight = 1 << 14, .flops = 1e8};
	x[0] = net_linear(&d, "stem", d.input, &stem);
	for (int i = 1; i <= n; i++) {
		const char *s = arena_printf(a, "block%d", i);
		if (!s)
			return NULL;
		int all = net_concat(&d, arena_printf(a, "%s.concat", s), x, i);
		struct net_linear l = {.out = 1 << 20,
			.weight = (int64_t)i << 14,
			.flops = 1e7 * (5 + i + make_roll(&d.m, 10))};
		all = net_unary(&d, arena_printf(a, "%s.relu", s), all, NET_OUTPUT);
		x[i] = net_linear(&d, s, all, &l);
	}
	return net_train(&d, net_concat(&d, "all", x, n + 1), 1 << 12, title(a, "dense", n, seed));
}
