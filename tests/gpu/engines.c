/* cuda_engines MODEL.onnx OPTIONS...: which of cuDNN's engines computes each convolution of a
 * model's step, in each precision on each architecture, asked of the real cuDNN without a GPU; a
 * line for each that differs. 1: some convolution has none; 77: there is no cuDNN that can be
 * asked. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/command_options.h"
#include "compile/pipeline.h"

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)hint;
	if (level == DIAG_ERROR)
		fprintf(stderr, "%s: %s\n", w && w->node ? w->node : "", message);
}

static void print_answer(const struct gpu_answer *x, const char *precision, int arch)
{
	static const char *const kind[] = {[STINT_CALL_CONV_FORWARD] = "forward",
		[STINT_CALL_CONV_DATA] = "input's",
		[STINT_CALL_CONV_WEIGHT] = "weight's"};
	const struct stint_convolution *c = &x->c.shape;
	printf("%s sm_%d %s %" PRId64 " x %" PRId64, precision, arch, kind[x->c.kind], c->n, c->c);
	for (int i = 0; i < c->axes; i++)
		printf("x%" PRId64, c->size[i]);
	printf(" to %" PRId64 " by", c->k);
	for (int i = 0; i < c->axes; i++)
		printf("%c%" PRId64 "/%" PRId64, i ? 'x' : ' ', c->kernel[i], c->stride[i]);
	if (c->groups > 1)
		printf(" groups %" PRId64, c->groups);
	if (x->refused)
		printf(": NONE\n");
	else
		printf(": engine %" PRId64 ", %" PRId64 " KiB\n", x->engine, x->workspace >> 10);
}

/* *refused: -1 where there is no cuDNN, else more by the convolutions that have no engine. */
static enum status ask(struct compile_options o, const char *name, enum precision precision,
	int arch, struct diag *d, int *refused)
{
	struct pipeline p = {.arena = arena_new(), .diag = d, .o = &o};
	o.target = TARGET_CUDA;
	o.precision = precision;
	o.arch = arch;
	enum status st = p.arena ? pipeline_import(&p) : ST_INTERNAL;
	if (st == ST_OK)
		st = pipeline_graphs(&p);
	const bool narrow = precision == PRECISION_BF16 || precision == PRECISION_FP16;
	for (const struct gpu_answer *x = p.asked.answer; st == ST_OK && x; x = x->next) {
		if (narrow && x->c.type[0] == STINT_GPU_F32) /* before values were narrow */
			continue;
		print_answer(x, name, arch);
		*refused += x->refused;
	}
	if (p.asked.none)
		*refused = -1;
	arena_free(p.arena);
	return st;
}

int main(int argc, char **argv)
{
	static const int arch[] = {80, 86, 89, 90, 100, 120};
	static const struct {
		enum precision precision;
		const char *name;
	} precision[] = {{PRECISION_FP32, "fp32"}, {PRECISION_TF32, "tf32"},
		{PRECISION_BF16, "bf16"}, {PRECISION_FP16, "fp16"}};
	struct diag d = {.put = put};
	struct options o;
	struct arena *a = arena_new();
	int refused = 0;
	if (!a || options_parse(a, COMMAND_COMPILE, argc, (const char **)argv, &o, &d) != ST_OK)
		return 2;
	for (size_t i = 0; i < sizeof precision / sizeof *precision; i++)
		for (size_t k = 0; k < sizeof arch / sizeof *arch && refused >= 0; k++)
			if (ask(o.compile, precision[i].name, precision[i].precision, arch[k], &d,
				    &refused) != ST_OK)
				return 2;
	arena_free(a);
	if (refused < 0)
		printf("no cuDNN that plans without a device\n");
	return refused < 0 ? 77 : refused > 0;
}
