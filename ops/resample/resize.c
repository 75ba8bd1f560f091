/* Resize and Upsample: separable interpolation between fixed places, so a table of weights for each
 * axis and one stint.Resample. The places and weights are those of ONNX's text and of its reference
 * implementation (onnx/reference/ops/op_resize.py). */
#include <inttypes.h>

#include "ops/resample/resample_op.h"

enum place {
	HALF_PIXEL,
	HALF_PIXEL_SYMMETRIC,
	PYTORCH_HALF_PIXEL,
	ALIGN_CORNERS,
	ASYMMETRIC,
	TF_HALF_PIXEL_FOR_NN,
	TF_CROP_AND_RESIZE,
};

enum how { NEAREST, LINEAR, CUBIC };

/* SIMPLE is what runtimes do at opset 10: ceil where the axis shrinks, floor elsewhere. */
enum round { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, FLOOR_DOWN, CEIL_UP, SIMPLE };

struct resize {
	enum place place;
	enum how how;
	enum round round;
	bool antialias, exclude_outside;
	double cubic;
};

/* Along one axis. */
struct stretch {
	int64_t in, out;
	double scale;      /* out / in, about */
	double begin, end; /* of the region of interest, in [0, 1] */
};

/* --- Attributes --- */

static enum status read_modes(struct graph *g, const struct node *n, struct resize *r)
{
	static const char *const places[] = {"half_pixel", "half_pixel_symmetric",
		"pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
		"tf_crop_and_resize", NULL};
	static const char *const hows[] = {"nearest", "linear", "cubic", "bilinear", NULL};
	static const char *const rounds[] = {
		"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
	const bool old = n->op->until == 11 || node_is(n, "Upsample");
	int place, how, round;
	TRY(data_word(g, n, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel",
		places, &place));
	TRY(data_word(g, n, "mode", "nearest", hows, &how));
	TRY(data_word(g, n, "nearest_mode", old ? "floor" : "round_prefer_floor", rounds, &round));
	r->place = (enum place)place;
	r->how = how == 3 ? LINEAR : (enum how)how;
	r->round = n->op->until == 11 ? SIMPLE : (enum round)round;
	r->cubic = node_float(n, "cubic_coeff_a", -0.75);
	r->antialias = node_int(n, "antialias", 0) != 0;
	r->exclude_outside = node_int(n, "exclude_outside", 0) != 0;
	return ST_OK;
}

/* Input k, known and of `count` values; NULL where it is absent or empty. */
static enum status known(struct graph *g, const struct node *n, int k, int count, const char *what,
	const struct tensor **out)
{
	const struct tensor *t = node_input(n, k);
	*out = NULL;
	if (!t || t->numel == 0)
		return ST_OK;
	if (t->role != TR_CONSTANT)
		return node_fail(
			g, n, NULL, "its %s ('%s') are not known at compile time", what, t->name);
	if (t->numel != count)
		return node_fail(g, n, NULL, "has %" PRId64 " %s where there are %d axes", t->numel,
			what, count);
	*out = t;
	return ST_OK;
}

static enum status read_axes(struct graph *g, const struct node *n, int rank, int *count, int *axis)
{
	int len;
	const int64_t *v;
	bool seen[RANK_MAX] = {false};
	TRY(node_ints(g, n, "axes", -1, &len, &v));
	*count = v ? len : rank;
	if (*count > rank)
		return node_fail(g, n, NULL, "lists more axes than there are");
	for (int i = 0; i < *count; i++) {
		TRY(node_axis(g, n, v ? v[i] : i, rank, &axis[i]));
		if (seen[axis[i]])
			return node_fail(g, n, NULL, "axis %d is listed twice", axis[i]);
		seen[axis[i]] = true;
	}
	return ST_OK;
}

/* Sizes were given: scales from them, one for all axes where the ratio is to stay. */
static void keep_ratio(const char *policy, int count, const int *axis, struct stretch *s)
{
	const bool less = !strcmp(policy, "not_larger");
	double scale = 0;
	if (!less && strcmp(policy, "not_smaller") != 0)
		return;
	for (int i = 0; i < count; i++) {
		const double v = s[axis[i]].scale;
		scale = i == 0 || (less ? v < scale : v > scale) ? v : scale;
	}
	for (int i = 0; i < count; i++) {
		s[axis[i]].scale = scale;
		s[axis[i]].out = (int64_t)(scale * (double)s[axis[i]].in + 0.5);
	}
}

static enum status read_stretch(struct graph *g, const struct node *n, const struct tensor *scales,
	const struct tensor *sizes, const struct attr *list, int i, struct stretch *s)
{
	enum { LARGEST = 1 << 30 };
	if (sizes) {
		s->out = tensor_int(sizes, i);
		if (s->out < 0 || s->out > LARGEST || s->in < 1)
			return node_fail(g, n, NULL,
				"cannot go from %" PRId64 " to %" PRId64 " elements along an axis",
				s->in, s->out);
		s->scale = (double)s->out / (double)s->in;
		return ST_OK;
	}
	s->scale = scales                      ? tensor_real(scales, i)
		   : list->kind == ATTR_FLOATS ? list->floats[i]
					       : (double)list->ints[i];
	s->scale = (double)(float)s->scale; /* as files have it, whatever the graph's real type */
	if (!(s->scale > 0 && s->scale * (double)s->in < LARGEST))
		return node_fail(g, n, NULL, "cannot scale an axis by %g", s->scale);
	/* 3 * 0.333333343 is 1 */
	s->out = (int64_t)(s->scale * (double)s->in * (1 + 1e-7));
	return ST_OK;
}

/* What becomes of each axis. Scales are an attribute of Upsample 7, input 1 up to opset 10 and
 * input 2 after, where input 1 is the region of interest and input 3 the sizes. */
static enum status read_axis_sizes(struct graph *g, const struct node *n, struct stretch *s)
{
	const struct tensor *x = n->in[0], *roi = NULL, *scales, *sizes = NULL;
	const bool old = n->op->until == 11 || node_is(n, "Upsample");
	const struct attr *list = node_attr(n, "scales");
	int count, axis[RANK_MAX];
	TRY(read_axes(g, n, x->rank, &count, axis));
	TRY(known(g, n, old ? 1 : 2, count, "scales", &scales));
	if (!old) {
		TRY(known(g, n, 1, 2 * count, "roi's numbers", &roi));
		TRY(known(g, n, 3, count, "sizes", &sizes));
	}
	if (list && (list->n != count || (list->kind != ATTR_FLOATS && list->kind != ATTR_INTS)))
		return node_fail(
			g, n, NULL, "has %d scales where there are %d axes", list->n, count);
	if (!scales && !sizes && !list)
		return node_fail(g, n, NULL, "has neither scales nor sizes");
	for (int k = 0; k < x->rank; k++)
		s[k] = (struct stretch){x->dim[k], x->dim[k], 1, 0, 1};
	for (int i = 0; i < count; i++) {
		TRY(read_stretch(g, n, scales, sizes, list, i, &s[axis[i]]));
		if (roi) {
			s[axis[i]].begin = tensor_real(roi, i);
			s[axis[i]].end = tensor_real(roi, count + i);
		}
	}
	if (sizes)
		keep_ratio(node_string(n, "keep_aspect_ratio_policy", "stretch"), count, axis, s);
	return ST_OK;
}

/* --- Places and weights --- */

/* Where output i lies among the input's elements. */
static double place_of(enum place place, const struct stretch *s, int64_t i)
{
	const double size = (double)s->in, length = s->scale * size, at = (double)i;
	const double half = (at + 0.5) / s->scale - 0.5;
	switch (place) {
	case HALF_PIXEL:
		return half;
	case HALF_PIXEL_SYMMETRIC:
		return size / 2 * (1 - (double)s->out / length) + half;
	case PYTORCH_HALF_PIXEL:
		return s->out > 1 ? half : -0.5;
	case ALIGN_CORNERS:
		return length == 1 || s->out == 1 ? 0 : at * (size - 1) / (length - 1);
	case ASYMMETRIC:
		return at / s->scale;
	case TF_HALF_PIXEL_FOR_NN:
		return half + 0.5;
	case TF_CROP_AND_RESIZE:
		break;
	}
	if (s->out == 1)
		return (s->begin + s->end) * (size - 1) / 2;
	return (s->begin + at * (s->end - s->begin) / (length - 1)) * (size - 1);
}

static int64_t clamp(int64_t i, int64_t size)
{
	return i < 0 ? 0 : i < size ? i : size - 1;
}

/* In single precision, as runtimes compute it: 1 / 0.333333343 is 3 there. */
static int64_t nearest(enum round round, bool shrinks, double place)
{
	const double x = (double)(float)place, low = floor(x);
	switch (round) {
	case ROUND_PREFER_FLOOR:
		return (int64_t)ceil(x - 0.5);
	case ROUND_PREFER_CEIL:
		return (int64_t)floor(x + 0.5);
	case FLOOR_DOWN:
		return (int64_t)low;
	case CEIL_UP:
		return (int64_t)ceil(x);
	case SIMPLE:
		break;
	}
	return (int64_t)(shrinks ? ceil(x) : low);
}

/* The kernel at distance x. Cubic: R. Keys, "Cubic convolution interpolation for digital image
 * processing", IEEE Transactions on Acoustics, Speech, and Signal Processing 29 (1981). */
static double kernel_at(const struct resize *r, double x)
{
	const double a = r->cubic;
	x = fabs(x);
	if (r->how == LINEAR)
		return x < 1 ? 1 - x : 0;
	if (x <= 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Elements on either side of a place that the kernel reaches. Antialiasing widens it where the axis
 * shrinks. */
static int64_t reach_of(const struct resize *r, double scale)
{
	const double radius = r->how == CUBIC ? 2 : 1;
	return (int64_t)(r->antialias && scale < 1 ? ceil(radius / scale) : radius);
}

static void add_terms(
	const struct resize *r, const struct stretch *s, double place, struct resample_axis *a)
{
	const int64_t low = (int64_t)floor(place), reach = reach_of(r, s->scale);
	const double narrow = r->antialias && s->scale < 1 ? s->scale : 1;
	double sum = 0;
	for (int64_t i = low - reach; i <= low + reach; i++)
		if (!r->exclude_outside || (i >= 0 && i < s->in))
			sum += kernel_at(r, ((double)i - place) * narrow);
	/* they add up to 1 but for what was left out, and rounding */
	if (!r->exclude_outside && narrow == 1)
		sum = 1;
	for (int64_t i = low - reach; i <= low + reach; i++)
		if (!r->exclude_outside || (i >= 0 && i < s->in))
			resample_term(a, clamp(i, s->in),
				kernel_at(r, ((double)i - place) * narrow) / sum);
}

static enum status make_axis(struct graph *g, const struct node *n, const struct resize *r,
	const struct stretch *s, struct resample_axis *a)
{
	const bool crops = r->place == TF_CROP_AND_RESIZE;
	const int64_t each = r->how == NEAREST ? 1 : 2 * reach_of(r, s->scale) + 1;
	*a = resample_same(s->in);
	if (s->in == s->out && s->scale == 1 && (!crops || (s->begin == 0 && s->end == 1)))
		return ST_OK;
	TRY(resample_begin(g, n, s->in, s->out, each * s->out, a));
	for (int64_t i = 0; i < s->out; i++) {
		const double place = place_of(r->place, s, i);
		if (crops && !(place >= 0 && place <= (double)(s->in - 1)))
			; /* no term: extrapolated */
		else if (r->how == NEAREST)
			resample_term(a, clamp(nearest(r->round, s->scale < 1, place), s->in), 1);
		else
			add_terms(r, s, place, a);
		resample_row(a);
	}
	resample_end(a);
	return ST_OK;
}

/* --- The operators --- */

static enum status resize_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	struct resample *p = ARENA_NEW(g->arena, struct resample);
	struct stretch s[RANK_MAX];
	struct resize r;
	int64_t dim[RANK_MAX];
	if (!p)
		return diag_nomem(g->diag);
	TRY(read_modes(g, n, &r));
	if (!dtype_is_real(x->dtype) && r.how != NEAREST)
		return node_fail(g, n, NULL, "needs real data");
	TRY(read_axis_sizes(g, n, s));
	p->rank = x->rank;
	if (r.place == TF_CROP_AND_RESIZE)
		p->outside = node_float(n, "extrapolation_value", 0);
	for (int k = 0; k < x->rank; k++) {
		TRY(make_axis(g, n, &r, &s[k], &p->axis[k]));
		dim[k] = s[k].out;
	}
	n->param = p;
	return data_output(g, n, 0, x->dtype, x->rank, dim);
}

static enum status resize_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	out[0] = resample_build(g, in[0], n->param, n->nattr, n->attr);
	return g->failed;
}

static const struct op_example upsample_examples[] = {
	{.in = "a,b,c,d =f[1,1,2,3]"},
	{.in = "a,b,c,d =f[1,1,2,3]", .attr = "mode=linear"},
	{.in = "2,3,5 =f[1,1,1.5]", .attr = "mode=linear"},
	{0},
};

static const struct op_example old_examples[] = {
	{.in = "a,b,c,d =f[1,1,2,2]", .attr = "mode=nearest"},
	{.in = "2,2,5,7 =f[1,1,0.6,0.6]", .attr = "mode=nearest"},
	{.in = "a,b,C,D =f[1,1,0.7,1.6]", .attr = "mode=linear"},
	{0},
};

static const struct op_example resize_examples[] = {
	{.in = "a,b,c,d - =f[1,1,2,2]"},
	{.in = "a,b,C,D - - =[a,b,d,c]"},
	{.in = "a,b,C,D - - =[a,b,d,H]", .attr = "mode=linear"},
	{.in = "a,b,C,D - - =[a,b,d,H]", .attr = "mode=cubic"},
	{.in = "2,2,7,5 - =f[1,1,0.6,1.7]", .attr = "nearest_mode=floor"},
	{.in = "2,2,7,5 - =f[1,1,0.6,1.7]", .attr = "nearest_mode=ceil"},
	{.in = "2,2,7,5 - =f[1,1,0.6,2]", .attr = "nearest_mode=round_prefer_ceil"},
	{.in = "2,2,6,4 - =f[1,1,0.5,2]",
		.attr = "nearest_mode=floor coordinate_transformation_mode=asymmetric"},
	{.in = "2,2,6,4 - - =[2,2,9,3]",
		.attr = "coordinate_transformation_mode=tf_half_pixel_for_nn nearest_mode=floor"},
	{.in = "2,2,6,4 - - =[2,2,9,3]",
		.attr = "mode=linear coordinate_transformation_mode=align_corners"},
	{.in = "2,2,6,4 - - =[2,2,1,7]",
		.attr = "mode=cubic coordinate_transformation_mode=align_corners"},
	{.in = "2,2,6,4 - - =[2,2,1,7]",
		.attr = "mode=linear coordinate_transformation_mode=pytorch_half_pixel"},
	{.in = "2,2,6,4 - - =[2,2,3,7]",
		.attr = "mode=linear coordinate_transformation_mode=asymmetric"},
	{.in = "2,2,6,5 - =f[1,1,0.7,1.3]",
		.attr = "mode=cubic coordinate_transformation_mode=half_pixel_symmetric"},
	{.in = "1,2,5,6 =f[0,0,0.4,-0.1,1,1,1.2,0.8] - =[1,2,4,5]",
		.attr = "mode=linear coordinate_transformation_mode=tf_crop_and_resize "
			"extrapolation_value=2.5"},
	{.in = "1,2,5,6 =f[0,0,-0.4,0.1,1,1,0.6,0.8] - =[1,2,4,1]",
		.attr = "coordinate_transformation_mode=tf_crop_and_resize "
			"extrapolation_value=-1.5"},
	{.in = "4,5 =f[0.9,-0.5] - =[4]",
		.attr = "axes=1 mode=linear coordinate_transformation_mode=tf_crop_and_resize"},
	{.in = "2,2,6,4 - - =[2,2,8,7]", .attr = "mode=cubic exclude_outside=1"},
	{.in = "2,2,6,4 - - =[2,2,8,7]", .attr = "mode=cubic cubic_coeff_a=-0.5"},
	{.in = "2,2,9,8 - - =[2,2,4,5]", .attr = "mode=linear antialias=1"},
	{.in = "2,2,9,8 - - =[2,2,4,9]", .attr = "mode=cubic antialias=1"},
	{.in = "2,2,9,8 - - =[2,2,4,5]", .attr = "mode=linear antialias=1 exclude_outside=1"},
	{.in = "2,2,9,8 - - =[2,2,4,5]", .attr = "mode=cubic antialias=1 exclude_outside=1"},
	{.in = "2,6,5,3 - - =[4,9]", .attr = "mode=linear axes=2,1"},
	{.in = "2,6,5,3 - - =[7]", .attr = "mode=cubic axes=-2"},
	{.in = "2,2,6,4 - - =[9,9]",
		.attr = "mode=linear axes=2,3 keep_aspect_ratio_policy=not_larger"},
	{.in = "2,2,6,4 - - =[9,9]", .attr = "axes=2,3 keep_aspect_ratio_policy=not_smaller"},
	{.in = "a,b,c - =f[1,1,1.5]", .attr = "mode=linear"},
	{.in = "a,b,c,d,e - - =[a,b,f,g,h]", .attr = "mode=linear"},
	{.in = "2,2,3,4,3 - - =[2,2,5,3,6]", .attr = "mode=cubic"},
	{.in = "2,2,3,4,3 - - =[2,2,6,4,9]"},
	{.in = "2,2,3,2,2 - - =[3,3,2,3,3]", .attr = "mode=linear"}, /* two nodes */
	{.in = "2,3,4 - - =[2,3,4]", .attr = "mode=linear"},
	{.in = "9,2,16,16 - =f[1,1,2,2]", .attr = "mode=linear"},
	{0},
};

const struct op_def ops_resize[] = {
	{.name = "Upsample",
		.apart = APART_FIRST,
		.since = 7,
		.until = 11, /* deprecated at 10: files carry it on */
		.min_in = 1,
		.max_in = 2,
		.known = 2, /* scales */
		.infer = resize_infer,
		.lower = resize_lower,
		.example = upsample_examples},
	{.name = "Resize",
		.apart = APART_FIRST,
		.since = 10,
		.until = 11,
		.min_in = 2,
		.known = 2,
		.infer = resize_infer,
		.lower = resize_lower,
		.example = old_examples},
	{.name = "Resize",
		.apart = APART_FIRST,
		.since = 11,
		.min_in = 1,
		.max_in = 4,
		.known = 14, /* roi, scales, sizes */
		.infer = resize_infer,
		.lower = resize_lower,
		.example = resize_examples},
	{.name = NULL},
};
