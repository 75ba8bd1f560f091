/* Sums over all values of a channel, on a GPU: batch normalisation's, and those of the gradients of
 * scale and bias of the other norms. */
#include <string.h>

#include "ops/norm/batchnorm_op.h"
#include "ops/norm/channel_cuda.h"
#include "ops/norm/norm_op.h"

/* Blocks that fill any device, and values below which another block is not worth it. Part of what
 * makes results repeat, as is the pack where columns are summed. */
enum { THREADS = 256, BLOCKS = 1024, STRIP_BLOCKS = 512, LEAST = 2048, STRIP_PACK = 4, TOTALS = 8 };

/* x as [images, groups, inner, width], of channels [groups, width]. */
struct channel_split {
	int64_t images, groups, inner, width;
	/* Where width is 1 a part is so many images, or so many elements of one. */
	int64_t take, slice, slices;
	/* Else it is `slice` of the images * inner rows, and a block has 4 * lanes columns. */
	int64_t strips;
	int lanes;
	int64_t parts, tasks;
	int pack; /* elements that a thread loads at once, where all rows begin aligned to them */
	bool packed;
};

enum { CHANNEL_FIELDS = 12, CHANNEL_MORE = 4 };
struct channel_traits {
	struct call_field field[CHANNEL_FIELDS + CHANNEL_MORE];
	struct call_struct s;
};

static void split_planes(struct channel_split *s, bool narrow)
{
	s->pack = narrow ? 8 : 4;
	s->packed = s->inner % s->pack == 0;
	const int64_t values = s->images * s->inner;
	const int64_t wanted = clamp64(
		div_up(BLOCKS, s->groups), 1, clamp64(values / LEAST, 1, values));
	s->take = clamp64(s->images / wanted, 1, s->images);
	const int64_t of_image = wanted > s->images ? div_up(wanted, s->images) : 1;
	s->slice = of_image > 1 ? div_up(div_up(s->inner, of_image), s->pack) * s->pack : s->inner;
	s->slices = div_up(s->inner, s->slice);
	s->parts = div_up(s->images, s->take) * s->slices;
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
	s->strips = div_up(s->width, s->lanes * s->pack);
	const int64_t rows = s->images * s->inner, all = s->groups * s->strips;
	const int64_t least = 8 * (THREADS / s->lanes); /* rows of a part */
	s->parts = clamp64(div_up(STRIP_BLOCKS, all), 1, div_up(rows, least));
	s->slice = div_up(rows, s->parts);
	s->slices = 1;
	s->parts = div_up(rows, s->slice);
	s->tasks = s->parts * all;
}

static struct channel_split channel_split(
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

/* Of the scratch `ws`: two doubles for each part and channel. */
static int64_t channel_split_bytes(const struct channel_split *s)
{
	return s->parts * 2 * s->groups * s->width * (int64_t)sizeof(double);
}

/* The shape as the kernels' type, with `more` fields (NULL: none; ended as CALL_FIELDS are). */
static const struct call_struct *channel_shape(
	const struct channel_split *s, const struct call_field *more, struct channel_traits *out)
{
	const struct call_field field[CHANNEL_FIELDS] = {{"images", ARG_INT(s->images)},
		{"groups", ARG_INT(s->groups)}, {"inner", ARG_INT(s->inner)},
		{"width", ARG_INT(s->width)}, {"take", ARG_INT(s->take)},
		{"slice", ARG_INT(s->slice)}, {"slices", ARG_INT(s->slices)},
		{"strips", ARG_INT(s->strips)}, {"parts", ARG_INT(s->parts)},
		{"L", ARG_INT(s->width > 1 ? s->lanes : 1)}, {"V", ARG_INT(s->pack)},
		{"PACKED", ARG_INT(s->packed)}};
	int n = CHANNEL_FIELDS;
	memcpy(out->field, field, sizeof field);
	for (; more && more->name; more++)
		out->field[n++] = *more;
	out->field[n] = (struct call_field){.name = NULL};
	out->s = (struct call_struct){"struct", "shape", out->field};
	return &out->s;
}

/* `c` but for its launch and its shared memory. */
static enum status channel_first_stage(
	struct emit *e, const struct channel_split *s, struct kernel_call c)
{
	c.tasks = s->tasks;
	c.threads = THREADS;
	c.shared[0] = "channel_room<shape>";
	return call_kernel(e, &c);
}

enum status channel_last_stage(struct emit *e, int64_t channels, struct kernel_call c)
{
	c.tasks = div_up(channels, TOTALS);
	c.threads = THREADS;
	c.shared[0] = "totals_room";
	return call_kernel(e, &c);
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

int64_t norm_scale_cuda_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	const struct channel_split s = norm_split(n);
	return channel_split_bytes(&s);
}

enum status norm_scale_cuda_stages(struct emit *e, const struct node *n, int first)
{
	const struct norm *p = n->param;
	const struct channel_split s = norm_split(n);
	const struct call_field more[] = {{"of_image", ARG_INT(p->groups)},
		{"share", ARG_INT(p->channels)}, {"centred", ARG_INT(p->centred)}, {.name = NULL}};
	const struct call_arg none = ARG_NAME("(real *)0");
	struct channel_traits room;
	TRY(channel_first_stage(e, &s,
		(struct kernel_call){.file = "norm_scale.cuh",
			.function = "norm_scale_parts",
			.traits = channel_shape(&s, more, &room),
			.args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(0), ARG_X(1),
				p->centred ? ARG_X(2) : none, ARG_X(3))}));
	return channel_last_stage(e, s.groups * s.width,
		(struct kernel_call){.file = "channel.cuh",
			.function = "channel_store_doubles",
			.args = CALL_ARGS(ARG_Y(first), p->centred ? ARG_Y(first + 1) : none,
				ARG_SCRATCH(0), ARG_INT(s.parts), ARG_INT(s.groups * s.width))});
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

int64_t batchnorm_cuda_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	const struct tensor *x = n->in[n->nin > 3 ? 1 : 0];
	const struct channel_split s = batchnorm_split(x, n->param);
	return channel_split_bytes(&s);
}

enum status batchnorm_stats_cuda_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	const struct channel_split s = batchnorm_split(n->in[0], p);
	struct channel_traits room;
	const struct call_field more[] = {{"each", ARG_INT(p->each ? p->each : 1)}, {.name = NULL}};
	const struct call_struct *const shape = channel_shape(&s, more, &room);
	if (n->in[0]->numel == 0)
		return batchnorm_stats_emit(e, n);
	TRY(channel_first_stage(e, &s,
		(struct kernel_call){.file = "batchnorm.cuh",
			.function = "batchnorm_stats_parts",
			.traits = shape,
			.args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(0), batchnorm_control(n, 2))}));
	return channel_last_stage(e, s.groups * s.width,
		(struct kernel_call){.file = "batchnorm.cuh",
			.function = "batchnorm_statistics",
			.traits = shape,
			.args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_Y(2), ARG_Y(3), ARG_SCRATCH(0),
				ARG_X(1), batchnorm_control(n, 2), ARG_DOUBLE(p->epsilon))});
}

enum status batchnorm_sums_cuda_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	const struct channel_split s = batchnorm_split(n->in[1], p);
	struct channel_traits room;
	const struct call_field more[] = {{"each", ARG_INT(p->each ? p->each : 1)}, {.name = NULL}};
	const struct call_struct *const shape = channel_shape(&s, more, &room);
	if (n->in[0]->numel == 0)
		return batchnorm_sums_emit(e, n);
	TRY(channel_first_stage(e, &s,
		(struct kernel_call){.file = "batchnorm.cuh",
			.function = "batchnorm_sums_parts",
			.traits = shape,
			.args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(0), ARG_X(1), ARG_X(2))}));
	return channel_last_stage(e, s.groups * s.width,
		(struct kernel_call){.file = "batchnorm.cuh",
			.function = "batchnorm_gradient",
			.traits = shape,
			.args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_Y(2), ARG_Y(3), ARG_SCRATCH(0),
				ARG_X(3), batchnorm_rounding(n), batchnorm_control(n, 5))});
}
