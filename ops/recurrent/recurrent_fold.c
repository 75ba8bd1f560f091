/* LSTM, GRU and RNN as ONNX defines them, one number after another in double precision: what tests
 * compare the kernels with. */
#include "ops/recurrent/recurrent_op.h"

/* One sample in one direction. */
struct walk {
	const struct recurrent *p;
	const struct node *n;
	int64_t d, b;
	double *pre, *rec, *h, *c; /* [gates * hidden] twice, [hidden] twice */
};

static int64_t state_at(const struct recurrent *p, int64_t d, int64_t b)
{
	return (p->batch_first ? b * p->directions + d : d * p->batch + b) * p->hidden;
}

static int64_t y_at(const struct recurrent *p, int64_t d, int64_t b, int64_t t)
{
	return ((p->batch_first ? b * p->steps + t : t) * p->directions *
			       (p->batch_first ? 1 : p->batch) +
		       (p->batch_first ? d : d * p->batch + b)) *
	       p->hidden;
}

static double given(const struct walk *w, int input, int64_t i)
{
	return node_input(w->n, input) ? tensor_real(w->n->in[input], i) : 0;
}

/* Activation k of gate row j, whose argument is x. */
static double act(const struct walk *w, int k, double x)
{
	const double c = w->p->clip;
	return activation_value(&w->p->act[w->d][k], c > 0 && x < -c ? -c : c > 0 && x > c ? c : x);
}

/* rec = R h (rows [from, to)) + Rb; the same with `v` for h. */
static void recurrent_part(struct walk *w, int64_t from, int64_t to, const double *v)
{
	const int64_t h = w->p->hidden, wide = w->p->gates * h;
	for (int64_t j = from; j < to; j++) {
		w->rec[j] = given(w, 3, w->d * 2 * wide + wide + j);
		for (int64_t k = 0; k < h; k++)
			w->rec[j] += tensor_real(w->n->in[2], (w->d * wide + j) * h + k) * v[k];
	}
}

/* pre = W x + Wb */
static void input_part(struct walk *w, int64_t t)
{
	const struct recurrent *p = w->p;
	const int64_t wide = p->gates * p->hidden;
	const int64_t x = (p->batch_first ? w->b * p->steps + t : t * p->batch + w->b) * p->inputs;
	for (int64_t j = 0; j < wide; j++) {
		w->pre[j] = given(w, 3, w->d * 2 * wide + j);
		for (int64_t k = 0; k < p->inputs; k++)
			w->pre[j] += tensor_real(w->n->in[1], (w->d * wide + j) * p->inputs + k) *
				     tensor_real(w->n->in[0], x + k);
	}
}

static void lstm(struct walk *w)
{
	const int64_t h = w->p->hidden, peep = w->d * 3 * h;
	recurrent_part(w, 0, 4 * h, w->h);
	for (int64_t j = 0; j < h; j++) {
		const double old = w->c[j];
		const double *x = w->pre, *r = w->rec;
		const double i = act(w, 0, x[j] + r[j] + given(w, 7, peep + j) * old);
		const double f = act(
			w, 0, x[2 * h + j] + r[2 * h + j] + given(w, 7, peep + 2 * h + j) * old);
		const double g = act(w, 1, x[3 * h + j] + r[3 * h + j]);
		w->c[j] = (w->p->input_forget ? 1 - i : f) * old + i * g;
		const double o = act(
			w, 0, x[h + j] + r[h + j] + given(w, 7, peep + h + j) * w->c[j]);
		w->h[j] = o * act(w, 2, w->c[j]);
	}
}

static void gru(struct walk *w)
{
	const int64_t h = w->p->hidden;
	double *x = w->pre, *r = w->rec, *reset = w->c;
	recurrent_part(w, 0, 3 * h, w->h);
	for (int64_t j = 0; j < 2 * h; j++)
		x[j] = act(w, 0, x[j] + r[j]);
	for (int64_t j = 0; j < h; j++)
		reset[j] = x[h + j] * w->h[j];
	if (!w->p->reset_after)
		recurrent_part(w, 2 * h, 3 * h, reset);
	for (int64_t j = 0; j < h; j++) {
		const double scale = w->p->reset_after ? x[h + j] : 1;
		const double g = act(w, 1, x[2 * h + j] + scale * r[2 * h + j]);
		w->h[j] = (1 - x[j]) * g + x[j] * w->h[j];
	}
}

static void rnn(struct walk *w)
{
	recurrent_part(w, 0, w->p->hidden, w->h);
	for (int64_t j = 0; j < w->p->hidden; j++)
		w->h[j] = act(w, 0, w->pre[j] + w->rec[j]);
}

/* A value of output k, where the node has it. */
static void put(const struct walk *w, void *const *out, int k, int64_t at, const double *v)
{
	for (int64_t j = 0; k < w->n->nout && j < w->p->hidden; j++)
		value_set(w->n->out[k]->dtype, out[k], at + j, v ? v[j] : 0);
}

static void walk(struct walk *w, void *const *out)
{
	static void (*const step[])(struct walk *) = {lstm, gru, rnn};
	const struct recurrent *p = w->p;
	const bool back = p->reverse || w->d == 1;
	const int64_t at = state_at(p, w->d, w->b);
	const int64_t len = node_input(w->n, 4) ? tensor_int(w->n->in[4], w->b) : p->steps;
	for (int64_t j = 0; j < p->hidden; j++) {
		w->h[j] = given(w, 5, at + j);
		w->c[j] = given(w, 6, at + j);
	}
	for (int64_t s = 0; s < p->steps; s++) {
		const int64_t t = back && s < len ? len - 1 - s : s;
		if (s < len) {
			input_part(w, t);
			step[p->cell](w);
		}
		put(w, out, 0, y_at(p, w->d, w->b, t), s < len ? w->h : NULL);
	}
	put(w, out, 1, at, w->h);
	put(w, out, 2, at, w->c);
}

enum status recurrent_fold(struct graph *g, const struct node *n, void *const *out)
{
	const struct recurrent *p = n->param;
	struct walk w = {.p = p, .n = n};
	w.pre = ARENA_ARRAY(g->arena, double, 2 * p->gates * p->hidden);
	w.h = ARENA_ARRAY(g->arena, double, 2 * p->hidden);
	if (!w.pre || !w.h)
		return diag_nomem(g->diag);
	w.rec = w.pre + p->gates * p->hidden;
	w.c = w.h + p->hidden;
	for (int64_t b = 0; node_input(n, 4) && b < p->batch; b++)
		if (tensor_int(n->in[4], b) < 0 || tensor_int(n->in[4], b) > p->steps)
			return node_fail(g, n, NULL,
				"sequence_lens has %" PRId64 ", where there are %" PRId64 " steps",
				tensor_int(n->in[4], b), p->steps);
	for (w.d = 0; w.d < p->directions; w.d++)
		for (w.b = 0; w.b < p->batch; w.b++)
			walk(&w, out);
	return ST_OK;
}
