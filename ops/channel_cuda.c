/* Sums over all values of a channel, on a GPU: batch normalisation's, and those of the gradients of
 * scale and bias of the other norms. */
#include <inttypes.h>

#include "ops/batchnorm.h"
#include "ops/channel_cuda.h"
#include "ops/channel_cuda_text.h"
#include "ops/norm.h"
#include "ops/rows.h"

/* Blocks that fill any device, and values below which another block is not worth it. Part of what
 * makes results repeat, as is the pack where columns are summed. */
enum { THREADS = 256, BLOCKS = 1024, STRIP_BLOCKS = 512, LEAST = 2048, STRIP_PACK = 4, TOTALS = 8 };

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
	return x < least ? least : x > most ? most : x;
}

static void split_planes(struct channel_split *s, bool narrow)
{
	s->pack = narrow ? 8 : 4;
	s->packed = s->inner % s->pack == 0;
	const int64_t values = s->images * s->inner;
	const int64_t wanted = clamp(
		divide_up(BLOCKS, s->groups), 1, clamp(values / LEAST, 1, values));
	s->take = clamp(s->images / wanted, 1, s->images);
	const int64_t of_image = wanted > s->images ? divide_up(wanted, s->images) : 1;
	s->slice = of_image > 1 ? divide_up(divide_up(s->inner, of_image), s->pack) * s->pack
				: s->inner;
	s->slices = divide_up(s->inner, s->slice);
	s->parts = divide_up(s->images, s->take) * s->slices;
	s->tasks = s->parts * s->groups;
	s->strips = 1;
}

static void split_strips(struct channel_split *s)
{
	s->pack = STRIP_PACK;
	s->packed = s->width % s->pack == 0;
	s->lanes = 1;
	while (s->lanes < 32 && s->lanes * s->pack < s->width)
		s->lanes *= 2;
	s->strips = divide_up(s->width, s->lanes * s->pack);
	const int64_t rows = s->images * s->inner, all = s->groups * s->strips;
	const int64_t least = 8 * (THREADS / s->lanes); /* rows of a part */
	s->parts = clamp(divide_up(STRIP_BLOCKS, all), 1, divide_up(rows, least));
	s->slice = divide_up(rows, s->parts);
	s->slices = 1;
	s->parts = divide_up(rows, s->slice);
	s->tasks = s->parts * all;
}

struct channel_split channel_split(
	int64_t images, int64_t groups, int64_t inner, int64_t width, bool narrow)
{
	struct channel_split s = {
		.images = images, .groups = groups, .inner = inner, .width = width};
	if (images * groups * inner * width == 0)
		return s;
	if (width > 1)
		split_strips(&s);
	else
		split_planes(&s, narrow);
	return s;
}

int64_t channel_split_bytes(const struct channel_split *s)
{
	return s->parts * 2 * s->groups * s->width * (int64_t)sizeof(double);
}

void channel_split_emit(struct emit *e, const struct channel_split *s, const char *more)
{
	block_sums_helper(e);
	elements_helper(e);
	emit_helper(e, "channel_parts", channel_parts_text);
	emit_helper(e, "channel_planes", channel_planes_text);
	emit_helper(e, "channel_strips", channel_strips_text);
	emit_helper(e, "channel_sums", channel_sums_text);
	emit_helper(e, "channel_totals", channel_totals_text);
	emit(e,
		"\tstruct shape {\n\t\tenum : int64_t { images = %" PRId64 ", groups = %" PRId64
		", inner = %" PRId64 ", width = %" PRId64 ",\n",
		s->images, s->groups, s->inner, s->width);
	emit(e,
		"\t\t\ttake = %" PRId64 ", slice = %" PRId64 ", slices = %" PRId64
		", strips = %" PRId64 ", parts = %" PRId64 ",\n",
		s->take, s->slice, s->slices, s->strips, s->parts);
	emit(e, "\t\t\tL = %d, V = %d, PACKED = %d%s };\n", s->width > 1 ? s->lanes : 1, s->pack,
		s->packed, more);
}

void channel_first_stage(struct emit *e, const struct channel_split *s)
{
	if (s->width > 1)
		emit(e, "\t__shared__ double room[2 * shape::V][8 * shape::L];\n");
	else
		emit(e, "\t__shared__ double room[2][BLOCK_WARPS];\n");
	emit_launch(e, s->tasks, THREADS);
}

void channel_last_stage(struct emit *e, const struct channel_split *s)
{
	emit(e, "\t__shared__ double room[2][8 * CHANNEL_TOTALS];\n");
	emit_launch(e, divide_up(s->groups * s->width, TOTALS), THREADS);
}

/* --- Layer, group and instance norm: the gradients of scale and bias --- */

static const struct tensor *narrow_of(const struct tensor *a, const struct tensor *b)
{
	return dtype_is_narrow(a->dtype) ? a : b;
}

static struct channel_split norm_split(const struct node *n)
{
	const struct norm *p = n->param;
	const int64_t channels = p->groups * p->channels, images = p->rows / p->groups;
	const bool narrow = dtype_is_narrow(narrow_of(n->in[0], n->in[1])->dtype);
	return p->inner == 1 ? channel_split(images, 1, 1, channels, narrow)
			     : channel_split(images, channels, p->inner, 1, narrow);
}

int64_t norm_scale_cuda_workspace(const struct node *n)
{
	const struct channel_split s = norm_split(n);
	return channel_split_bytes(&s);
}

static void norm_scale_shape(struct emit *e, const struct node *n, const struct channel_split *s)
{
	const struct norm *p = n->param;
	channel_split_emit(e, s,
		emit_text(e, ", of_image = %" PRId64 ", share = %" PRId64 ", centred = %d",
			p->groups, p->channels, p->centred));
	emit(e, "\t};\n");
}

enum status norm_scale_cuda_stages(struct emit *e, const struct node *n, int first)
{
	const struct norm *p = n->param;
	const struct channel_split s = norm_split(n);
	const char *bias = p->centred ? emit_text(e, "y%d", first + 1) : "(real *)0";
	norm_scale_shape(e, n, &s);
	emit_helper(e, "norm_scale", norm_scale_text);
	channel_first_stage(e, &s);
	emit(e, "\tnorm_scale_terms<shape, %s, %s> terms = {x0, x1, %s, x3};\n",
		emit_type(n->in[0]), emit_type(n->in[1]), p->centred ? "x2" : "(const real *)0");
	emit(e, "\tchannel_sums<shape>(room, (double *)ws, terms);\n");
	emit_stage(e);
	channel_last_stage(e, &s);
	emit(e, "\tchannel_store<2>(room, y%d, %s, (const double *)ws, ", first, bias);
	emit(e, "%" PRId64 ", %" PRId64 ");\n", s.parts, s.groups * s.width);
	return ST_OK;
}

/* --- Batch normalisation --- */

static struct channel_split batchnorm_split(const struct tensor *x, const struct batchnorm *p)
{
	int64_t inner = 1;
	for (int i = 2; i < x->rank - (p->block > 1); i++)
		inner *= x->dim[i];
	const bool narrow = dtype_is_narrow(x->dtype);
	if (p->block == 1 && inner == 1)
		return channel_split(x->dim[0], 1, 1, x->dim[1], narrow);
	return channel_split(x->dim[0], x->dim[1], inner, p->block, narrow);
}

int64_t batchnorm_cuda_workspace(const struct node *n)
{
	const struct tensor *x = n->in[n->nin > 2 ? 1 : 0];
	const struct channel_split s = batchnorm_split(x, n->param);
	return channel_split_bytes(&s);
}

enum status batchnorm_stats_cuda_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	const struct channel_split s = batchnorm_split(n->in[0], p);
	const char *type = emit_type(n->in[0]);
	for (int stage = 0; stage < 2; stage++) {
		channel_split_emit(e, &s, "");
		emit(e, "\t\tstatic constexpr double epsilon() { return %.17g; }\n\t};\n",
			p->epsilon);
		emit_helper(e, "batchnorm_moments", batchnorm_moments_text);
		if (stage == 0) {
			channel_first_stage(e, &s);
			emit(e, "\tbatchnorm_moments<shape, %s> terms = {x0, {}};\n", type);
			emit(e, "\tchannel_sums<shape>(room, (double *)ws, terms);\n");
			emit_stage(e);
		} else {
			channel_last_stage(e, &s);
			emit(e, "\tbatchnorm_statistics<shape>(room, y0, y1, y2, y3, (const double "
				"*)ws, x1);\n");
		}
	}
	return ST_OK;
}

enum status batchnorm_sums_cuda_emit(struct emit *e, const struct node *n)
{
	const struct channel_split s = batchnorm_split(n->in[1], n->param);
	const bool rounded = n->nin > 4 && n->in[4];
	for (int stage = 0; stage < 2; stage++) {
		channel_split_emit(e, &s, rounded ? ", rounded = 1" : ", rounded = 0");
		emit(e, "\t};\n");
		emit_helper(e, "batchnorm_products", batchnorm_products_text);
		if (stage == 0) {
			channel_first_stage(e, &s);
			emit(e, "\tbatchnorm_products<shape, %s, %s> terms = {x0, x1, x2, {}};\n",
				emit_type(n->in[0]), emit_type(n->in[1]));
			emit(e, "\tchannel_sums<shape>(room, (double *)ws, terms);\n");
			emit_stage(e);
		} else {
			channel_last_stage(e, &s);
			emit(e,
				"\tbatchnorm_gradient<shape>(room, y0, y1, y2, y3, (const double "
				"*)ws, x3, %s);\n",
				rounded ? "x4" : "(const real *)0");
		}
	}
	return ST_OK;
}
