/* SPDX-License-Identifier: MIT-0 */
/* Connectionist temporal classification (Graves et al., 2006), as torch.nn.CTCLoss has it: how
 * probable it is that steps name a sample's labels in their order, each over one or more steps,
 * with blanks between them wherever, and at least one between two that are the same.
 *
 * x holds logarithms of probabilities. A path goes through states 0 ... 2 L of L labels: even ones
 * are blanks, state s is label s / 2 otherwise; each step stays, goes on by one, or by two over a
 * blank between different labels. alpha[s] is the logarithm of what all paths to state s add up to,
 * this step's part included, beta[s] of those from there to the end. Sums in double: they run over
 * all steps. A turn is a sample. */
#ifndef STINT_KERNELS_CTC_H
#define STINT_KERNELS_CTC_H

#include "math_double.h"
#include "words.h"

struct ctc {
	int64_t steps, batch, classes, room; /* room: labels of a sample at most */
	int64_t step, sample;                /* x: elements from one to the next */
	int64_t blank;
	int zero_infinity, timed; /* timed: a sample's labels stand behind its number of steps */
};

/* What a sample's loss is divided by: its labels, and in CTC_MEAN the samples too. */
enum ctc_mean { CTC_MEAN, CTC_SUM, CTC_SHARE };

static inline int64_t ctc_valid(const int64_t *control, const struct ctc *c)
{
	return MIN(control[2], c->batch);
}

static inline const int64_t *ctc_row(const int64_t *label, int64_t n, const struct ctc *c)
{
	return label + n * (c->room + c->timed) + c->timed;
}

static inline int64_t ctc_steps(const int64_t *row, const struct ctc *c)
{
	return c->timed ? row[-1] : c->steps;
}

/* A sample's labels end before the first that is negative, or the blank. */
static inline int64_t ctc_length(const int64_t *label, const struct ctc *c)
{
	int64_t n = 0;
	while (n < c->room && label[n] >= 0 && label[n] != c->blank)
		n++;
	return n;
}

/* Refuses what is no class, and more steps than there are, or none. */
static inline int check_ctc(
	const int64_t *label, const int64_t *control, const struct ctc *c, int64_t *bad)
{
	for (int64_t n = 0; n < ctc_valid(control, c); n++) {
		const int64_t *const l = ctc_row(label, n, c);
		const int64_t length = ctc_length(l, c), steps = ctc_steps(l, c);
		if (steps < 1 || steps > c->steps)
			return BAD_INDEX(steps);
		for (int64_t i = 0; i < length; i++)
			if (l[i] >= c->classes)
				return BAD_INDEX(l[i]);
	}
	return 0;
}

/* The labels of a sample: fewer than 0 where it does not count, or one is no class, which a GPU's
 * threads may see before it is refused. */
static inline int64_t ctc_labels(
	const int64_t *label, const int64_t *control, int64_t n, const struct ctc *c)
{
	const int64_t length = ctc_length(label, c), steps = ctc_steps(label, c);
	for (int64_t i = 0; i < length; i++)
		if (label[i] >= c->classes)
			return -1;
	if (steps < 1 || steps > c->steps)
		return -1;
	return n < ctc_valid(control, c) ? length : -1;
}

static inline int64_t ctc_class(const int64_t *label, int64_t state, const struct ctc *c)
{
	return state % 2 ? label[state / 2] : c->blank;
}

/* A path may come to state s from s - 2. */
static inline int ctc_skips(const int64_t *label, int64_t s)
{
	return s % 2 && s > 1 && label[s / 2] != label[s / 2 - 1];
}

/* The logarithm of a sum of three, given theirs. */
static inline double ctc_sum(double a, double b, double c)
{
	double most = a;
	if (b > most || b != b)
		most = b;
	if (c > most || c != c)
		most = c;
	if (most == -(double)INFINITY)
		return most;
	return most +
	       log_double(exp_double(a - most) + exp_double(b - most) + exp_double(c - most));
}

static inline void ctc_begin(
	double *alpha, const real *x, const int64_t *label, int64_t states, const struct ctc *c)
{
	for (int64_t s = 0; s < states; s++)
		alpha[s] = s < 2 ? (double)x[ctc_class(label, s, c)] : -(double)INFINITY;
}

/* alpha of a step from that of the one before, which may be the same place. */
static inline void ctc_advance(double *alpha, const double *before, const real *x,
	const int64_t *label, int64_t states, const struct ctc *c)
{
	const double none = -(double)INFINITY;
	for (int64_t s = states - 1; s >= 0; s--)
		alpha[s] = ctc_sum(before[s], s > 0 ? before[s - 1] : none,
				   ctc_skips(label, s) ? before[s - 2] : none) +
			   (double)x[ctc_class(label, s, c)];
}

/* beta of a step from that of the one behind it, in its place. */
static inline void ctc_retreat(
	double *beta, const real *x, const int64_t *label, int64_t states, const struct ctc *c)
{
	const double none = -(double)INFINITY;
	for (int64_t s = 0; s < states; s++)
		beta[s] = ctc_sum(beta[s], s + 1 < states ? beta[s + 1] : none,
				  s + 2 < states && ctc_skips(label, s + 2) ? beta[s + 2] : none) +
			  (double)x[ctc_class(label, s, c)];
}

/* The logarithm of what paths that end well add up to. */
static inline double ctc_total(const double *alpha, int64_t states)
{
	const double none = -(double)INFINITY;
	return ctc_sum(alpha[states - 1], states > 1 ? alpha[states - 2] : none, none);
}

static inline double ctc_share(int64_t labels, enum ctc_mean mean)
{
	return mean == CTC_SUM || labels < 1 ? 1 : (double)labels;
}

/* `room`: a double for each state. */
static inline void ctc_losses(double *loss, const real *x, const int64_t *label,
	const int64_t *control, void *room, const struct ctc *c, enum ctc_mean mean, int64_t from,
	int64_t to)
{
	double *const alpha = (double *)room;
	for (int64_t n = from; n < to; n++) {
		const int64_t *const l = ctc_row(label, n, c);
		const int64_t labels = ctc_labels(l, control, n, c), states = 2 * labels + 1;
		const real *at = x + n * c->sample;
		loss[n] = 0;
		if (labels < 0)
			continue;
		const int64_t steps = ctc_steps(l, c);
		ctc_begin(alpha, at, l, states, c);
		for (int64_t t = 1; t < steps; t++)
			ctc_advance(alpha, alpha, at + t * c->step, l, states, c);
		const double total = ctc_total(alpha, states);
		if (!(c->zero_infinity && total == -(double)INFINITY))
			loss[n] = -total / ctc_share(labels, mean);
	}
}

static inline void ctc_join(real *y, const double *loss, const int64_t *control,
	const struct ctc *c, enum ctc_mean mean)
{
	double total = 0;
	for (int64_t n = 0; n < c->batch; n++)
		total += loss[n];
	y[0] = (real)(mean == CTC_MEAN ? total / (double)ctc_valid(control, c) : total);
}

/* One step's gradient, dx of all classes: of class k by -scale * the share of all paths that go
 * through its states. */
static inline void ctc_shares(real *dx, const real *x, const double *alpha, const double *beta,
	double total, double scale, const int64_t *label, int64_t states, const struct ctc *c)
{
	double blank = 0;
	for (int64_t k = 0; k < c->classes; k++)
		dx[k] = 0;
	for (int64_t s = 0; s < states; s++) {
		const double both = alpha[s] + beta[s]; /* this step's part is in both */
		const int64_t k = ctc_class(label, s, c);
		if (both == -(double)INFINITY)
			continue;
		const double share = exp_double(both - (double)x[k] - total);
		if (s % 2)
			dx[k] -= (real)(scale * share);
		else
			blank += share;
	}
	dx[c->blank] -= (real)(scale * blank);
}

/* alpha of all steps, one behind the other. */
static inline void ctc_forward(double *alpha, const real *x, const int64_t *label, int64_t steps,
	int64_t states, const struct ctc *c)
{
	ctc_begin(alpha, x, label, states, c);
	for (int64_t t = 1; t < steps; t++)
		ctc_advance(alpha + t * states, alpha + (t - 1) * states, x + t * c->step, label,
			states, c);
}

/* beta of the last step: behind it there is but the end. */
static inline void ctc_end(
	double *beta, const real *x, const int64_t *label, int64_t states, const struct ctc *c)
{
	for (int64_t s = 0; s < states; s++)
		beta[s] = s + 2 < states ? -(double)INFINITY : (double)x[ctc_class(label, s, c)];
}

/* The gradient of a sample with a path, the steps from the last to the first. */
static inline void ctc_backward(real *dx, const real *x, double *alpha, double scale,
	const int64_t *label, int64_t steps, int64_t states, const struct ctc *c)
{
	double *const beta = alpha + steps * states;
	ctc_forward(alpha, x, label, steps, states, c);
	const double total = ctc_total(beta - states, states);
	for (int64_t t = steps - 1; t >= 0; t--) {
		const real *const at = x + t * c->step;
		if (t == steps - 1)
			ctc_end(beta, at, label, states, c);
		else
			ctc_retreat(beta, at, label, states, c);
		ctc_shares(dx + t * c->step, at, alpha + t * states, beta, total, scale, label,
			states, c);
	}
}

/* The derivative by x. (PyTorch adds exp(x), which through the log-softmax before it comes to the
 * same.) A sample without a path has none, nor have steps behind its last. `room`: a double for
 * each state of each step, and for those of beta. */
static inline void ctc_grad(real *dx, const real *dloss, const real *x, const int64_t *label,
	const int64_t *control, void *room, const struct ctc *c, enum ctc_mean mean, int64_t from,
	int64_t to)
{
	const double whole = mean == CTC_MEAN ? (double)ctc_valid(control, c) : 1;
	for (int64_t n = from; n < to; n++) {
		const int64_t *const l = ctc_row(label, n, c);
		const int64_t labels = ctc_labels(l, control, n, c),
			      steps = labels < 0 ? 0 : ctc_steps(l, c);
		const double scale = (double)dloss[0] / whole / ctc_share(labels, mean);
		real *const out = dx + n * c->sample;
		for (int64_t t = steps; t < c->steps; t++)
			for (int64_t k = 0; k < c->classes; k++)
				out[t * c->step + k] = 0;
		if (steps > 0)
			ctc_backward(out, x + n * c->sample, (double *)room, scale, l, steps,
				2 * labels + 1, c);
	}
}

#endif
