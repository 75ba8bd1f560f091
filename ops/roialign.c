/* RoiAlign: boxes of an image, each pooled to the same number of bins, from samples between its
 * elements. As in torchvision, no gradient goes into the boxes. The rules are those of ONNX's
 * reference implementation (onnx/reference/ops/op_roi_align.py): mode max takes the largest of a
 * sample's weighted elements. */
#include <inttypes.h>

#include "ops/data.h"

struct align {
	int64_t batch, channels, height, width; /* of x */
	int64_t boxes, bins_y, bins_x, samples; /* samples along a bin's side; 0: by its size */
	double scale;
	bool half, max;
};

/* Channels that one iteration takes through all samples: a fixed split. */
enum { CHANNELS = 8 };

static enum status align_read(struct graph *g, const struct node *n, struct align *p)
{
	const struct tensor *x = n->in[0], *box = n->in[1], *at = n->in[2];
	const bool old = n->op->until == 16;
	const char *shift = node_string(
		n, "coordinate_transformation_mode", old ? "output_half_pixel" : "half_pixel");
	const char *mode = node_string(n, "mode", "avg");
	if (x->rank != 4 || box->rank != 2 || box->dim[1] != 4 || at->rank != 1 ||
		at->dim[0] != box->dim[0] || at->dtype != DT_I64 || !dtype_is_real(x->dtype) ||
		!dtype_is_real(box->dtype) || x->dim[2] < 1 || x->dim[3] < 1)
		return node_fail(g, n, NULL, "x, boxes and batch_indices do not fit together");
	p->half = strcmp(shift, "half_pixel") == 0;
	p->max = strcmp(mode, "max") == 0;
	if ((!p->half && strcmp(shift, "output_half_pixel") != 0) ||
		(!p->max && strcmp(mode, "avg") != 0))
		return node_fail(g, n, NULL, "unknown mode '%s' or '%s'", mode, shift);
	p->batch = x->dim[0];
	p->channels = x->dim[1];
	p->height = x->dim[2];
	p->width = x->dim[3];
	p->boxes = box->dim[0];
	p->bins_y = node_int(n, "output_height", 1);
	p->bins_x = node_int(n, "output_width", 1);
	p->samples = node_int(n, "sampling_ratio", 0);
	p->scale = node_float(n, "spatial_scale", 1);
	if (p->bins_y < 1 || p->bins_x < 1 || p->samples < 0 || p->samples > 1024)
		return node_fail(g, n, NULL, "its sizes are not positive");
	return ST_OK;
}

static enum status align_infer(struct graph *g, struct node *n)
{
	struct align *p = ARENA_NEW(g->arena, struct align);
	if (!p)
		return diag_nomem(g->diag);
	TRY(align_read(g, n, p));
	n->param = p;
	const int64_t dim[4] = {p->boxes, p->channels, p->bins_y, p->bins_x};
	return data_output(g, n, 0, g->real, 4, dim);
}

static enum status align_grad_infer(struct graph *g, struct node *n)
{
	const struct align *p = n->param;
	const int64_t dim[4] = {p->batch, p->channels, p->height, p->width};
	return data_output(g, n, 0, g->real, 4, dim);
}

static enum status align_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct align *p = n->param;
	/* the largest is looked for again */
	struct tensor *in[] = {dy[0], n->in[1], n->in[2], p->max ? n->in[0] : NULL};
	if (!want[0])
		return ST_OK;
	struct node *m = graph_op_node(
		g, "stint.RoiAlignGrad", p->max ? 4 : 3, in, n->nattr, n->attr, p);
	dx[0] = m ? m->out[0] : NULL;
	return g->failed;
}

/* Four products and their addresses a sample; of samples whose number is not known, four. */
static struct op_cost align_cost(const struct node *n)
{
	const struct align *p = n->param;
	const double each = p->samples ? (double)(p->samples * p->samples) : 4;
	return (struct op_cost){
		16 * each * (double)(p->boxes * p->channels * p->bins_y * p->bins_x),
		node_bytes(n)};
}

/* clang-format off */
static const char box_text[] =
"struct roi_align {\n"
"	int64_t height, width, bins_y, bins_x, samples;\n"
"	real scale, shift; /* of the boxes' coordinates */\n"
"	int max;\n"
"};\n"
"/* A box: where it begins, the size of a bin, and samples along its sides. */\n"
"struct roi_box {\n"
"	real y, x, bin_y, bin_x;\n"
"	int64_t samples_y, samples_x;\n"
"};\n"
"static inline struct roi_box roi_box(const struct roi_align *s, const real *corner)\n"
"{\n"
"	const real x = corner[0] * s->scale - s->shift, y = corner[1] * s->scale - s->shift;\n"
"	real w = corner[2] * s->scale - s->shift - x, h = corner[3] * s->scale - s->shift - y;\n"
"	if (s->shift == 0) {\n"
"		w = w < 1 ? 1 : w;\n"
"		h = h < 1 ? 1 : h;\n"
"	}\n"
"	struct roi_box b = {y, x, h / (real)s->bins_y, w / (real)s->bins_x, s->samples, s->samples};\n"
"	if (!s->samples) {\n"
"		const real most = 1024;\n"
"		/* 1 of NaN, which it then makes of the bin */\n"
"		b.samples_y = b.bin_y > 0 ? (int64_t)CEIL(b.bin_y < most ? b.bin_y : most) : b.bin_y != b.bin_y;\n"
"		b.samples_x = b.bin_x > 0 ? (int64_t)CEIL(b.bin_x < most ? b.bin_x : most) : b.bin_x != b.bin_x;\n"
"	}\n"
"	return b;\n"
"}\n"
"/* The two elements around a place on an axis, and the weight of the second; 0 when it is outside. */\n"
"static inline int roi_axis(real v, int64_t size, int64_t at[2], real *by)\n"
"{\n"
"	if (v < -1 || v > (real)size)\n"
"		return 0;\n"
"	if (v != v) {\n"
"		at[0] = at[1] = 0;\n"
"		*by = v;\n"
"		return 1;\n"
"	}\n"
"	v = v > 0 ? v : 0;\n"
"	v = v < (real)(size - 1) ? v : (real)(size - 1);\n"
"	at[0] = (int64_t)v;\n"
"	at[1] = at[0] + 1 < size ? at[0] + 1 : at[0];\n"
"	*by = v - (real)at[0];\n"
"	return 1;\n"
"}\n"
"/* The four elements of a sample and their weights; weights 0 at element 0 when it is outside. */\n"
"static inline void roi_sample(const struct roi_align *s, const struct roi_box *b, int64_t bin, int64_t sample, int64_t at[4], real by[4])\n"
"{\n"
"	const int64_t iy = sample / b->samples_x, ix = sample % b->samples_x;\n"
"	const real y = b->y + (real)(bin / s->bins_x) * b->bin_y + ((real)iy + R(0.5)) * b->bin_y / (real)b->samples_y;\n"
"	const real x = b->x + (real)(bin % s->bins_x) * b->bin_x + ((real)ix + R(0.5)) * b->bin_x / (real)b->samples_x;\n"
"	int64_t ay[2] = {0}, ax[2] = {0};\n"
"	real fy = 0, fx = 0;\n"
"	const int in = roi_axis(y, s->height, ay, &fy) && roi_axis(x, s->width, ax, &fx);\n"
"	for (int t = 0; t < 4; t++) {\n"
"		at[t] = in ? ay[t / 2] * s->width + ax[t % 2] : 0;\n"
"		by[t] = in ? (t / 2 ? fy : 1 - fy) * (t % 2 ? fx : 1 - fx) : 0;\n"
"	}\n"
"}\n";

static const char align_text[] =
"/* One bin of a box in `channels` channels; a channel of y has `bins` bins. */\n"
"static inline void roi_bin(const struct roi_align *s, const struct roi_box *b, int64_t bin, int64_t channels, const real *x, real *y)\n"
"{\n"
"	const int64_t plane = s->height * s->width, bins = s->bins_y * s->bins_x, count = b->samples_y * b->samples_x;\n"
"	for (int64_t c = 0; c < channels; c++)\n"
"		y[c * bins + bin] = s->max && count ? -INFINITY : 0;\n"
"	for (int64_t i = 0; i < count; i++) {\n"
"		int64_t at[4];\n"
"		real by[4];\n"
"		roi_sample(s, b, bin, i, at, by);\n"
"		for (int64_t c = 0; c < channels; c++)\n"
"			for (int t = 0; t < 4; t++) {\n"
"				const real v = by[t] == 0 ? 0 : by[t] * x[c * plane + at[t]], last = y[c * bins + bin];\n"
"				y[c * bins + bin] = !s->max ? last + v : v > last || v != v ? v : last;\n"
"			}\n"
"	}\n"
"	if (!s->max && count)\n"
"		for (int64_t c = 0; c < channels; c++)\n"
"			y[c * bins + bin] /= (real)count;\n"
"}\n";

static const char align_grad_text[] =
"/* What one bin of a box adds to dx in `channels` channels; x is NULL but for the largest. */\n"
"static inline void roi_bin_grad(const struct roi_align *s, const struct roi_box *b, int64_t bin, int64_t channels, const real *dy, const real *x, real *dx)\n"
"{\n"
"	const int64_t plane = s->height * s->width, bins = s->bins_y * s->bins_x, count = b->samples_y * b->samples_x;\n"
"	int64_t at[4];\n"
"	real by[4];\n"
"	for (int64_t i = 0; i < count && !x; i++) {\n"
"		roi_sample(s, b, bin, i, at, by);\n"
"		for (int64_t c = 0; c < channels; c++)\n"
"			for (int t = 0; t < 4; t++)\n"
"				dx[c * plane + at[t]] += by[t] * (dy[c * bins + bin] / (real)count);\n"
"	}\n"
"	for (int64_t c = 0; c < channels && x && count; c++) {\n"
"		real most = -INFINITY, weight = 0;\n"
"		int64_t where = 0;\n"
"		for (int64_t i = 0; i < count; i++) {\n"
"			roi_sample(s, b, bin, i, at, by);\n"
"			for (int t = 0; t < 4; t++) {\n"
"				const real v = by[t] == 0 ? 0 : by[t] * x[c * plane + at[t]];\n"
"				if (v > most || v != v) {\n"
"					most = v;\n"
"					weight = by[t];\n"
"					where = at[t];\n"
"				}\n"
"			}\n"
"		}\n"
"		dx[c * plane + where] += weight * dy[c * bins + bin];\n"
"	}\n"
"}\n";
/* clang-format on */

static void emit_shape(struct emit *e, const struct align *p)
{
	char scale[40];
	emit_helper(e, "roi_box", box_text);
	emit(e,
		"\tstatic const struct roi_align s = {%" PRId64 ", %" PRId64 ", %" PRId64
		", %" PRId64 ", %" PRId64 ", %s, %s, %d};\n",
		p->height, p->width, p->bins_y, p->bins_x, p->samples,
		emit_real(e, p->scale, scale), p->half ? "R(0.5)" : "0", p->max);
}

/* The loops over boxes or images, as `name`, and over blocks of channels, c to c + m. */
static void emit_tasks(struct emit *e, const struct node *n, const char *name, int64_t count)
{
	const int64_t channels = ((const struct align *)n->param)->channels;
	const struct emit_loop loop[] = {{name, count, 1}, {"c", channels, CHANNELS}};
	emit_loops(e, align_cost(n).flops, 2, loop);
	emit(e, " {\n\t\t\tconst int64_t m = %" PRId64 " - c < %d ? %" PRId64 " - c : %d;\n",
		channels, CHANNELS, channels, CHANNELS);
}

static enum status align_emit(struct emit *e, const struct node *n)
{
	const struct align *p = n->param;
	const int64_t c = p->channels, bins = p->bins_y * p->bins_x, plane = p->height * p->width;
	emit_shape(e, p);
	emit_helper(e, "roi_bin", align_text);
	emit(e, "\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n", p->boxes);
	emit(e, "\t\tif (x2[i] < 0 || x2[i] >= %" PRId64 ")\n\t\t\treturn BAD_INDEX(x2[i]);\n",
		p->batch);
	emit_tasks(e, n, "i", p->boxes);
	emit(e, "\t\t\tconst struct roi_box b = roi_box(&s, x1 + i * 4);\n");
	emit(e, "\t\t\tfor (int64_t bin = 0; bin < %" PRId64 "; bin++)\n", bins);
	emit(e,
		"\t\t\t\troi_bin(&s, &b, bin, m, x0 + (x2[i] * %" PRId64 " + c) * %" PRId64
		", y0 + (i * %" PRId64 " + c) * %" PRId64 ");\n\t\t}\n\treturn 0;\n",
		c, plane, c, bins);
	return ST_OK;
}

/* Boxes may overlap: an image's planes are added up by one thread, box after box. The indices were
 * checked by the node whose gradient this is. */
static enum status align_grad_emit(struct emit *e, const struct node *n)
{
	const struct align *p = n->param;
	const int64_t c = p->channels, bins = p->bins_y * p->bins_x, plane = p->height * p->width;
	emit_shape(e, p);
	emit_helper(e, "roi_bin_grad", align_grad_text);
	zero_emit(e, n->out[0]->numel, "y0");
	emit_tasks(e, n, "image", p->batch);
	emit(e, "\t\t\tconst int64_t at = (image * %" PRId64 " + c) * %" PRId64 ";\n", c, plane);
	emit(e, "\t\t\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", p->boxes);
	emit(e, "\t\t\t\tif (x2[i] != image)\n\t\t\t\t\tcontinue;\n");
	emit(e, "\t\t\t\tconst struct roi_box b = roi_box(&s, x1 + i * 4);\n");
	emit(e, "\t\t\t\tfor (int64_t bin = 0; bin < %" PRId64 "; bin++)\n", bins);
	emit(e,
		"\t\t\t\t\troi_bin_grad(&s, &b, bin, m, x0 + (i * %" PRId64 " + c) * %" PRId64
		", %s, y0 + at);\n\t\t\t}\n\t\t}\n",
		c, bins, p->max ? "x3 + at" : "NULL");
	return ST_OK;
}

static const struct op_example old_examples[] = {
	{.in = "2,3,7,6 4,4:data 4:i64<2",
		.attr = "output_height=2 output_width=3 sampling_ratio=2",
		.low = 0,
		.high = 6},
	{0},
};

static const struct op_example align_examples[] = {
	{.in = "a,b,C,D e,4:data e:i64<2",
		.attr = "output_height=2 output_width=3 sampling_ratio=2",
		.low = 0,
		.high = 6},
	{.in = "2,3,7,6 4,4:data 4:i64<2",
		.attr = "output_height=2 output_width=2",
		.low = 0,
		.high = 7},
	{.in = "2,9,5,6 3,4:data 3:i64<2",
		.attr = "output_height=2 output_width=2 spatial_scale=0.5 "
			"coordinate_transformation_mode=output_half_pixel",
		.low = 0,
		.high = 12},
	{.in = "2,3,7,6 4,4:data 4:i64<2",
		.attr = "output_height=2 output_width=2 sampling_ratio=2 mode=max",
		.low = 0,
		.high = 6},
	{0},
};

const struct op_def ops_roialign[] = {
	{.name = "RoiAlign",
		.since = 10,
		.until = 16,
		.min_in = 3,
		.max_in = 3,
		.traits = OP_CHECKED,
		.infer = align_infer,
		.grad = align_grad,
		.cost = align_cost,
		.emit_c = align_emit,
		.example = old_examples},
	{.name = "RoiAlign",
		.since = 16,
		.min_in = 3,
		.max_in = 3,
		.traits = OP_CHECKED,
		.infer = align_infer,
		.grad = align_grad,
		.cost = align_cost,
		.emit_c = align_emit,
		.example = align_examples},
	{.name = "stint.RoiAlignGrad",
		.min_in = 3,
		.max_in = 4,
		.infer = align_grad_infer,
		.cost = align_cost,
		.emit_c = align_grad_emit},
	{.name = NULL},
};
