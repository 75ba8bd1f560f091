
/* Normalisations in odd sizes: kernels/norm.cuh, batchnorm.cuh and norm_scale.cuh, in shapes as
 * ops/norm_cuda.c and ops/channel_cuda.c write them. test_norms.c has the same sizes. */
#define NORM_SHAPE(ROWS, GROUPS, CHANNELS, INNER, TEAM, TEAMS, CHUNKS, PACKS, ALIGNED, CENTRED, TAKE)                  \
	enum : int64_t { rows = ROWS, groups = GROUPS, channels = CHANNELS, inner = INNER, width = channels * inner,   \
		team = TEAM, teams = TEAMS, chunks = CHUNKS, N = PACKS, V = 4, PACKED = ALIGNED, centred = CENTRED,    \
		scaled = 1, adds = CENTRED, take = TAKE, parts = (rows + take - 1) / take };
/* The shape of a gradient to which nothing is added. */
template <class A> struct alone : A {
	enum : int64_t { adds = 0 };
};
struct short_rows {
	NORM_SHAPE(37, 1, 130, 1, 32, 4, 1, 2, 0, 1, 16)
};
struct block_rows {
	NORM_SHAPE(11, 1, 1032, 1, 96, 1, 1, 3, 1, 1, 8)
};
struct long_rows {
	NORM_SHAPE(3, 1, 9001, 1, 256, 1, 2, 8, 0, 0, 1)
};
struct group_rows {
	NORM_SHAPE(6, 3, 5, 12, 32, 2, 1, 1, 1, 1, 1)
};

extern "C" __global__ void __launch_bounds__(256) k_norm_short(real *y0, real *y1, real *y2, const real *x0, const real *x1, const real *x2)
{
	__shared__ norm_parts part;
	norm_forward<short_rows>(part, y0, y1, y2, x0, x1, x2, 1e-5);
}
extern "C" __global__ void __launch_bounds__(256) k_norm_block(real *y0, real *y1, real *y2, const real *x0, const real *x1, const real *x2)
{
	__shared__ norm_parts part;
	norm_forward<block_rows>(part, y0, y1, y2, x0, x1, x2, 1e-5);
}
extern "C" __global__ void __launch_bounds__(256) k_norm_long(real *y0, real *y1, real *y2, const real *x0, const real *x1, const real *x2)
{
	__shared__ norm_parts part;
	norm_forward<long_rows>(part, y0, y1, y2, x0, x1, x2, 1e-5);
}
extern "C" __global__ void __launch_bounds__(256) k_norm_group(real *y0, real *y1, real *y2, const real *x0, const real *x1, const real *x2)
{
	__shared__ norm_parts part;
	norm_forward<group_rows>(part, y0, y1, y2, x0, x1, x2, 1e-5);
}

extern "C" __global__ void __launch_bounds__(256) k_grad_short(real *y0, const real *x0, const real *x1, const real *x2, const real *x3, const real *x4)
{
	__shared__ norm_parts part;
	norm_gradient<alone<short_rows>>(part, y0, x0, x1, x2, x3, x4, (real *)0);
}
extern "C" __global__ void __launch_bounds__(256) k_grad_block(real *y0, const real *x0, const real *x1, const real *x2, const real *x3, const real *x4)
{
	__shared__ norm_parts part;
	norm_gradient<alone<block_rows>>(part, y0, x0, x1, x2, x3, x4, (real *)0);
}
extern "C" __global__ void __launch_bounds__(256) k_grad_long(real *y0, const real *x0, const real *x1, const real *x2, const real *x3, const real *x4)
{
	__shared__ norm_parts part;
	norm_gradient<alone<long_rows>>(part, y0, x0, x1, x2, x3, x4, (real *)0);
}
extern "C" __global__ void __launch_bounds__(256) k_grad_group(real *y0, const real *x0, const real *x1, const real *x2, const real *x3, const real *x4)
{
	__shared__ norm_parts part;
	norm_gradient<alone<group_rows>>(part, y0, x0, x1, x2, x3, x4, (real *)0);
}

extern "C" __global__ void __launch_bounds__(256) k_all_short(real *y0, real *ws, const real *x0, const real *x1, const real *x2, const real *x3, const real *x4)
{
	__shared__ norm_parts part;
	__shared__ norm_meeting<alone<short_rows>> meet;
	norm_all<alone<short_rows>>(part, meet, y0, ws, x0, x1, x2, x3, x4, (real *)0);
}
extern "C" __global__ void __launch_bounds__(256) k_all_short_2(real *y1, real *y2, const real *ws)
{
	__shared__ totals_room room;
	channel_store_reals<2>(room, y1, y2, ws, short_rows::parts, short_rows::width);
}
extern "C" __global__ void __launch_bounds__(256) k_all_block(real *y0, real *ws, const real *x0, const real *x1, const real *x2, const real *x3, const real *x4)
{
	__shared__ norm_parts part;
	__shared__ norm_meeting<alone<block_rows>> meet;
	norm_all<alone<block_rows>>(part, meet, y0, ws, x0, x1, x2, x3, x4, (real *)0);
}
extern "C" __global__ void __launch_bounds__(256) k_all_block_2(real *y1, real *y2, const real *ws)
{
	__shared__ totals_room room;
	channel_store_reals<2>(room, y1, y2, ws, block_rows::parts, block_rows::width);
}

/* Channels: a part is two images of them, a slice of an image, a slice of rows, one of rows of a group. */
#define CHANNEL_SHAPE(IMAGES, GROUPS, INNER, WIDTH, TAKE, SLICE, SLICES, PARTS, LANES, ALIGNED)                        \
	enum : int64_t { images = IMAGES, groups = GROUPS, inner = INNER, width = WIDTH, take = TAKE, slice = SLICE,   \
		slices = SLICES, strips = 1, parts = PARTS, L = LANES, V = 4, PACKED = ALIGNED, rounded = 1,           \
		of_image = 1, share = groups * width, centred = 1, each = 1 };
struct few_images {
	CHANNEL_SHAPE(5, 3, 37, 1, 2, 37, 1, 3, 1, 0)
};
struct large_images {
	CHANNEL_SHAPE(2, 2, 5000, 1, 1, 1252, 4, 8, 1, 1)
};
struct rows_of_channels {
	CHANNEL_SHAPE(3, 1, 45, 23, 0, 70, 1, 2, 8, 0)
};
struct blocks_of_channels {
	CHANNEL_SHAPE(3, 2, 45, 8, 0, 70, 1, 2, 2, 1)
};
extern "C" __global__ void __launch_bounds__(256) k_stats_few(double *ws, const real *x0, const int64_t *control)
{
	__shared__ channel_room<few_images> room;
	batchnorm_stats_parts<few_images>(room, ws, x0, control);
}
extern "C" __global__ void __launch_bounds__(256) k_stats_few_2(real *y0, real *y1, real *y2, real *y3, const double *ws, const real *x1, const int64_t *control)
{
	__shared__ totals_room room;
	batchnorm_statistics<few_images>(room, y0, y1, y2, y3, ws, x1, control, 1e-5);
}
extern "C" __global__ void __launch_bounds__(256) k_sums_few(double *ws, const real *x0, const real *x1, const real *x2)
{
	__shared__ channel_room<few_images> room;
	batchnorm_sums_parts<few_images>(room, ws, x0, x1, x2);
}
extern "C" __global__ void __launch_bounds__(256) k_sums_few_2(real *y0, real *y1, real *y2, real *y3, const double *ws, const real *x3, const real *x4, const int64_t *control)
{
	__shared__ totals_room room;
	batchnorm_gradient<few_images>(room, y0, y1, y2, y3, ws, x3, x4, control);
}
extern "C" __global__ void __launch_bounds__(256) k_scale_few(double *ws, const real *x0, const real *x1, const real *x2, const real *x3)
{
	__shared__ channel_room<few_images> room;
	norm_scale_parts<few_images>(room, ws, x0, x1, x2, x3);
}
extern "C" __global__ void __launch_bounds__(256) k_scale_few_2(real *y0, real *y1, const double *ws)
{
	__shared__ totals_room room;
	channel_store_doubles(room, y0, y1, ws, few_images::parts, few_images::groups * few_images::width);
}

extern "C" __global__ void __launch_bounds__(256) k_stats_large(double *ws, const real *x0, const int64_t *control)
{
	__shared__ channel_room<large_images> room;
	batchnorm_stats_parts<large_images>(room, ws, x0, control);
}
extern "C" __global__ void __launch_bounds__(256) k_stats_large_2(real *y0, real *y1, real *y2, real *y3, const double *ws, const real *x1, const int64_t *control)
{
	__shared__ totals_room room;
	batchnorm_statistics<large_images>(room, y0, y1, y2, y3, ws, x1, control, 1e-5);
}
extern "C" __global__ void __launch_bounds__(256) k_sums_large(double *ws, const real *x0, const real *x1, const real *x2)
{
	__shared__ channel_room<large_images> room;
	batchnorm_sums_parts<large_images>(room, ws, x0, x1, x2);
}
extern "C" __global__ void __launch_bounds__(256) k_sums_large_2(real *y0, real *y1, real *y2, real *y3, const double *ws, const real *x3, const real *x4, const int64_t *control)
{
	__shared__ totals_room room;
	batchnorm_gradient<large_images>(room, y0, y1, y2, y3, ws, x3, x4, control);
}

extern "C" __global__ void __launch_bounds__(256) k_stats_rows(double *ws, const real *x0, const int64_t *control)
{
	__shared__ channel_room<rows_of_channels> room;
	batchnorm_stats_parts<rows_of_channels>(room, ws, x0, control);
}
extern "C" __global__ void __launch_bounds__(256) k_stats_rows_2(real *y0, real *y1, real *y2, real *y3, const double *ws, const real *x1, const int64_t *control)
{
	__shared__ totals_room room;
	batchnorm_statistics<rows_of_channels>(room, y0, y1, y2, y3, ws, x1, control, 1e-5);
}
extern "C" __global__ void __launch_bounds__(256) k_sums_rows(double *ws, const real *x0, const real *x1, const real *x2)
{
	__shared__ channel_room<rows_of_channels> room;
	batchnorm_sums_parts<rows_of_channels>(room, ws, x0, x1, x2);
}
extern "C" __global__ void __launch_bounds__(256) k_sums_rows_2(real *y0, real *y1, real *y2, real *y3, const double *ws, const real *x3, const real *x4, const int64_t *control)
{
	__shared__ totals_room room;
	batchnorm_gradient<rows_of_channels>(room, y0, y1, y2, y3, ws, x3, x4, control);
}
extern "C" __global__ void __launch_bounds__(256) k_scale_rows(double *ws, const real *x0, const real *x1, const real *x2, const real *x3)
{
	__shared__ channel_room<rows_of_channels> room;
	norm_scale_parts<rows_of_channels>(room, ws, x0, x1, x2, x3);
}
extern "C" __global__ void __launch_bounds__(256) k_scale_rows_2(real *y0, real *y1, const double *ws)
{
	__shared__ totals_room room;
	channel_store_doubles(room, y0, y1, ws, rows_of_channels::parts, rows_of_channels::groups * rows_of_channels::width);
}

extern "C" __global__ void __launch_bounds__(256) k_stats_blocks(double *ws, const real *x0, const int64_t *control)
{
	__shared__ channel_room<blocks_of_channels> room;
	batchnorm_stats_parts<blocks_of_channels>(room, ws, x0, control);
}
extern "C" __global__ void __launch_bounds__(256) k_stats_blocks_2(real *y0, real *y1, real *y2, real *y3, const double *ws, const real *x1, const int64_t *control)
{
	__shared__ totals_room room;
	batchnorm_statistics<blocks_of_channels>(room, y0, y1, y2, y3, ws, x1, control, 1e-5);
}
extern "C" __global__ void __launch_bounds__(256) k_sums_blocks(double *ws, const real *x0, const real *x1, const real *x2)
{
	__shared__ channel_room<blocks_of_channels> room;
	batchnorm_sums_parts<blocks_of_channels>(room, ws, x0, x1, x2);
}
extern "C" __global__ void __launch_bounds__(256) k_sums_blocks_2(real *y0, real *y1, real *y2, real *y3, const double *ws, const real *x3, const real *x4, const int64_t *control)
{
	__shared__ totals_room room;
	batchnorm_gradient<blocks_of_channels>(room, y0, y1, y2, y3, ws, x3, x4, control);
}
