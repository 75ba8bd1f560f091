#include "compile/adapters.h"

#include <math.h>
#include <string.h>

#include "kernels/philox.h"

/* FNV-1a, 32 bits: whose random numbers a parameter's are. */
static uint32_t stream_of(const char *name)
{
	uint32_t h = 0x811c9dc5;
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x01000193u;
	return h;
}

/* As PEFT begins: Kaiming's uniform with a = sqrt(5), which is 1 / sqrt(fan_in) to either side; or
 * normal, by Box and Muller. The same in every compilation. */
static double drawn(enum adapter_start how, int64_t fan_in, uint32_t stream, int64_t i)
{
	const double u = stint_philox_uniform(0, 0, stream, how == ADAPTER_NORMAL ? 2 * i : i);
	if (how == ADAPTER_UNIFORM)
		return (2 * u - 1) / sqrt((double)fan_in);
	const double v = stint_philox_uniform(0, 0, stream, 2 * i + 1);
	return sqrt(-2 * log(1 - u)) * cos(2 * acos(-1) * v);
}

static enum status start(void *user, struct tensor *t, enum adapter_start how, int64_t fan_in)
{
	struct pipeline *p = user;
	const uint32_t stream = stream_of(t->name);
	if (how == ADAPTER_ZEROS)
		return ST_OK;
	void *data = arena_alloc(p->arena, (size_t)t->numel, (size_t)dtype_bytes(t->dtype));
	for (int64_t i = 0; data && i < t->numel; i++)
		value_set(t->dtype, data, i, drawn(how, fan_in, stream, i));
	t->data = data;
	return data ? ST_OK : diag_nomem(p->diag);
}

enum status adapters_add(struct pipeline *p, struct diag *d, struct graph **g)
{
	const char *const *text = p->o->lora;
	int n = 0;
	while (text && text[n])
		n++;
	if (!n)
		return ST_OK;
	struct adapter_spec *spec = ARENA_ARRAY(p->arena, struct adapter_spec, n);
	if (!spec)
		return diag_nomem(d);
	for (int i = 0; i < n; i++)
		TRY(adapter_parse(p->arena, text[i], &spec[i], d));
	const struct adapter_options o = {.nspec = n,
		.spec = spec,
		.train_pattern = p->o->import.train_pattern,
		.start = start,
		.user = p};
	return graph_adapt(*g, &o, g, &p->nadapter, &p->adapter);
}
