/* Windows over spatial axes: ONNX's attributes, brought to numbers. */
#include "ops/window_op.h"

/* The attribute's value for each axis, or `def`. */
static enum status read_list(struct graph *g, const struct node *n, const char *name, int count,
	int64_t least, int64_t def, int64_t *out)
{
	enum { LARGEST = 1 << 30 };
	int len;
	const int64_t *v;
	TRY(node_ints(g, n, name, -1, &len, &v));
	if (v && len != count)
		return node_fail(
			g, n, NULL, "attribute %s has %d values, not %d", name, len, count);
	for (int i = 0; i < count; i++) {
		out[i] = v ? v[i] : def;
		if (out[i] < least || out[i] > LARGEST)
			return node_fail(g, n, NULL, "attribute %s has the value %lld", name,
				(long long)out[i]);
	}
	return ST_OK;
}

/* Paddings by auto_pad (ONNX: SAME_UPPER pads the odd one after, SAME_LOWER before). */
static void pad_same(struct window *w, int a, bool lower)
{
	const int64_t out = (w->size[a] + w->stride[a] - 1) / w->stride[a];
	const int64_t reach = (w->kernel[a] - 1) * w->dilation[a] + 1;
	int64_t all = (out - 1) * w->stride[a] + reach - w->size[a];
	if (all < 0)
		all = 0;
	w->before[a] = lower ? all - all / 2 : all / 2;
	w->after[a] = all - w->before[a];
}

static enum status read_padding(struct graph *g, const struct node *n, struct window *w)
{
	const int first = 3 - w->axes;
	const char *mode = node_string(n, "auto_pad", "NOTSET");
	int64_t pads[6];
	if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0) {
		for (int a = first; a < 3; a++)
			pad_same(w, a, strcmp(mode, "SAME_LOWER") == 0);
		return ST_OK;
	}
	if (strcmp(mode, "VALID") == 0)
		return ST_OK;
	if (strcmp(mode, "NOTSET") != 0 && *mode)
		return node_fail(g, n, NULL, "unknown auto_pad '%s'", mode);
	TRY(read_list(g, n, "pads", 2 * w->axes, 0, 0, pads));
	memcpy(w->before + first, pads, (size_t)w->axes * sizeof *pads);
	memcpy(w->after + first, pads + w->axes, (size_t)w->axes * sizeof *pads);
	return ST_OK;
}

/* Number of windows along an axis. With ceil_mode the last one may stick out, but must begin
 * within the input or the padding before it (PyTorch's rule). */
static int64_t count_windows(const struct window *w, int a, bool ceil_mode)
{
	const int64_t s = w->stride[a], reach = (w->kernel[a] - 1) * w->dilation[a] + 1;
	const int64_t room = w->size[a] + w->before[a] + w->after[a] - reach;
	if (room < 0)
		return 0;
	int64_t count = (room + (ceil_mode ? s - 1 : 0)) / s + 1;
	if (ceil_mode && (count - 1) * s >= w->size[a] + w->before[a])
		count--;
	return count;
}

/* The attributes that Conv, ConvTranspose and the pools share. */
static enum status window_begin(
	struct graph *g, const struct node *n, int axes, const int64_t *kernel, struct window *w)
{
	if (axes < 1 || axes > 3) {
		char shape[200];
		return node_fail(g, n, NULL, "needs 1 to 3 spatial axes, has the shape %s",
			tensor_shape_text(n->in[0], shape));
	}
	memset(w, 0, sizeof *w);
	w->axes = axes;
	const int first = 3 - w->axes;
	for (int a = 0; a < 3; a++)
		w->kernel[a] = w->stride[a] = w->dilation[a] = w->size[a] = w->out[a] = 1;
	TRY(read_list(g, n, "kernel_shape", w->axes, 1, 1, w->kernel + first));
	if (kernel && node_attr(n, "kernel_shape") &&
		memcmp(kernel, w->kernel + first, (size_t)w->axes * sizeof *kernel) != 0)
		return node_fail(g, n, NULL, "kernel_shape differs from the weight's shape");
	if (kernel)
		memcpy(w->kernel + first, kernel, (size_t)w->axes * sizeof *kernel);
	else if (!node_attr(n, "kernel_shape"))
		return node_fail(g, n, NULL, "attribute kernel_shape is missing");
	TRY(read_list(g, n, "strides", w->axes, 1, 1, w->stride + first));
	return read_list(g, n, "dilations", w->axes, 1, 1, w->dilation + first);
}

static enum status window_end(struct graph *g, const struct node *n, struct window *w)
{
	w->taps = w->plane = w->out_plane = 1;
	for (int a = 0; a < 3; a++)
		if (!size_mul(w->taps, w->kernel[a], &w->taps) ||
			!size_mul(w->plane, w->size[a], &w->plane) ||
			!size_mul(w->out_plane, w->out[a], &w->out_plane))
			return node_fail(g, n, NULL, "sizes overflow");
	return ST_OK;
}

enum status window_read(
	struct graph *g, const struct node *n, const int64_t *kernel, struct window *w)
{
	return window_read_sized(g, n, n->in[0]->rank - 2, n->in[0]->dim + 2, kernel, w);
}

enum status window_read_sized(struct graph *g, const struct node *n, int axes, const int64_t *size,
	const int64_t *kernel, struct window *w)
{
	TRY(window_begin(g, n, axes, kernel, w));
	memcpy(w->size + 3 - w->axes, size, (size_t)w->axes * sizeof *w->size);
	TRY(read_padding(g, n, w));
	for (int a = 0; a < 3; a++) {
		w->out[a] = count_windows(w, a, node_int(n, "ceil_mode", 0) != 0);
		if (w->out[a] < 1)
			return node_fail(g, n, NULL, "a window of %lld does not fit in %lld",
				(long long)w->kernel[a], (long long)w->size[a]);
	}
	return window_end(g, n, w);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ONNX's ConvTranspose: output_shape, or auto_pad, asks for a size, and the padding follows. What
 * output_shape asks for beyond all windows stays 0; auto_pad's strides times the input is what they
 * are cut to, and no more than there is of them. */
enum status window_read_transposed(
	struct graph *g, const struct node *n, const int64_t *kernel, struct window *w)
{
	enum { LARGEST = 1 << 30 };
	int64_t extra[3] = {0};
	int len;
	const int64_t *asked;
	const char *mode = node_string(n, "auto_pad", "NOTSET");
	const bool upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0;
	TRY(window_begin(g, n, n->in[0]->rank - 2, kernel, w));
	const int first = 3 - w->axes;
	TRY(read_list(g, n, "output_padding", w->axes, 0, 0, extra + first));
	TRY(node_ints(g, n, "output_shape", -1, &len, &asked));
	if (asked && len != w->axes && len != w->axes + 2)
		return node_fail(g, n, NULL, "output_shape has %d values", len);
	if (!upper && !lower)
		TRY(read_padding(g, n, w));
	for (int a = first; a < 3; a++) {
		w->out[a] = n->in[0]->dim[2 + a - first];
		const int64_t reach = (w->kernel[a] - 1) * w->dilation[a] + 1;
		const int64_t all = w->stride[a] * (w->out[a] - 1) + extra[a] + reach;
		w->size[a] = asked            ? asked[len - 3 + a]
			     : upper || lower ? least(all, w->out[a] * w->stride[a])
					      : all - w->before[a] - w->after[a];
		if (w->out[a] < 1 || w->size[a] < 1 || w->size[a] > LARGEST)
			return node_fail(g, n, NULL, "%lld elements along an axis would make %lld",
				(long long)w->out[a], (long long)w->size[a]);
		if (asked || upper || lower) {
			const int64_t pad = all > w->size[a] ? all - w->size[a] : 0;
			w->before[a] = upper ? pad / 2 : pad - pad / 2;
			w->after[a] = pad - w->before[a];
		}
	}
	return window_end(g, n, w);
}

static struct tensor *window_tensor(struct graph *g, const struct window *w, const int64_t *size,
	int64_t batch, int64_t channels)
{
	int64_t dim[RANK_MAX] = {batch, channels};
	memcpy(dim + 2, size + 3 - w->axes, (size_t)w->axes * sizeof *dim);
	return graph_tensor(g, NULL, g->real, 2 + w->axes, dim);
}

struct tensor *window_input(
	struct graph *g, const struct window *w, int64_t batch, int64_t channels)
{
	return window_tensor(g, w, w->size, batch, channels);
}

struct tensor *window_output(
	struct graph *g, const struct window *w, int64_t batch, int64_t channels)
{
	return window_tensor(g, w, w->out, batch, channels);
}

bool window_block(const struct window *w, int64_t block, struct window *out)
{
	if (w->axes == 3)
		return false;
	*out = *w;
	int64_t *const list[] = {out->kernel, out->stride, out->dilation, out->before, out->after,
		out->size, out->out};
	for (int i = 0; i < 7; i++) {
		list[i][0] = list[i][1];
		list[i][1] = list[i][2];
		list[i][2] = i < 3 ? 1 : i < 5 ? 0 : block;
	}
	out->axes++;
	out->plane *= block;
	out->out_plane *= block;
	return true;
}
