/* The weight gradient of a depthwise convolution in plain C: 16 channels at once, each a lane. Rows
 * of a small plane are too short to fill a vector; channels are many. */
#include "ops/conv.h"
#include "ops/gemm.h"

enum {
	LANES = 16,
	MOST = 1 << 19 /* elements of scratch: a plane that stays in a cache */
};

/* clang-format off */
static const char depth_text[] =
"typedef real depth_lanes __attribute__((vector_size(16 * sizeof(real)), aligned(sizeof(real)), may_alias));\n"
"\n"
"/* sum[16] += the sum over rows of n products of lanes, in a fixed tree; x goes on by `step` elements, and by\n"
" * `row` from row to row. */\n"
"static inline void depth_dot(int64_t rows, int64_t n, int64_t row, int64_t step, const real *restrict x,\n"
"	const real *restrict y, real *restrict sum)\n"
"{\n"
"	depth_lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};\n"
"	for (int64_t r = 0; r < rows; r++, x += row, y += n * 16) {\n"
"		int64_t i = 0;\n"
"		for (; i + 4 <= n; i += 4) {\n"
"			s0 += *(const depth_lanes *)(x + i * step) * *(const depth_lanes *)(y + i * 16);\n"
"			s1 += *(const depth_lanes *)(x + (i + 1) * step) * *(const depth_lanes *)(y + (i + 1) * 16);\n"
"			s2 += *(const depth_lanes *)(x + (i + 2) * step) * *(const depth_lanes *)(y + (i + 2) * 16);\n"
"			s3 += *(const depth_lanes *)(x + (i + 3) * step) * *(const depth_lanes *)(y + (i + 3) * 16);\n"
"		}\n"
"		for (; i < n; i++)\n"
"			s0 += *(const depth_lanes *)(x + i * step) * *(const depth_lanes *)(y + i * 16);\n"
"	}\n"
"	*(depth_lanes *)sum += (s0 + s1) + (s2 + s3);\n"
"}\n"
"\n"
"/* dw of 16 channels. Image by image the channels of x and dy are turned into lanes, x within a border of\n"
" * zeros. ws: lanes for x, for dy, and for the sums. */\n"
"static void depth_grad_w(const struct window *w, int64_t images, int64_t xstep, int64_t ystep, const real *x,\n"
"	const real *dy, real *dw, real *ws)\n"
"{\n"
"	const int64_t rows = (w->out[1] - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;\n"
"	const int64_t columns = (w->out[2] - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;\n"
"	const int64_t taps = w->kernel[1] * w->kernel[2], plane = w->size[1] * w->size[2], out = w->out[1] * w->out[2];\n"
"	const int64_t seen = MIN(w->size[2], columns - w->before[2]);\n"
"	real *const xs = ws, *const ys = xs + rows * columns * 16, *const sum = ys + out * 16;\n"
"	for (int64_t i = 0; i < rows * columns * 16; i++)\n"
"		xs[i] = 0;\n"
"	for (int64_t i = 0; i < taps * 16; i++)\n"
"		sum[i] = 0;\n"
"	for (int64_t b = 0; b < images; b++) {\n"
"		for (int64_t c = 0; c < 16; c += 4) {\n"
"			for (int64_t i = 0; i < w->size[1] && i + w->before[1] < rows; i++)\n"
"				gemm_turn(seen, x + b * xstep + c * plane + i * w->size[2], plane,\n"
"					xs + ((i + w->before[1]) * columns + w->before[2]) * 16 + c, 16);\n"
"			gemm_turn(out, dy + b * ystep + c * out, out, ys + c, 16);\n"
"		}\n"
"		for (int64_t t = 0; t < taps; t++) {\n"
"			const int64_t t1 = t / w->kernel[2] * w->dilation[1], t2 = t % w->kernel[2] * w->dilation[2];\n"
"			depth_dot(w->out[1], w->out[2], w->stride[1] * columns * 16, w->stride[2] * 16,\n"
"				xs + (t1 * columns + t2) * 16, ys, sum + t * 16);\n"
"		}\n"
"	}\n"
"	for (int64_t t = 0; t < taps; t++)\n"
"		for (int64_t c = 0; c < 16; c++)\n"
"			dw[c * taps + t] = sum[t * 16 + c];\n"
"}\n";
/* clang-format on */

bool depth_can(const struct conv *p)
{
	const struct window *w = &p->w;
	return depth_elements(p) <= MOST && p->groups == p->c && p->cg == 1 && p->kg == 1 &&
	       p->c % LANES == 0 && w->kernel[0] == 1 && w->size[0] == 1 && w->out[0] == 1 &&
	       w->out_plane > 0 && w->before[1] >= 0 && w->before[2] >= 0;
}

int64_t depth_elements(const struct conv *p)
{
	const struct window *w = &p->w;
	int64_t cells = 1;
	for (int a = 1; a < 3; a++)
		cells *= (w->out[a] - 1) * w->stride[a] + (w->kernel[a] - 1) * w->dilation[a] + 1;
	return LANES * (cells + w->out_plane + w->taps);
}

void depth_emit_grad_w(struct emit *e, const struct conv *p, double work)
{
	const long long plane = p->w.plane, out = p->w.out_plane, taps = p->w.taps;
	gemm_emit_thread(e);
	gemm_emit_turn(e);
	emit_helper(e, "depth_grad_w", depth_text);
	emit_loops(e, work, 1, &(struct emit_loop){"k", p->c, LANES});
	emit(e, "\n\t\tdepth_grad_w(&s, %lld, %lld, %lld, x0 + k * %lld, x1 + k * %lld,\n",
		(long long)p->n, (long long)p->c * plane, (long long)p->c * out, plane, out);
	emit(e, "\t\t\ty0 + k * %lld, (real *)ws + thread_index() * %lld);\n", taps,
		(long long)depth_elements(p));
}
