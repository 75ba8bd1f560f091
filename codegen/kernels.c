/* Kernels: the functions that steps call. Nodes whose parameters and bodies read the same share
 * one; a recomputation therefore calls the very function that ran first. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"
#include "graph/fused.h"
#include "graph/loop.h"

/* --- Library calls: a table of their own --- */

static int library_find(struct kernels *ks, const struct lib_call *call, int64_t workspace)
{
	for (int i = 0; i < ks->nlib; i++)
		if (stint_lib_call_same(&ks->lib[i].call, &call->call))
			return i;
	if (ks->nlib == ks->caplib) {
		int cap = ks->caplib ? 2 * ks->caplib : 16;
		struct lib_call *lib = ARENA_ARRAY(ks->arena, struct lib_call, cap);
		int64_t *bytes = ARENA_ARRAY(ks->arena, int64_t, cap);
		if (!lib || !bytes)
			return -1;
		for (int i = 0; i < ks->nlib; i++) {
			lib[i] = ks->lib[i];
			bytes[i] = ks->lib_workspace[i];
		}
		ks->lib = lib, ks->lib_workspace = bytes, ks->caplib = cap;
	}
	ks->lib[ks->nlib] = *call;
	ks->lib_workspace[ks->nlib] = workspace;
	return ks->nlib++;
}

static void library_body(struct emit *e, const struct node *n, int lib, int64_t workspace)
{
	const char *comma = "";
	emit(e, "\tconst void *const in[] = {");
	for (int k = 0; k < n->nin; k++)
		if (n->in[k]) {
			emit(e, "%s", comma);
			emit_input(e, k);
			comma = ", ";
		}
	comma = "";
	emit(e, "};\n\tvoid *const out[] = {");
	for (int k = 0; k < n->nout; k++)
		if (n->out[k]) {
			emit(e, "%sy%d", comma, k);
			use_output(e, k);
			comma = ", ";
		}
	emit(e, "};\n\treturn stint_lib_run(s->lib[");
	emit_size(e, lib);
	emit(e, "], in, out, %s);\n", workspace > 0 ? "ws" : "NULL");
	if (workspace > 0)
		use_scratch(e);
}

/* --- One kernel --- */

/* What the node's hook writes into e->out; *lib is the library call behind it, -1 for none. */
static enum status body_of(struct kernels *ks, const struct graph *g, const struct node *n,
	struct emit *e, int *lib, const struct loop_code **loop)
{
	struct lib_call call;
	int64_t workspace;
	*lib = -1;
	if (node_uses_library(g, n, &call, &workspace)) {
		*lib = library_find(ks, &call, workspace);
		if (*lib < 0)
			return diag_nomem(ks->diag);
		library_body(e, n, *lib, workspace);
		return ST_OK;
	}
	if (node_loop(n))
		return loop_body(ks, e, n, loop);
	if (g->target->cuda && n->op->emit_cuda)
		return n->op->emit_cuda(e, n);
	if (n->op->emit_c)
		return n->op->emit_c(e, n);
	if (n->op->traits & OP_POINTWISE)
		return emit_pointwise(e, n);
	const struct where w = {.file = g->file, .node = n->name, .op = n->op->name};
	return diag_fail(ks->diag, ST_INTERNAL, &w, NULL, "operator has no C text");
}

/* Parameters for what the body uses. All pointers may be `restrict`: the plan's checker has proved
 * that buffers live at the same step do not overlap, but for declared in-place pairs, and such an
 * input is no parameter: it goes by the output's name. */
static bool make_args(struct arena *a, struct kernel *k, const struct node *n, const int *in_place,
	const struct body_uses *u)
{
	k->arg = ARENA_ARRAY(a, struct kernel_arg, n->nin + n->nout + 1);
	if (!k->arg)
		return false;
	for (int o = 0; o < n->nout; o++)
		if (n->out[o] && u->y[o])
			k->arg[k->narg++] = (struct kernel_arg){'y', o, emit_type(n->out[o])};
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && u->x[i] && in_place[i] < 0)
			k->arg[k->narg++] = (struct kernel_arg){'x', i, emit_type(n->in[i])};
	if (u->ws)
		k->arg[k->narg++] = (struct kernel_arg){.kind = 'w', .type = "void"};
	return true;
}

/* In this order: operands, `bad`, numbers. */
bool kernel_parameter(const struct kernel *k, int i, struct parameter *p)
{
	*p = (struct parameter){.pointer = i < k->narg};
	if (i < k->narg) {
		const struct kernel_arg *a = &k->arg[i];
		snprintf(p->type, sizeof p->type, "%s%s *restrict ", a->kind == 'x' ? "const " : "",
			a->type);
		if (a->kind == 'w')
			strcpy(p->name, "ws");
		else
			snprintf(p->name, sizeof p->name, "%c%d", a->kind, a->k);
		return true;
	}
	i -= k->narg;
	if (k->checked && i-- == 0) {
		strcpy(p->type, "int64_t *");
		strcpy(p->name, "bad");
		return true;
	}
	if (!k->size_kind || !k->size_kind[i])
		return false;
	strcpy(p->type, k->size_kind[i] == 'i'   ? "int64_t "
			: k->size_kind[i] == 'f' ? "float "
						 : "double ");
	snprintf(p->name, sizeof p->name, "n%d", i + 1);
	return true;
}

const char *kernel_stage(const struct kernel *k, int stage, size_t *len)
{
	size_t from = 0, to = k->stage[stage].end;
	const char *body = k->members ? k->shared_body : k->body;
	if (stage > 0)
		from = k->members ? k->shared_end[stage - 1] : k->stage[stage - 1].end;
	if (k->members)
		to = k->shared_end[stage];
	*len = to - from;
	return body + from;
}

static const char *kernel_name(struct kernels *ks, const struct op_def *op, int number)
{
	const char *base = !strncmp(op->name, "stint.", 6) ? op->name + 6 : op->name;
	char *name = arena_printf(ks->arena, "k%03d_%s", number, base);
	for (char *p = name; p && *p; p++)
		*p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '_';
	return name;
}

/* Of those that share a function, the first is called as that, the others "k012_conv_2", ... */
static const char *caller_name(struct kernels *ks, const struct kernel *k, int which)
{
	return which == 1 ? k->name : arena_printf(ks->arena, "%s_%d", k->name, which);
}

enum status kernels_name(struct kernels *ks)
{
	int number = 0;
	int *callers = ARENA_ARRAY(ks->arena, int, ks->n);
	if (!callers)
		return diag_nomem(ks->diag);
	for (int i = 0; i < ks->n; i++)
		if (ks->kernel[i].function == i) {
			ks->kernel[i].name = kernel_name(ks, ks->kernel[i].op, ++number);
			if (!ks->kernel[i].name)
				return diag_nomem(ks->diag);
		}
	for (int i = 0; i < ks->n; i++) {
		struct kernel *k = &ks->kernel[i];
		k->name = ks->kernel[k->function].name;
		k->caller = caller_name(ks, k, ++callers[k->function]);
		if (!k->caller)
			return diag_nomem(ks->diag);
	}
	return ST_OK;
}

void kernel_print_title(const struct kernels *ks, int index, struct text *t)
{
	const struct kernel *k = &ks->kernel[index];
	text_puts(t, k->name);
	for (int i = 0; i < k->nsize; i++)
		text_add(t, "%s%s", i ? ", " : "(", k->size[i]);
	text_puts(t, k->nsize ? ")" : "");
}

static void add_shapes(struct text *t, char letter, int n, struct tensor *const *x)
{
	char buf[200];
	for (int k = 0; k < n; k++)
		if (x[k])
			text_add(t, " %c%d%s", letter, k, tensor_shape_text(x[k], buf));
}

static const char *about(struct kernels *ks, const struct node *n)
{
	struct text t = {0}, title = {0};
	node_title(n, &title);
	text_comment(&t, title.s ? title.s : "");
	text_free(&title);
	text_puts(&t, node_fused(n) ? ";" : ":");
	add_shapes(&t, 'x', n->nin < 6 ? n->nin : 6, n->in);
	text_puts(&t, n->nin > 6 ? " ... ->" : " ->");
	add_shapes(&t, 'y', n->nout, n->out);
	char *s = t.failed ? NULL : arena_strdup(ks->arena, t.s);
	text_free(&t);
	return s;
}

static enum status keep_kernel(
	struct kernels *ks, const struct node *n, struct kernel k, const char *body)
{
	if (ks->n == ks->cap) {
		int cap = ks->cap ? 2 * ks->cap : 64;
		struct kernel *grown = ARENA_ARRAY(ks->arena, struct kernel, cap);
		if (!grown)
			return diag_nomem(ks->diag);
		if (ks->n)
			memcpy(grown, ks->kernel, (size_t)ks->n * sizeof *grown);
		ks->kernel = grown, ks->cap = cap;
	}
	k.body = arena_strdup(ks->arena, body);
	k.op = n->op;
	k.function = ks->n;
	k.about = about(ks, n);
	if (!k.body || !k.about)
		return diag_nomem(ks->diag);
	ks->kernel[ks->n++] = k;
	return ST_OK;
}

static bool same_args(const struct kernel *a, const struct kernel *b)
{
	if (a->narg != b->narg || a->checked != b->checked || a->library != b->library ||
		a->runtime != b->runtime || strcmp(a->then ? a->then : "", b->then ? b->then : ""))
		return false;
	for (int i = 0; i < a->narg; i++)
		if (a->arg[i].kind != b->arg[i].kind || a->arg[i].k != b->arg[i].k ||
			strcmp(a->arg[i].type, b->arg[i].type) != 0)
			return false;
	return true;
}

static enum status kernel_from_body(struct kernels *ks, const struct node *n, const int *in_place,
	struct kernel k, const struct emit *e, int *index)
{
	const char *body = e->out.s ? e->out.s : "";
	const struct body_uses *u = e->uses;
	if (!make_args(ks->arena, &k, n, in_place, u))
		return diag_nomem(ks->diag);
	k.threads = u->threads;
	if (e->then.s && !(k.then = arena_strdup(ks->arena, e->then.s)))
		return diag_nomem(ks->diag);
	k.nnumber = u->nnumber;
	k.number = u->number;
	for (*index = 0; *index < ks->n; ++*index)
		if (same_args(&ks->kernel[*index], &k) && !strcmp(ks->kernel[*index].body, body))
			return ST_OK;
	return keep_kernel(ks, n, k, body);
}

/* In memory, or fetched from a file. */
static bool is_state(const struct tensor *t)
{
	const struct node *by = t->maker;
	const struct tensor *home = by && by->op->role == ROLE_FETCH ? by->in[0] : t;
	return home->role == TR_STATE;
}

static void note_types(struct kernels *ks, int n, struct tensor *const *t)
{
	for (int i = 0; i < n; i++) {
		ks->fp16 |= t[i] && t[i]->dtype == DT_F16;
		ks->bf16_states |= t[i] && t[i]->dtype == DT_BF16 && is_state(t[i]);
	}
}

enum status kernel_find(struct kernels *ks, const struct graph *g, const struct node *n,
	const int *in_place, int *index)
{
	struct body_uses uses = {.checked = n->op->traits & OP_CHECKED,
		.x = ARENA_ARRAY(ks->arena, bool, n->nin + 1),
		.y = ARENA_ARRAY(ks->arena, bool, n->nout + 1)};
	struct emit e = {.g = g,
		.in_place = {-1, -1, -1, -1},
		.place_of = in_place,
		.uses = &uses,
		.helpers = &ks->helpers};
	if (!uses.x || !uses.y)
		return diag_nomem(ks->diag);
	for (int i = n->nin - 1; i >= 0; i--)
		if (in_place[i] >= 0 && in_place[i] < 4)
			e.in_place[in_place[i]] = i;
	int lib;
	const struct loop_code *loop = NULL;
	enum status st = body_of(ks, g, n, &e, &lib, &loop);
	const struct where w = {.file = g->file, .node = n->name, .op = n->op->name};
	if (st == ST_OK && g->target->cuda && e.c_only)
		st = diag_fail(
			ks->diag, ST_INVALID, &w, "compile for --target c", "has no CUDA text yet");
	if (st == ST_OK && lib < 0 && uses.checked)
		emit(&e, "\treturn 0;\n");
	if (e.nstage > 0)
		e.stage[e.nstage - 1].end = e.out.len;
	if (st == ST_OK && (e.out.failed || e.then.failed))
		st = diag_nomem(ks->diag);
	note_types(ks, n->nin, n->in);
	note_types(ks, n->nout, n->out);
	if (st == ST_OK) {
		struct kernel k = {.library = lib >= 0,
			.runtime = uses.runtime,
			.launched = lib < 0 && g->target->cuda && !uses.runtime,
			.checked = lib < 0 && (n->op->traits & OP_CHECKED) != 0,
			.nstage = e.nstage,
			.loop = loop};
		memcpy(k.stage, e.stage, sizeof k.stage);
		st = kernel_from_body(ks, n, in_place, k, &e, index);
	}
	text_free(&e.out);
	text_free(&e.then);
	return st;
}

/* --- Their text --- */

bool kernel_fails(const struct kernel *k)
{
	return k->library || k->launched || k->runtime;
}

void print_signature(const struct kernel *k, struct text *t)
{
	enum { WIDTH = 96, TAB = 8 };
	struct parameter p;
	int column = (int)strlen(k->name) + 13;
	const bool step = kernel_fails(k);
	text_add(t, "%s %s %s(", k->loop ? "static" : "KERNEL", k->checked || step ? "int" : "void",
		k->name);
	if (step) {
		text_puts(t, "stint_step *s");
		column += 13;
	}
	for (int i = 0; kernel_parameter(k, i, &p); i++) {
		const int len = (int)(strlen(p.type) + strlen(p.name));
		if (i > 0 || step) {
			const bool wrap = column + len + 3 > WIDTH;
			text_puts(t, wrap ? ",\n\t" : ", ");
			column = wrap ? TAB : column + 2;
		}
		text_add(t, "%s%s", p.type, p.name);
		column += len;
	}
	text_puts(t, step || kernel_parameter(k, 0, &p) ? ")\n" : "void)\n");
}

void print_helpers(const struct kernels *ks, struct text *t)
{
	for (const struct helper *h = ks->helpers.first; h; h = h->next) {
		size_t len = strlen(h->text);
		text_add(t, "\n%s%s", h->text, len && h->text[len - 1] == '\n' ? "" : "\n");
	}
}

static void print_kernel(const struct kernel *k, struct text *t)
{
	text_add(t, "\n/* %s", k->about);
	if (k->members)
		text_add(t, "\n * and %d more of other sizes", k->members - 1);
	text_puts(t, " */\n");
	print_signature(k, t);
	text_add(t, "{\n%s}\n", k->members ? k->shared_body : k->body);
}

/* Loops stand last: they call the others. */
void print_kernels(const struct kernels *ks, struct text *t)
{
	for (int i = 0; i < ks->n; i++)
		if (ks->kernel[i].function == i && !ks->kernel[i].launched && !ks->kernel[i].loop)
			print_kernel(&ks->kernel[i], t);
	for (int i = 0; i < ks->n; i++)
		if (ks->kernel[i].loop) {
			print_loop_turns(ks, ks->kernel[i].loop, t);
			print_kernel(&ks->kernel[i], t);
		}
}
