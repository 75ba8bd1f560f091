/* Kernels that a GPU runs in a thread or a block though they have much to do: told when a step is
 * compiled, not found when it is slow. */
#include <inttypes.h>

#include "codegen/parts.h"

enum { WARP = 32, MANY_FOR_A_WARP = 1 << 16, MANY_FOR_A_BLOCK = 1 << 20, NAMED = 3 };

/* Of the launch that has most. */
static int64_t threads_of(const struct kernel *k)
{
	int64_t most = 0;
	for (int i = 0; i < k->nstage; i++) {
		const int64_t n = (int64_t)k->stage[i].blocks * k->stage[i].threads;
		most = n > most ? n : most;
	}
	return most;
}

/* Of the largest that it reads or writes. */
static int64_t elements_of(const struct node *n)
{
	int64_t most = 0;
	for (int i = 0; i < n->nin; i++)
		most = n->in[i] && n->in[i]->numel > most ? n->in[i]->numel : most;
	for (int i = 0; i < n->nout; i++)
		most = n->out[i] && n->out[i]->numel > most ? n->out[i]->numel : most;
	return most;
}

static bool is_few(const struct kernel *k, int64_t elements)
{
	const int64_t threads = threads_of(k);
	return threads > 0 && threads <= BLOCK_THREADS &&
	       elements >= (threads <= WARP ? MANY_FOR_A_WARP : MANY_FOR_A_BLOCK);
}

struct few {
	const struct kernels *ks;
	bool *told; /* by kernel */
	int n;
	struct text names;
};

static void look(struct few *f, const struct schedule *s)
{
	for (int i = 0; i < s->plan->nstep; i++) {
		const struct call *c = &s->call[i];
		const int64_t elements = elements_of(&c->node);
		if (c->kernel < 0 || f->told[c->kernel] ||
			!is_few(&f->ks->kernel[c->kernel], elements))
			continue;
		f->told[c->kernel] = true;
		if (f->n++ < NAMED)
			text_add(&f->names, "%s'%s' (%s, %" PRId64 " elements in %" PRId64 ")",
				f->n > 1 ? ", " : "", c->node.name, c->node.op->name, elements,
				threads_of(&f->ks->kernel[c->kernel]));
	}
}

enum status few_threads_warn(
	struct kernels *ks, const struct schedule *train, const struct schedule *eval)
{
	struct few f = {.ks = ks, .told = ARENA_ARRAY(ks->arena, bool, ks->n)};
	if (!f.told)
		return diag_nomem(ks->diag);
	if (train)
		look(&f, train);
	look(&f, eval);
	if (f.n && f.names.s)
		diag_warn(ks->diag, NULL, "`stint bench` on the GPU shows what they take",
			"%d kernel%s will be slow on a GPU, in few threads: %s%s", f.n,
			f.n > 1 ? "s" : "", f.names.s, f.n > NAMED ? ", ..." : "");
	const bool failed = f.names.failed;
	text_free(&f.names);
	return failed ? diag_nomem(ks->diag) : ST_OK;
}
