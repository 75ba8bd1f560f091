/* Updates of small parameters in one launch (CUDA): a few thousand elements keep a GPU busy for
 * less time than a launch takes.
 *
 * Requires: all kernels, named. Produces: groups of steps, each an update whose loop any number of
 * threads may share, and one text for all groups of the same kernels. A group runs in the place of
 * its last update; the others wait for it where no step in between writes what they read or touches
 * what they write, by the places that the plan gave. So the arena stays as it is, and elements are
 * computed by the same text from the same values: the same bits. Who looks on gets one launch a
 * step, each in its own place. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/parts.h"

/* At most so many in one launch: pointers have to fit into the 4 KiB that all drivers take. A large
 * update is worth its launch, and had better find its gradient in the cache. */
enum { MEMBERS_MAX = 64, ARGS_MAX = 480, SMALL = 1 << 20 };

/* --- Which --- */

static int buffer_of(const struct call *c, struct kernel_arg a)
{
	return a.kind == 'y' ? c->out[a.k] : a.kind == 'x' ? c->in[a.k] : -1;
}

static bool may_join(const struct schedule *s, const struct kernels *ks, int step)
{
	const struct call *c = &s->call[step];
	if (c->updates < 0 || !c->node.in[1])
		return false;
	const struct kernel *k = &ks->kernel[c->kernel];
	if (!k->launched || k->checked || k->nstage != 1 || k->stage[0].spread == 0 ||
		k->stage[0].spread > SMALL)
		return false;
	for (int i = 0; i < k->narg; i++) {
		const int b = buffer_of(c, k->arg[i]);
		if (b < 0 || s->plan->buffer[b].bytes == 0)
			return false;
	}
	return true;
}

static bool overlap(const struct plan *p, int x, int y)
{
	if (x < 0 || y < 0)
		return false;
	const struct plan_buffer *a = &p->buffer[x], *b = &p->buffer[y];
	return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static bool meets_any(const struct plan *p, int buffer, int n, const int *list)
{
	for (int i = 0; i < n; i++)
		if (overlap(p, buffer, list[i]))
			return true;
	return false;
}

/* x writes something that y reads or writes. */
static bool disturbs(const struct plan *p, const struct call *x, const struct call *y)
{
	bool met = meets_any(p, x->workspace, y->node.nin, y->in) ||
		   meets_any(p, x->workspace, y->node.nout, y->out);
	for (int o = 0; o < x->node.nout && !met; o++)
		met = meets_any(p, x->out[o], y->node.nin, y->in) ||
		      meets_any(p, x->out[o], y->node.nout, y->out);
	return met;
}

/* The updates of g can wait until `step` is done. */
static bool can_wait(const struct schedule *s, const struct update_group *g, int step)
{
	const struct call *c = &s->call[step];
	for (int i = 0; i < g->n; i++) {
		const struct call *update = &s->call[g->step[i]];
		if (disturbs(s->plan, c, update) || disturbs(s->plan, update, c))
			return false;
	}
	return true;
}

/* --- Their texts --- */

static bool same_members(const struct update_text *x, int n, const int *kernel)
{
	return x->n == n && !memcmp(x->kernel, kernel, (size_t)n * sizeof *kernel);
}

static enum status text_find(
	struct kernels *ks, const struct schedule *s, const struct update_group *g, int *index)
{
	struct update_text x = {.n = g->n};
	int *kernel = ARENA_ARRAY(ks->arena, int, g->n);
	if (!kernel)
		return diag_nomem(ks->diag);
	for (int i = 0; i < g->n; i++) {
		kernel[i] = s->call[g->step[i]].kernel;
		x.nargs += ks->kernel[kernel[i]].narg;
		x.blocks += ks->kernel[kernel[i]].stage[0].blocks;
	}
	x.kernel = kernel;
	for (*index = 0; *index < ks->nupdate_text; ++*index)
		if (same_members(&ks->update_text[*index], g->n, kernel))
			return ST_OK;
	x.name = arena_printf(ks->arena, "u%02d_updates", *index + 1);
	if (!x.name)
		return diag_nomem(ks->diag);
	ks->update_text[ks->nupdate_text++] = x;
	return ST_OK;
}

/* Ends the group that is being made; one update alone is none. */
static enum status close_group(
	struct kernels *ks, const struct schedule *s, struct update_group *g, int *nargs)
{
	if (g->n > 1) {
		TRY(text_find(ks, s, g, &g->text));
		for (int i = 0; i < g->n; i++)
			ks->group_of[g->step[i]] = ks->ngroup;
		ks->group[ks->ngroup++] = *g;
		g->step += g->n;
	}
	g->n = *nargs = 0;
	return ST_OK;
}

/* Steps without a kernel: copies that run beside the kernels and begin as soon as the plan's places
 * allow. Then no update may run later than planned. */
static bool has_copies(const struct schedule *s)
{
	for (int step = 0; step < s->plan->nstep; step++)
		if (s->call[step].kernel < 0)
			return true;
	return false;
}

enum status kernels_group(struct kernels *ks, const struct schedule *s)
{
	const int nstep = s->plan->nstep;
	struct update_group g = {.step = ARENA_ARRAY(ks->arena, int, nstep)};
	int nargs = 0;
	ks->group = ARENA_ARRAY(ks->arena, struct update_group, nstep);
	ks->group_of = ARENA_ARRAY(ks->arena, int, nstep);
	ks->update_text = ARENA_ARRAY(ks->arena, struct update_text, nstep);
	if (!g.step || !ks->group || !ks->group_of || !ks->update_text)
		return diag_nomem(ks->diag);
	for (int step = 0; step < nstep; step++)
		ks->group_of[step] = -1;
	if (has_copies(s))
		return ST_OK;
	for (int step = 0; step < nstep; step++) {
		const bool joins = may_join(s, ks, step);
		const int more = joins ? ks->kernel[s->call[step].kernel].narg : 0;
		if (g.n == MEMBERS_MAX || nargs + more > ARGS_MAX || !can_wait(s, &g, step))
			TRY(close_group(ks, s, &g, &nargs));
		if (joins)
			g.step[g.n++] = step;
		nargs += more;
	}
	return close_group(ks, s, &g, &nargs);
}

/* A body whose threads are counted by whoever calls it: THREAD is its parameter there. A function
 * of its own, because NVRTC would take several times as long for a text with copies of it. */
static void print_part(const struct kernel *k, struct text *t)
{
	struct parameter p;
	size_t len;
	const char *body = kernel_stage(k, 0, &len);
	text_add(t, "\nstatic __noinline__ void %s_part(int64_t thread", k->name);
	for (int i = 0; kernel_parameter(k, i, &p); i++)
		text_add(t, ", %s%s", p.type, p.name);
	text_add(t, ")\n{\n%.*s}\n", (int)len, body);
}

/* The parameters that are pointers, or their names; `member` tells them apart. */
static void print_pointers(
	const struct kernel *k, int member, bool names, const char *comma, struct text *t)
{
	struct parameter p;
	for (int i = 0; kernel_parameter(k, i, &p); i++) {
		if (!p.pointer)
			continue;
		text_add(t, "%s%s%s_%d", comma, names ? "" : p.type, p.name, member);
		comma = ", ";
	}
}

static void print_group_kernel(
	const struct kernels *ks, const struct update_text *g, struct text *t)
{
	const int threads = ks->kernel[g->kernel[0]].stage[0].threads;
	int from = 0;
	text_add(t, "\n/* %d updates in one launch, each with blocks of its own.\n * ", g->n);
	text_add(t, "%d blocks of %d threads */\n", g->blocks, threads);
	text_add(t, "extern \"C\" __global__ void __launch_bounds__(%d) %s(", threads, g->name);
	for (int i = 0; i < g->n; i++)
		print_pointers(
			&ks->kernel[ks->kernel[g->kernel[i]].function], i, false, i ? ", " : "", t);
	text_puts(t, ")\n{\n");
	for (int i = 0; i < g->n; i++) {
		const struct kernel *k = &ks->kernel[g->kernel[i]];
		text_add(t, "\tif (BEHIND(%d) < %" PRId64 ")\n\t\t%s_part(BEHIND(%d)", from,
			(int64_t)k->stage[0].blocks * threads, k->name, from);
		print_pointers(&ks->kernel[k->function], i, true, ", ", t);
		for (int j = 0; j < k->nsize; j++)
			text_add(t, ", %s", k->size[j]);
		text_puts(t, ");\n");
		from += k->stage[0].blocks;
	}
	text_puts(t, "}\n");
}

void print_group_kernels(const struct kernels *ks, struct text *t)
{
	bool *printed = calloc((size_t)ks->n + 1, sizeof *printed);
	if (ks->nupdate_text)
		text_puts(t, "\n/* A thread's number in an update whose blocks come behind `from` "
			     "others of the launch. */\n"
			     "#define BEHIND(from) \\\n"
			     "\t((blockIdx.x + gridDim.x - (from)) % gridDim.x * "
			     "(int64_t)blockDim.x + threadIdx.x)\n");
	t->failed |= !printed;
	if (ks->nupdate_text && printed)
		text_puts(t, "\n#undef THREAD\n#define THREAD thread\n");
	for (int i = 0; i < ks->nupdate_text && printed; i++)
		for (int m = 0; m < ks->update_text[i].n; m++) {
			const int f = ks->kernel[ks->update_text[i].kernel[m]].function;
			if (!printed[f])
				print_part(&ks->kernel[f], t);
			printed[f] = true;
		}
	for (int i = 0; i < ks->nupdate_text; i++)
		print_group_kernel(ks, &ks->update_text[i], t);
	free(printed);
}

void print_group_launches(const struct kernels *ks, struct text *t)
{
	for (int i = 0; i < ks->nupdate_text; i++) {
		const struct update_text *g = &ks->update_text[i];
		text_add(t, "\t{\"%s\", %d, %d, %d},\n", g->name, g->blocks,
			ks->kernel[g->kernel[0]].stage[0].threads, g->nargs);
	}
}

/* --- In the schedule --- */

/* Where the groups' rows begin in the table of launches. */
static int first_row(const struct kernels *ks)
{
	int n = 0;
	for (int i = 0; i < ks->n; i++)
		if (ks->kernel[i].function == i && ks->kernel[i].launched)
			n += ks->kernel[i].nstage;
	return n;
}

void print_group_callers(const struct kernels *ks, struct text *t)
{
	int most = 0;
	for (int i = 0; i < ks->nupdate_text; i++)
		most = ks->update_text[i].nargs > most ? ks->update_text[i].nargs : most;
	if (most > 0)
		text_add(t,
			"\n/* A launch of all of a row's n places. */\n"
			"static int launch_row(struct stint_frame *f, int kernel, int n)\n"
			"{\n"
			"\tvoid *at[%d], *args[%d];\n"
			"\tfor (int i = 0; i < n; i++) {\n"
			"\t\tat[i] = AT(i);\n"
			"\t\targs[i] = &at[i];\n"
			"\t}\n"
			"\treturn stint_launch(f->step, kernel, args);\n"
			"}\n",
			most, most);
	for (int i = 0; i < ks->nupdate_text; i++)
		text_add(t,
			"\nstatic int call_%s(struct stint_frame *f)\n{\n\treturn launch_row(f, "
			"%d, "
			"%d);\n}\n",
			ks->update_text[i].name, first_row(ks) + i, ks->update_text[i].nargs);
}

const struct update_group *group_at(const struct schedule *s, const struct kernels *ks, int step)
{
	return s->letter == 'T' && ks->group_of && ks->group_of[step] >= 0
		       ? &ks->group[ks->group_of[step]]
		       : NULL;
}
