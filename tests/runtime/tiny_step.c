#include "tiny_step.h"

#include <stdio.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { X = 0, TARGET = 64, W = 128, COUNT = 192, SCALE = 256, CONTROL = 320, LR = 384, LOSS = 448 };

static const int64_t one[] = {1}, four[] = {4};

#define RESIDENTS(dtype, width)                                                                    \
	{                                                                                          \
		{"x", STINT_INPUT, dtype, 1, one, width, X, 0, 0},                                 \
			{"target", STINT_INPUT, dtype, 1, one, width, TARGET, 0, 0},               \
			{"w", STINT_PARAMETER, dtype, 1, one, width, W, 1, 0},                     \
			{"state/count/w", STINT_STATE, STINT_I64, 1, one, 8, COUNT, 0, 0},         \
			{"scale", STINT_CONSTANT, dtype, 0, NULL, width, SCALE, 0, 0},             \
			{"control", STINT_CONTROL, STINT_I64, 1, four, 32, CONTROL, 0, 0},         \
			{"lr", STINT_CONTROL, dtype, 0, NULL, width, LR, 0, 0},                    \
	}
static const struct stint_tensor single[] = RESIDENTS(STINT_F32, 4);
static const struct stint_tensor twice[] = RESIDENTS(STINT_F64, 8);
static const struct stint_output output[] = {{"y", STINT_F32, 1, one, 4, LOSS + 8, NULL}};
static const char *const kernel = "k0";
static const struct stint_step_info info[] = {
	{"layer/mul", "Mul", &kernel, STINT_FORWARD, 0, 1, 12}};

static void look(stint_step *s)
{
	int64_t threads = 1;
#ifdef _OPENMP
	threads = omp_get_max_threads();
#endif
	memcpy(s->arena + TINY_SEEN, s->arena + CONTROL, 32);
	memcpy(s->arena + TINY_SEEN + 32, &threads, 8);
}

static double get(const stint_step *s, size_t offset)
{
	float v;
	double d;
	memcpy(&d, s->arena + offset, sizeof d);
	memcpy(&v, s->arena + offset, sizeof v);
	return s->model->loss_dtype == STINT_F64 ? d : (double)v;
}

static void put(stint_step *s, size_t offset, double d)
{
	float v = (float)d;
	if (s->model->loss_dtype == STINT_F64)
		memcpy(s->arena + offset, &d, sizeof d);
	else
		memcpy(s->arena + offset, &v, sizeof v);
}

static int forward(stint_step *s, const struct stint_probe *probe)
{
	double error = get(s, W) * get(s, X) - get(s, TARGET);
	look(s);
	if (get(s, X) > 1000) /* stands for an index that is read out of range */
		return stint_bad_index(s, 0, (int64_t)get(s, X), &info[0]);
	put(s, LOSS, error * error / 2);
	put(s, LOSS + 8, get(s, W) * get(s, X));
	if (probe && probe->output)
		probe->output(probe->user, 0, STINT_F32, s->arena + LOSS + 8, 4);
	return 0;
}

static int train(stint_step *s, const struct stint_probe *probe)
{
	int rc = forward(s, probe);
	if (rc)
		return rc;
	int64_t count;
	double gradient = (get(s, W) * get(s, X) - get(s, TARGET)) * get(s, X);
	put(s, W, get(s, W) - get(s, LR) * gradient);
	memcpy(&count, s->arena + COUNT, 8);
	count++;
	memcpy(s->arena + COUNT, &count, 8);
	return 0;
}

static int refuse(stint_step *s)
{
	snprintf(s->message, sizeof s->message, "planned for another machine");
	return STINT_BAD_MACHINE;
}

static const struct stint_loss_term mse = {.name = "mse",
	.kind = "mse",
	.text = "mse",
	.weight = 1,
	.target = 1,
	.offset_train = LOSS,
	.offset_eval = LOSS};

#define MODEL(list, type, check, step)                                                             \
	{                                                                                          \
		.version = STINT_RT_VERSION, .name = "tiny", .arena_bytes = 576, .alignment = 64,  \
		.threads = 2, .machine_check = check, .nresident = 7, .noutput = 1,                \
		.ntrain_steps = 1, .neval_steps = 1, .resident = list, .output = output,           \
		.train_info = info, .eval_info = info, .control = 5, .lr = 6, .nloss = 1,          \
		.loss = &mse, .loss_offset_train = LOSS, .loss_offset_eval = LOSS,                 \
		.loss_dtype = type, .train = step, .eval = forward,                                \
	}
const struct stint_model tiny_model = MODEL(single, STINT_F32, NULL, train);
const struct stint_model tiny_model_double = MODEL(twice, STINT_F64, NULL, train);
const struct stint_model tiny_model_elsewhere = MODEL(single, STINT_F32, refuse, train);
const struct stint_model tiny_model_forward = MODEL(single, STINT_F32, NULL, NULL);
