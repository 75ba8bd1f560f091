/* SPDX-License-Identifier: MIT-0 */
/* Losses that are a sum of terms, one an element, by PyTorch's formulas (torch.nn.L1Loss, MSELoss,
 * ...), and their gradients. What counts are the batch's valid rows: control[2] says how many.
 *
 * A term is that of x of the output and t of the target; its slope is the derivative by x. Like
 * PyTorch: |x|' is 0 at 0; the logarithms of bce are at least -100, and its slope's divisor at
 * least 1e-12; what is 0 log 0 is 0. Written so that no exponential overflows where the term does
 * not. */
#ifndef STINT_KERNELS_LOSS_H
#define STINT_KERNELS_LOSS_H

#include "lanes.h"
#include "math.h"

struct loss {
	real beta, delta, pos_weight, margin, eps, alpha, gamma;
	bool log_target, log_input, full;
};

typedef real loss_formula(real x, real t, const struct loss *o);

static inline real sign_of(real d)
{
	return (real)((d > 0) - (d < 0));
}

static inline real mse_term(real x, real t, const struct loss *o)
{
	const real d = x - t;
	(void)o;
	return d * d;
}
static inline real mse_slope(real x, real t, const struct loss *o)
{
	(void)o;
	return 2 * (x - t);
}

static inline real l1_term(real x, real t, const struct loss *o)
{
	(void)o;
	return FABS(x - t);
}
static inline real l1_slope(real x, real t, const struct loss *o)
{
	(void)o;
	return sign_of(x - t);
}

static inline real smooth_l1_term(real x, real t, const struct loss *o)
{
	const real d = x - t;
	return FABS(d) < o->beta ? R(0.5) * d * d / o->beta : FABS(d) - R(0.5) * o->beta;
}
static inline real smooth_l1_slope(real x, real t, const struct loss *o)
{
	const real d = x - t;
	return FABS(d) >= o->beta ? sign_of(d) : d / o->beta;
}

static inline real huber_term(real x, real t, const struct loss *o)
{
	const real d = x - t;
	return FABS(d) < o->delta ? R(0.5) * d * d : o->delta * (FABS(d) - R(0.5) * o->delta);
}
static inline real huber_slope(real x, real t, const struct loss *o)
{
	const real d = x - t;
	return FABS(d) >= o->delta ? (d > 0 ? o->delta : -o->delta) : d;
}

static inline real bce_term(real x, real t, const struct loss *o)
{
	(void)o;
	return (t - 1) * MAX(R(-100), LOG1P(-x)) - t * MAX(R(-100), LOG(x));
}
static inline real bce_slope(real x, real t, const struct loss *o)
{
	(void)o;
	return (x - t) / MAX((1 - x) * x, R(1e-12));
}

static inline real bce_logits_term(real x, real t, const struct loss *o)
{
	return (1 - t) * x + (1 + (o->pos_weight - 1) * t) * (MAX(-x, 0) + LOG1P(EXP(-FABS(x))));
}
static inline real bce_logits_slope(real x, real t, const struct loss *o)
{
	return 1 - t - (1 + (o->pos_weight - 1) * t) / (1 + EXP(x));
}

static inline real kl_div_term(real x, real t, const struct loss *o)
{
	return o->log_target ? EXP(t) * (t - x) : (t == 0 ? 0 : t * LOG(t)) - t * x;
}
static inline real kl_div_slope(real x, real t, const struct loss *o)
{
	(void)x;
	return o->log_target ? -EXP(t) : -t;
}

static inline real soft_margin_term(real x, real t, const struct loss *o)
{
	(void)o;
	return MAX(-t * x, 0) + LOG1P(EXP(-FABS(t * x)));
}
static inline real soft_margin_slope(real x, real t, const struct loss *o)
{
	(void)o;
	return -t / (1 + EXP(t * x));
}

static inline real hinge_term(real x, real t, const struct loss *o)
{
	return (t != 1 ? MAX(0, o->margin - x) : 0) + (t != -1 ? x : 0);
}
static inline real hinge_slope(real x, real t, const struct loss *o)
{
	return R((t != 1 && x <= o->margin ? -1 : 0) + (t != -1 ? 1 : 0));
}

static inline real poisson_term(real x, real t, const struct loss *o)
{
	const real stirling = o->full && t > 1
				      ? t * LOG(t) - t + R(0.5) * LOG(R(6.283185307179586) * t)
				      : 0;
	return (o->log_input ? EXP(x) - t * x : x - t * LOG(x + o->eps)) + stirling;
}
static inline real poisson_slope(real x, real t, const struct loss *o)
{
	return o->log_input ? EXP(x) - t : 1 - t / (x + o->eps);
}

/* torchvision.ops.sigmoid_focal_loss (Lin et al., "Focal Loss for Dense Object Detection", 2017):
 * with the probability p of x, and q = p (1 - t) + (1 - p) t, what is missing to the target,
 * cross-entropy times q^gamma; where alpha is not negative, times alpha for t = 1 and 1 - alpha
 * for 0. 1 - p is made from x, as it keeps its digits so where p is near 1. */
static inline real focal_missing(real x, real t)
{
	return (1 - t) / (1 + EXP(-x)) + t / (1 + EXP(x));
}
static inline real focal_share(real t, const struct loss *o)
{
	return o->alpha >= 0 ? o->alpha * t + (1 - o->alpha) * (1 - t) : 1;
}
static inline real focal_entropy(real x, real t)
{
	return (1 - t) * x + MAX(-x, 0) + LOG1P(EXP(-FABS(x)));
}
static inline real focal_term(real x, real t, const struct loss *o)
{
	return focal_share(t, o) * focal_entropy(x, t) * POW(focal_missing(x, t), o->gamma);
}
static inline real focal_slope(real x, real t, const struct loss *o)
{
	const real p = 1 / (1 + EXP(-x)), rest = 1 / (1 + EXP(x)), q = focal_missing(x, t);
	const real steep = o->gamma == 0 ? 0
					 : focal_entropy(x, t) * o->gamma * POW(q, o->gamma - 1) *
						   p * rest * (1 - 2 * t);
	return focal_share(t, o) * (POW(q, o->gamma) * (p - t) + steep);
}

/* A loss that other nodes have made, element by element. */
static inline real given_term(real x, real t, const struct loss *o)
{
	(void)t;
	(void)o;
	return x;
}

/* How many elements count, of rows of `row` elements; and what their sum is divided by. */
enum loss_mean { PER_ELEMENT, PER_NOTHING, PER_ROW };

static inline int64_t loss_rows(const int64_t *control, int64_t batch)
{
	return MIN(control[2], batch);
}
static inline int64_t loss_divisor(enum loss_mean mean, int64_t rows, int64_t row)
{
	return mean == PER_ELEMENT ? rows * row : mean == PER_ROW ? rows : 1;
}

/* Terms are added LOSS_PART at a time, these sums in double: the parts are the same whatever the
 * threads. A turn is a part. */
enum { LOSS_PART = 1024 };

static inline void loss_parts(double *part, const real *x, const real *t, const int64_t *control,
	int64_t batch, int64_t row, loss_formula term, const struct loss *o, int64_t from,
	int64_t to)
{
	const int64_t n = loss_rows(control, batch) * row;
	for (int64_t p = from; p < to; p++) {
		const int64_t begin = p * LOSS_PART, length = MIN(n - begin, LOSS_PART);
		real sum;
		SUM_IN_LANES(sum, real, j, MAX(length, 0), term(x[begin + j], t[begin + j], o));
		part[p] = (double)sum;
	}
}

static inline void loss_join(real *y, const double *part, const int64_t *control, int64_t batch,
	int64_t row, enum loss_mean mean)
{
	const int64_t rows = loss_rows(control, batch);
	double total = 0;
	for (int64_t p = 0; p * LOSS_PART < rows * row; p++)
		total += part[p];
	y[0] = (real)(total / (double)loss_divisor(mean, rows, row));
}

/* The gradient of terms that are given. A turn is an element. */
static inline void given_grad(real *dx, const real *dloss, const int64_t *control, int64_t batch,
	int64_t row, enum loss_mean mean, int64_t from, int64_t to)
{
	const int64_t rows = loss_rows(control, batch);
	const real scale = dloss[0] / (real)loss_divisor(mean, rows, row);
	for (int64_t i = from; i < to; i++)
		dx[i] = i < rows * row ? scale : 0;
}

/* A turn is an element. dx may be x. */
static inline void loss_grad(real *dx, const real *dloss, const real *x, const real *t,
	const int64_t *control, int64_t batch, int64_t row, enum loss_mean mean, loss_formula slope,
	const struct loss *o, int64_t from, int64_t to)
{
	const int64_t rows = loss_rows(control, batch);
	const real scale = dloss[0] / (real)loss_divisor(mean, rows, row);
	for (int64_t i = from; i < to; i++)
		dx[i] = i < rows * row ? scale * slope(x[i], t[i], o) : 0;
}

#endif
