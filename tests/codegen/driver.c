/* Runs the step generated from tests/codegen/tiny.c and compares every value with plain C, bit for
 * bit. argv[1]: what stands before the model's names. Stands in for the runtime. */
#include "stint_rt_device.h"
#include "stint_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef DRIVER_REAL real;

static int failures, ticks, repeated, outputs, gradients;
static real output[5], gradient[8];

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "driver.c:%d: not so: %s\n", __LINE__, #what);             \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

int stint_bad_call(stint_step *s, int step, int code, const struct stint_step_info *info)
{
	snprintf(s->message, sizeof s->message, "%d %s returned %d", step, info->op, code);
	return STINT_BAD_MACHINE;
}

int stint_bad_index(stint_step *s, int step, int64_t value, const struct stint_step_info *info)
{
	snprintf(s->message, sizeof s->message, "%d %d %s", step, (int)value, info->op);
	return STINT_BAD_DATA;
}

#ifdef LIBRARY
#include "stint_lib.h"

static int library_status;
static const char *library_name = "the test's library";

const struct stint_library stint_rt_library;

int stint_lib_run(struct stint_lib *l, const void *const *in, void *const *out, void *ws)
{
	const real *x = in[0];
	real *y = out[0];
	CHECK(l == (struct stint_lib *)&library_status && (uintptr_t)ws % 64 == 0);
	memset(ws, 0, 64);
	memset(y, 0, 8 * sizeof *y);
	for (int i = 0; i < 32; i++)
		y[i % 8] += x[i];
	return library_status;
}

const char *stint_lib_identity(int threads, char buf[static 96])
{
	(void)threads;
	return strcpy(buf, library_name);
}

static void check_library(stint_step *s)
{
	const struct stint_model *m = s->model;
	const struct stint_lib_call columns = {.product = {.batch = 1, .m = 1, .n = 8, .k = 4}};
	CHECK(m->library == &stint_rt_library);
	CHECK(m->nlib == 1 && stint_lib_call_same(&m->lib[0].call, &columns));
	CHECK(m->lib[0].workspace == 64);
	library_name = "another";
	CHECK(m->machine_check(s) == STINT_BAD_MACHINE && strstr(s->message, "another"));
	library_status = 7;
	CHECK(m->train(s, NULL) == STINT_BAD_MACHINE && strstr(s->message, "returned 7"));
}
#endif

static void on_tick(void *user, int index)
{
	(void)user;
	CHECK(index == ticks - repeated);
	ticks++;
}

/* Step 2 once more, which works on nothing in place. */
static int on_again(void *user, int index)
{
	(void)user;
	if (index != 2 || repeated)
		return 0;
	return ++repeated;
}

static void on_output(void *user, int index, int dtype, const void *data, size_t bytes)
{
	(void)user;
	CHECK(index == 0 && bytes == sizeof output);
	CHECK(dtype == (sizeof(real) == 4 ? STINT_F32 : STINT_F64));
	memcpy(output, data, bytes);
	outputs++;
}

static void on_gradient(void *user, int parameter, const void *data, size_t bytes)
{
	CHECK(parameter == *(int *)user && bytes == sizeof gradient);
	memcpy(gradient, data, bytes);
	gradients++;
}

static int find(const char *prefix, const char *name)
{
	for (int i = 0; i < stint_model_tiny.nresident; i++) {
		const char *s = stint_model_tiny.resident[i].name;
		if (!strncmp(s, prefix, strlen(prefix)) && !strcmp(s + strlen(prefix), name))
			return i;
	}
	fprintf(stderr, "no resident %s%s\n", prefix, name);
	exit(1);
}

static void *at(stint_step *s, const char *prefix, const char *name)
{
	return s->arena + stint_model_tiny.resident[find(prefix, name)].offset;
}

static real pick_total(const real *p)
{
	real t = ((p[0] + p[4]) + p[2]) + (p[1] + p[3]);
	return t + t;
}

int main(int argc, char **argv)
{
	const struct stint_model *m = &stint_model_tiny;
	const char *prefix = argc > 1 ? argv[1] : "";
	stint_step s = {
		.model = m, .arena = aligned_alloc(m->alignment, (m->arena_bytes + 63) / 64 * 64)};
	real *x = at(&s, prefix, "x"), *w = at(&s, prefix, "w"), *lr = at(&s, prefix, "lr");
	int64_t *index = at(&s, prefix, "index");
	real w0[8], h[32], v[32], dw[8] = {0}, p[5];
	lr[0] = (real)0.1;
	for (int i = 0; i < 32; i++)
		x[i] = (real)((i * 7 % 11) - 5) / 3;
	for (int i = 0; i < 8; i++)
		w0[i] = w[i] = (real)(i - 3) / 7;
	for (int i = 0; i < 5; i++)
		index[i] = (i * 13 + 2) % 32;
	for (int i = 0; i < 32; i++) {
		h[i] = x[i] * w0[i % 8];
		v[i] = 2 * h[i] + (real)0.5;
		v[i] = v[i] > 0 ? v[i] : 0;
		dw[i % 8] += (x[i] > v[i] ? x[i] : h[i]) * v[i];
	}
	for (int i = 0; i < 5; i++)
		p[i] = v[index[i]];
	const real loss = pick_total(p);

#ifdef LIBRARY
	struct stint_lib *lib[] = {(struct stint_lib *)&library_status};
	s.lib = lib;
#endif
	int parameter = find(prefix, "w");
	struct stint_probe probe = {&parameter, on_gradient, on_output, on_tick, on_again, NULL};
	CHECK(m->machine_check(&s) == STINT_OK);
	CHECK(m->eval(&s, NULL) == STINT_OK);
	CHECK(*(real *)(s.arena + m->loss_offset_eval) == loss);
	CHECK(!memcmp(s.arena + m->output[0].offset, p, sizeof p));
	CHECK(m->train(&s, &probe) == STINT_OK);
	CHECK(*(real *)(s.arena + m->loss_offset_train) == loss);
	/* step 2 ran twice */
	CHECK(ticks == m->ntrain_steps + 1 && outputs == 2 && gradients == 1);
	CHECK(!memcmp(gradient, dw, sizeof dw) && !memcmp(output, p, sizeof p));
	CHECK(!memcmp(w, w0, sizeof w0));
	CHECK(m->train(&s, NULL) == STINT_OK);
	for (int i = 0; i < 8; i++)
		CHECK(w[i] == w0[i] - lr[0] * dw[i]);
#ifdef LIBRARY
	check_library(&s);
#endif
	index[3] = 32;
	CHECK(m->train(&s, NULL) == STINT_BAD_DATA && !strcmp(s.message, "2 32 t.pick"));
	CHECK(m->resident[parameter].trainable && !m->resident[find(prefix, "x")].trainable);
	free(s.arena);
	return failures != 0;
}
