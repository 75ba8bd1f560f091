/* SPDX-License-Identifier: MIT-0 */
/* oneDNN behind stint_lib.h: calls made from recipes (stint_lib_recipe.c) and run. */
#include "stint_lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "stint_lib_recipe.h"

enum { MAX_STEP = MAX_OPERAND + 1, MAX_ARG = MAX_OPERAND + 1 };

/* Where a memory object's bytes are at run time. */
enum where { IN_INPUT, IN_OUTPUT, IN_WORKSPACE };
struct place {
	dnnl_memory_t memory;
	enum where where;
	size_t at;   /* operand's position, or offset */
	size_t part; /* bytes further in each round */
};

struct step {
	dnnl_primitive_t primitive;
	int once; /* in the first round only */
	int narg;
	dnnl_exec_arg_t arg[MAX_ARG];
};

struct stint_lib {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	int nplace, nstep, rounds;
	size_t clear; /* bytes of output 0 to be zero before the first round */
	size_t begin; /* or to be those of input 2 */
	struct place place[2 * MAX_OPERAND + MAX_STEP];
	struct step step[MAX_STEP];
};

/* Primitives are made for omp_get_max_threads() threads. */
static int threads_set(int threads)
{
#ifdef _OPENMP
	const int before = omp_get_max_threads();
	omp_set_num_threads(threads);
	return before;
#else
	(void)threads;
	return 1;
#endif
}

int64_t stint_lib_workspace(const struct stint_lib_call *call, int threads)
{
	struct recipe r;
	const int before = threads_set(threads);
	const int failed = recipe_make(&r, call, threads);
	threads_set(before);
	const int64_t bytes = (int64_t)r.workspace;
	recipe_free(&r);
	return failed ? -1 : bytes;
}

/* --- a call ready to run --- */

static dnnl_memory_t place_add(
	struct stint_lib *l, const dnnl_memory_desc_t *md, enum where where, size_t at, size_t part)
{
	dnnl_memory_t m;
	if (dnnl_memory_create(&m, md, l->engine, DNNL_MEMORY_NONE))
		return NULL;
	struct place *p = &l->place[l->nplace++];
	p->memory = m;
	p->where = where;
	p->at = at;
	p->part = part;
	return m;
}

static int step_arg(struct step *s, int arg, dnnl_memory_t m)
{
	s->arg[s->narg].arg = arg;
	s->arg[s->narg++].memory = m;
	return m ? 0 : -1;
}

static struct step *step_add(struct stint_lib *l, const_dnnl_primitive_desc_t pd)
{
	struct step *s = &l->step[l->nstep];
	if (dnnl_primitive_create(&s->primitive, pd))
		return NULL;
	l->nstep++;
	if (scratch_of(pd) > 0 &&
		step_arg(s, DNNL_ARG_SCRATCHPAD,
			place_add(l, dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0),
				IN_WORKSPACE, 0, 0)))
		return NULL;
	return s;
}

static int steps_make(struct stint_lib *l, const struct recipe *r)
{
	dnnl_memory_t plain[MAX_OPERAND], used[MAX_OPERAND];
	for (int i = 0; i < r->noperand; i++) {
		const struct operand *o = &r->operand[i];
		plain[i] = place_add(l, &o->plain, o->output ? IN_OUTPUT : IN_INPUT,
			o->output ? 0 : (size_t)i, o->part);
		used[i] = plain[i];
		if (o->copied)
			used[i] = place_add(l, &o->used, IN_WORKSPACE, o->offset, 0);
		if (operand_adds(r, o))
			l->clear = dnnl_memory_desc_get_size(&o->plain);
		if (!plain[i] || !used[i])
			return -1;
	}
	for (int pass = 0; pass < 3; pass++) { /* copies in, the primitive, copies out */
		if (pass == 1) {
			struct step *s = step_add(l, r->main);
			for (int i = 0; s && i < r->noperand; i++)
				step_arg(s, r->operand[i].arg, used[i]);
			if (!s)
				return -1;
			continue;
		}
		for (int i = 0; i < r->noperand; i++) {
			const struct operand *o = &r->operand[i];
			if (!o->copied || o->output != (pass == 2))
				continue;
			struct step *s = step_add(l, o->reorder);
			if (!s)
				return -1;
			s->once = !o->output && !o->batched;
			step_arg(s, DNNL_ARG_FROM, o->output ? used[i] : plain[i]);
			step_arg(s, DNNL_ARG_TO, o->output ? plain[i] : used[i]);
		}
	}
	return 0;
}

int stint_lib_new(
	struct stint_lib **out, const struct stint_lib_call *call, int threads, char *message)
{
	struct recipe r;
	struct stint_lib *l = *out = calloc(1, sizeof *l);
	if (!l) {
		snprintf(message, 256, "out of memory");
		return STINT_NO_MEMORY;
	}
	const int before = threads_set(threads);
	int failed = recipe_make(&r, call, threads);
	if (!failed) {
		l->engine = r.engine;
		l->rounds = r.rounds;
		l->begin = r.begin;
		r.engine = NULL;
		failed = dnnl_stream_create(&l->stream, l->engine, dnnl_stream_default_flags) ||
			 steps_make(l, &r);
	}
	threads_set(before);
	recipe_free(&r);
	if (!failed)
		return STINT_OK;
	snprintf(message, 256, "oneDNN cannot make the primitive '%s' on this machine",
		stint_lib_call_name(call));
	stint_lib_free(l);
	*out = NULL;
	return STINT_BAD_MACHINE;
}

void stint_lib_free(struct stint_lib *l)
{
	if (!l)
		return;
	for (int i = 0; i < l->nstep; i++)
		dnnl_primitive_destroy(l->step[i].primitive);
	for (int i = 0; i < l->nplace; i++)
		dnnl_memory_destroy(l->place[i].memory);
	if (l->stream)
		dnnl_stream_destroy(l->stream);
	if (l->engine)
		dnnl_engine_destroy(l->engine);
	free(l);
}

/* All places of a round before its first execution: oneDNN clears a layout's padding here, when the
 * place is new. */
static dnnl_status_t places_set(
	struct stint_lib *l, const void *const *in, void *const *out, void *ws, int round)
{
	for (int i = 0; i < l->nplace; i++) {
		const struct place *p = &l->place[i];
		unsigned char *base = p->where == IN_WORKSPACE ? ws
				      : p->where == IN_OUTPUT  ? out[p->at]
							       : (void *)(uintptr_t)in[p->at];
		const size_t at = (p->where == IN_WORKSPACE ? p->at : 0) + p->part * (size_t)round;
		if (round > 0 && p->part == 0)
			continue;
		const dnnl_status_t st = dnnl_memory_set_data_handle(p->memory, base + at);
		if (st)
			return st;
	}
	return dnnl_success;
}

/* By all threads, which have more of the memory's bandwidth than one. */
static void copy(unsigned char *to, const unsigned char *from, size_t bytes)
{
	const size_t part = (size_t)1 << 18;
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
	for (size_t at = 0; at < bytes; at += part)
		memcpy(to + at, from + at, bytes - at < part ? bytes - at : part);
}

int stint_lib_run(struct stint_lib *l, const void *const *in, void *const *out, void *ws)
{
	if (l->clear > 0)
		memset(out[0], 0, l->clear);
	if (l->begin > 0 && in[2] != out[0])
		copy(out[0], in[2], l->begin);
	for (int round = 0; round < l->rounds; round++) {
		dnnl_status_t st = places_set(l, in, out, ws, round);
		for (int i = 0; !st && i < l->nstep; i++) {
			const struct step *s = &l->step[i];
			if (!s->once || round == 0)
				st = dnnl_primitive_execute(
					s->primitive, l->stream, s->narg, s->arg);
		}
		if (st)
			return (int)st;
	}
	return (int)dnnl_stream_wait(l->stream);
}

static const char *isa_name(void)
{
	static const struct {
		dnnl_cpu_isa_t isa;
		const char *name;
	} list[] = {
		{dnnl_cpu_isa_sse41, "sse41"},
		{dnnl_cpu_isa_avx, "avx"},
		{dnnl_cpu_isa_avx2, "avx2"},
		{dnnl_cpu_isa_avx512_core, "avx512_core"},
		{dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
		{dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
		{dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
		{dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
	};
	const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (list[i].isa == isa)
			return list[i].name;
	return "other";
}

const char *stint_lib_identity(int threads, char buf[static 96])
{
	const dnnl_version_t *v = dnnl_version();
	snprintf(buf, 96, "oneDNN %d.%d.%d %s %d %s", v->major, v->minor, v->patch, isa_name(),
		threads, threads == 1 ? "thread" : "threads");
	return buf;
}
