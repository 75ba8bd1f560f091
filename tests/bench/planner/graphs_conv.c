/* Convolutional networks from their papers' layer tables, for images of 224 × 224. N is the batch.
 */
#include "families.h"

struct trunk {
	struct net net;
	struct arena *a;
	int64_t batch, channels, side; /* of x */
	int x, count;
};

static struct trunk trunk_start(struct arena *a, int batch)
{
	struct trunk t = {
		.net = net_start(a, 0), .a = a, .batch = batch, .channels = 3, .side = 224};
	t.x = t.net.input = net_input(&t.net, 4 * t.batch * 3 * 224 * 224, "image");
	return t;
}

static const char *called(struct trunk *t, const char *what)
{
	const char *s = arena_printf(t->a, "%s%d", what, t->count);
	return s ? s : "";
}

static int64_t area(const struct trunk *t)
{
	return 4 * t->batch * t->side * t->side;
}

/* kernel × kernel, `groups` of 1 or the channels; workspace of a lowered image for kernels over 1.
 */
static void conv(
	struct trunk *t, int64_t out, int64_t kernel, int64_t stride, bool grouped, bool bias)
{
	int64_t per = (grouped ? 1 : t->channels) * kernel * kernel;
	t->count++;
	t->side = (t->side + stride - 1) / stride;
	int64_t lowered = 4 * per * t->side * t->side;
	struct net_linear l = {.out = area(t) * out,
		.weight = 4 * out * per,
		.bias = bias ? 4 * out : 0,
		.flops = 2.0 * (double)(area(t) / 4) * (double)out * (double)per,
		.workspace = kernel > 1 && !grouped ? lowered : 0};
	t->x = net_linear(&t->net, called(t, "conv"), t->x, &l);
	t->channels = out;
}

static void batch_norm(struct trunk *t)
{
	t->x = net_norm(&t->net, called(t, "bn"), t->x, 4 * t->channels, 4 * t->channels, true);
}

static void relu(struct trunk *t)
{
	t->x = net_unary(&t->net, called(t, "relu"), t->x, NET_OUTPUT);
}

static void conv_norm(struct trunk *t, int64_t out, int64_t kernel, int64_t stride, bool act)
{
	conv(t, out, kernel, stride, false, false);
	batch_norm(t);
	if (act)
		relu(t);
}

static void pool(struct trunk *t, bool max)
{
	t->side /= 2;
	t->x = net_pool(&t->net, called(t, "pool"), t->x, area(t) * t->channels, max);
}

static void average(struct trunk *t)
{
	t->side = 1;
	t->x = net_pool(&t->net, "average", t->x, area(t) * t->channels, false);
}

static void dense(struct trunk *t, const char *name, int64_t out)
{
	int64_t in = t->channels * t->side * t->side;
	struct net_linear l = {.out = 4 * t->batch * out,
		.weight = 4 * in * out,
		.bias = 4 * out,
		.flops = 2.0 * (double)t->batch * (double)in * (double)out};
	t->x = net_linear(&t->net, name, t->x, &l);
	t->channels = out;
	t->side = 1;
}

static struct problem *finish(struct trunk *t, const char *name)
{
	return net_train(
		&t->net, t->x, 8 * t->batch, arena_printf(t->a, "%s-%d", name, (int)t->batch));
}

struct problem *family_vgg16(struct arena *a, int n, uint64_t seed)
{
	static const int table[] = {
		64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
	struct trunk t = trunk_start(a, n);
	(void)seed;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (table[i] == 0) {
			pool(&t, true);
			continue;
		}
		conv(&t, table[i], 3, 1, false, true);
		relu(&t);
	}
	for (int i = 0; i < 2; i++) {
		dense(&t, i ? "fc2" : "fc1", 4096);
		t.x = net_unary(&t.net, i ? "fc2.relu" : "fc1.relu", t.x, NET_OUTPUT);
		t.x = net_unary(&t.net, i ? "fc2.drop" : "fc1.drop", t.x, NET_NOTHING);
	}
	dense(&t, "fc3", 1000);
	return finish(&t, "vgg16");
}

/* 1 × 1, 3 × 3, 1 × 1 to four times the width, and the sum with the input. */
static void bottleneck(struct trunk *t, int64_t width, int64_t stride, bool project)
{
	struct trunk side = *t; /* where the shortcut starts */
	conv_norm(t, width, 1, 1, true);
	conv_norm(t, width, 3, stride, true);
	conv_norm(t, 4 * width, 1, 1, false);
	int main = t->x;
	if (project) {
		t->x = side.x;
		t->channels = side.channels;
		t->side = side.side;
		conv_norm(t, 4 * width, 1, stride, false);
	}
	t->x = net_add(&t->net, called(t, "add"), main, project ? t->x : side.x);
	relu(t);
}

struct problem *family_resnet50(struct arena *a, int n, uint64_t seed)
{
	static const int blocks[4] = {3, 4, 6, 3};
	struct trunk t = trunk_start(a, n);
	(void)seed;
	conv_norm(&t, 64, 7, 2, true);
	pool(&t, true);
	for (int s = 0; s < 4; s++)
		for (int i = 0; i < blocks[s]; i++)
			bottleneck(&t, 64 << s, s > 0 && i == 0 ? 2 : 1, i == 0);
	average(&t);
	dense(&t, "fc", 1000);
	return finish(&t, "resnet50");
}

static void inverted(struct trunk *t, int64_t expand, int64_t out, int64_t stride)
{
	int x = t->x;
	int64_t in = t->channels;
	if (expand > 1)
		conv_norm(t, in * expand, 1, 1, true);
	conv(t, t->channels, 3, stride, true, false);
	batch_norm(t);
	relu(t);
	conv_norm(t, out, 1, 1, false);
	if (stride == 1 && in == out)
		t->x = net_add(&t->net, called(t, "add"), x, t->x);
}

struct problem *family_mobilenet(struct arena *a, int n, uint64_t seed)
{
	/* expansion, channels, repeats, stride of the first */
	static const int table[7][4] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2},
		{6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
	struct trunk t = trunk_start(a, n);
	(void)seed;
	conv_norm(&t, 32, 3, 2, true);
	for (int s = 0; s < 7; s++)
		for (int i = 0; i < table[s][2]; i++)
			inverted(&t, table[s][0], table[s][1], i ? 1 : table[s][3]);
	conv_norm(&t, 1280, 1, 1, true);
	average(&t);
	dense(&t, "fc", 1000);
	return finish(&t, "mobilenetv2");
}

struct problem *family_densenet(struct arena *a, int n, uint64_t seed)
{
	static const int blocks[4] = {6, 12, 24, 16};
	struct trunk t = trunk_start(a, n);
	int part[32];
	(void)seed;
	conv_norm(&t, 64, 7, 2, true);
	pool(&t, true);
	for (int s = 0; s < 4; s++) {
		int64_t channels = t.channels;
		part[0] = t.x;
		for (int i = 1; i <= blocks[s]; i++) {
			t.channels = channels + 32 * (i - 1);
			if (i > 1)
				t.x = net_concat(&t.net, called(&t, "concat"), part, i);
			batch_norm(&t);
			relu(&t);
			conv_norm(&t, 128, 1, 1, true);
			conv(&t, 32, 3, 1, false, false);
			part[i] = t.x;
		}
		t.x = net_concat(&t.net, called(&t, "join"), part, blocks[s] + 1);
		t.channels = channels + 32 * blocks[s];
		batch_norm(&t);
		relu(&t);
		if (s < 3) {
			conv(&t, t.channels / 2, 1, 1, false, false);
			pool(&t, false);
		}
	}
	average(&t);
	dense(&t, "fc", 1000);
	return finish(&t, "densenet121");
}
