#include "compile/adapters.h"

#include <inttypes.h>
#include <string.h>

#include "base/init.h"
#include "runtime/safetensors.h"
#include "runtime/stint_rt.h"

struct adding {
	struct pipeline *p;
	struct diag *d;
	const struct adapter_folder *from; /* NULL: adapters are new */
};

/* --- First values --- */

/* Those of the folder, which calls it `name`. */
static enum status continued(struct adding *x, struct tensor *t, const char *name)
{
	const struct safetensors_entry *e = safetensors_find(x->from->tensors, name);
	const struct where at = {.file = x->from->file, .node = name, .op = "tensor"};
	char have[200], want[200];
	if (!e || e->dtype != STINT_F32)
		return diag_fail(
			x->d, ST_INVALID, &at, NULL, "is %s", e ? "not of type F32" : "missing");
	if (e->rank != t->rank || memcmp(e->dim, t->dim, (size_t)t->rank * sizeof *t->dim) != 0)
		return diag_fail(x->d, ST_INVALID, &at, "it belongs to another base model",
			"is %s, and beside this model's weight it would be %s",
			dims_text(e->rank, e->dim, have), dims_text(t->rank, t->dim, want));
	void *data = arena_alloc(x->p->arena, (size_t)t->numel, (size_t)dtype_bytes(t->dtype));
	for (int64_t i = 0; data && i < t->numel; i++)
		value_set(t->dtype, data, i, (double)((const float *)e->data)[i]);
	t->data = data;
	return data ? ST_OK : diag_nomem(x->d);
}

static enum status start(void *user, struct tensor *t, enum adapter_start how, int64_t fan_in)
{
	struct adding *x = user;
	const uint64_t stream = init_stream(t->name);
	if (x->from)
		return continued(x, t, t->name);
	if (how == ADAPTER_GIVEN)
		return ST_OK;
	void *data = arena_alloc(x->p->arena, (size_t)t->numel, (size_t)dtype_bytes(t->dtype));
	for (int64_t i = 0; data && how != ADAPTER_ZEROS && i < t->numel; i++)
		value_set(t->dtype, data, i,
			how == ADAPTER_UNIFORM ? init_kaiming(stream, i, fan_in)
					       : init_normal(stream, i));
	t->data = data;
	return data ? ST_OK : diag_nomem(x->d);
}

/* --- Whose adapters they are --- */

/* Of the weights that adapters stand beside: names, shapes, and values as floats. */
static const char *hash_of(struct pipeline *p)
{
	uint64_t h = HASH_BEGIN;
	for (int i = 0; i < p->nadapter; i++) {
		const struct tensor *t = p->adapter[i].weight;
		h = hash_bytes(h, t->name, strlen(t->name) + 1);
		h = hash_bytes(h, t->dim, (size_t)t->rank * sizeof *t->dim);
		for (int64_t k = 0; t->data && k < t->numel; k++) {
			uint32_t bits;
			const float v = (float)tensor_real(t, k);
			memcpy(&bits, &v, sizeof bits);
			h = (h ^ bits) * UINT64_C(0x100000001b3);
			h ^= h >> 29;
		}
	}
	return arena_printf(p->arena, "%016" PRIx64, h);
}

static enum status check_base(const struct adding *x)
{
	if (!x->p->base_hash)
		return diag_nomem(x->d);
	if (!x->from || !x->from->base || !strcmp(x->from->base, x->p->base_hash))
		return ST_OK;
	return diag_fail(x->d, ST_INVALID, &(struct where){.file = x->from->path},
		"stint_adapter.json tells; without that file, shapes alone are compared",
		"is an adapter of another base: its weights hash to %s, this model's to %s",
		x->from->base, x->p->base_hash);
}

/* Parameters that the folder has whole begin there. */
static enum status start_others(struct adding *x, struct graph *g)
{
	for (int i = 0; i < g->ntensor; i++) {
		struct tensor *t = g->tensor[i];
		if (t->role != TR_PARAMETER || !t->from_model)
			continue;
		const char *name = arena_printf(x->p->arena, ADAPTER_PREFIX "%s", t->name);
		if (!name)
			return diag_nomem(x->d);
		if (safetensors_find(x->from->tensors, name))
			TRY(continued(x, t, name));
	}
	return ST_OK;
}

/* A weight that PEFT saves beside its adapter, of embeddings and heads: the model's own, unchanged.
 */
static bool is_base(const struct adding *x, const struct safetensors_entry *e)
{
	static const char end[] = ".base_layer.weight";
	const size_t prefix = sizeof ADAPTER_PREFIX - 1, length = strlen(e->name);
	const size_t n = length > prefix + sizeof end ? length - prefix - sizeof end + 1 : 0;
	if (!n || strcmp(e->name + length - sizeof end + 1, end) != 0 || e->dtype != STINT_F32)
		return false;
	for (int i = 0; i < x->p->nadapter; i++) {
		const struct adapter *a = &x->p->adapter[i];
		const struct tensor *t = a->weight;
		if (strlen(a->module) != n || strncmp(a->module, e->name + prefix, n) != 0 ||
			!t->data || e->rank != 2 || t->rank != 2 ||
			(int64_t)(e->bytes / 4) != t->numel)
			continue;
		const int64_t columns = e->dim[1];
		const bool turned = a->kind == ADAPTER_LINEAR && !a->turned;
		bool same = true;
		for (int64_t k = 0; same && k < t->numel; k++)
			same = (float)tensor_real(t, turned ? k % columns * e->dim[0] + k / columns
							    : k) == ((const float *)e->data)[k];
		return same;
	}
	return false;
}

/* What the folder holds and nobody took would be lost. */
static enum status check_taken(const struct adding *x, const struct graph *g)
{
	const size_t prefix = sizeof ADAPTER_PREFIX - 1;
	for (int k = 0; k < safetensors_count(x->from->tensors); k++) {
		const struct safetensors_entry *e = safetensors_at(x->from->tensors, k);
		const char *name = e->name;
		bool taken = is_base(x, e);
		for (int i = 0; i < g->ntensor && !taken; i++) {
			const struct tensor *t = g->tensor[i];
			taken = t->role == TR_PARAMETER &&
				!strcmp(t->name, t->from_model ? name + prefix : name);
		}
		if (!taken)
			return diag_fail(x->d, ST_INVALID,
				&(struct where){x->from->file, name, "tensor"},
				"it belongs to another base model, or --freeze says so",
				"is of no adapter and no parameter here");
	}
	return ST_OK;
}

/* --- The specs --- */

static enum status add(struct adding *x, int n, const struct adapter_spec *spec, struct graph **g)
{
	struct pipeline *p = x->p;
	const struct adapter_options o = {.nspec = n,
		.spec = spec,
		.train_pattern = p->o->import.train_pattern,
		.freeze_pattern = p->o->import.freeze_pattern,
		.train_name = x->from ? x->from->train : NULL,
		.start = start,
		.user = x};
	TRY(graph_adapt(*g, &o, g, &p->nadapter, &p->adapter));
	p->base_hash = hash_of(p);
	TRY(check_base(x));
	if (!x->from)
		return ST_OK;
	TRY(start_others(x, *g));
	return check_taken(x, *g);
}

static enum status add_new(struct adding *x, struct graph **g)
{
	const char *const *text = x->p->o->lora;
	const int n = list_length(text);
	struct adapter_spec *spec = ARENA_ARRAY(x->p->arena, struct adapter_spec, n);
	if (!spec)
		return diag_nomem(x->d);
	for (int i = 0; i < n; i++)
		TRY(adapter_parse(x->p->arena, text[i], &spec[i], x->d));
	return add(x, n, spec, g);
}

enum status adapters_begin(const struct pipeline *p, struct diag *d, struct adapter_folder *from)
{
	*from = (struct adapter_folder){0};
	if (p->o->lora && p->o->adapter)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--adapter and --lora: a folder says what adapters there are, choose one");
	return p->o->adapter ? adapter_folder_read(p->arena, p->o->adapter, from, d) : ST_OK;
}

enum status adapters_add(
	struct pipeline *p, struct diag *d, const struct adapter_folder *from, struct graph **g)
{
	struct adding x = {.p = p, .d = d, .from = from->tensors ? from : NULL};
	if (p->o->lora)
		return add_new(&x, g);
	return x.from ? add(&x, from->nspec, from->spec, g) : ST_OK;
}
