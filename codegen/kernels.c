/* Kernels: the functions that steps call. Nodes whose parameters and bodies read the same share
 * one; a recomputation therefore calls the very function that ran first. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"

/* --- Library calls: a table of their own --- */

static int library_find(struct kernels *ks, const struct lib_call *call, int64_t workspace)
{
	for (int i = 0; i < ks->nlib; i++)
		if (!strcmp(ks->lib[i].kind, call->kind) &&
			!memcmp(ks->lib[i].p, call->p, sizeof call->p))
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
			emit(e, "%sx%d", comma, k);
			comma = ", ";
		}
	comma = "";
	emit(e, "};\n\tvoid *const out[] = {");
	for (int k = 0; k < n->nout; k++)
		if (n->out[k]) {
			emit(e, "%sy%d", comma, k);
			comma = ", ";
		}
	emit(e, "};\n\treturn stint_lib_run(s->lib[%d], in, out, %s);\n", lib,
		workspace > 0 ? "ws" : "NULL");
}

/* --- One kernel --- */

/* What the node's hook writes into e->out; *lib is the library call behind it, -1 for none. */
static enum status body_of(
	struct kernels *ks, const struct graph *g, const struct node *n, struct emit *e, int *lib)
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
	if (g->target->cuda && n->op->emit_cuda)
		return n->op->emit_cuda(e, n);
	if (n->op->emit_c)
		return n->op->emit_c(e, n);
	if (n->op->traits & OP_POINTWISE)
		return emit_pointwise(e, n);
	const struct where w = {.file = g->file, .node = n->name, .op = n->op->name};
	return diag_fail(ks->diag, ST_INTERNAL, &w, NULL, "operator has no C text");
}

static bool mentions(const char *body, char letter, int k)
{
	char word[16];
	snprintf(word, sizeof word, "%c%d", letter, k);
	return text_mentions(body, word);
}

static void add_param(struct kernel *k, struct text *t, char kind, int position, const char *type)
{
	if (t->len)
		text_puts(t, ", ");
	if (kind == 'w')
		text_puts(t, "void *restrict ws");
	else
		text_add(t, "%s%s *restrict %c%d", kind == 'x' ? "const " : "", type, kind,
			position);
	k->arg[k->narg++] = (struct kernel_arg){kind, position};
}

/* Parameters for what the body mentions. All pointers may be `restrict`: the plan's checker has
 * proved that buffers live at the same step do not overlap, but for declared in-place pairs, and
 * such an input is no parameter: it is made from the output's pointer. */
static void frame(struct kernel *k, const struct node *n, const int *in_place, const char *body,
	const struct call_uses *u, struct text *params)
{
	if (k->library)
		text_puts(params, "stint_step *s");
	for (int o = 0; o < n->nout; o++) {
		bool used = n->out[o] && (u->calls ? u->y[o] : mentions(body, 'y', o));
		for (int i = 0; i < n->nin && n->out[o] && !u->calls; i++)
			used |= in_place[i] == o && mentions(body, 'x', i);
		if (used)
			add_param(k, params, 'y', o, emit_type(n->out[o]));
	}
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i] || !(u->calls ? u->x[i] : mentions(body, 'x', i)))
			continue;
		if (in_place[i] < 0)
			add_param(k, params, 'x', i, emit_type(n->in[i]));
	}
	if (u->calls ? u->ws : text_mentions(body, "ws"))
		add_param(k, params, 'w', 0, NULL);
	if (k->checked)
		text_add(params, "%sint64_t *bad", params->len ? ", " : "");
	if (!params->len)
		text_puts(params, "void");
}

/* Behind the names for inputs that have no parameter. */
static void write_stage(const struct kernel *k, const struct node *n, const int *in_place,
	const char *stage, struct text *out)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && in_place[i] >= 0 && mentions(stage, 'x', i))
			text_add(out, "\tconst %s *x%d = y%d;\n", emit_type(n->in[i]), i,
				in_place[i]);
	if (k->checked && !text_mentions(stage, "BAD_INDEX")) /* all indices known to be good */
		text_puts(out, "\t(void)bad;\n");
	text_puts(out, stage);
}

static bool write_body(struct arena *a, const struct kernel *k, const struct node *n,
	const int *in_place, const char *body, struct text *out)
{
	for (;;) {
		const size_t len = strcspn(body, STAGE_END);
		const char *stage = arena_strndup(a, body, len);
		if (!stage)
			return false;
		write_stage(k, n, in_place, stage, out);
		body += len;
		if (!*body)
			return !out->failed;
		text_puts(out, STAGE_END);
		body += strlen(STAGE_END);
	}
}

static const char *kernel_name(struct kernels *ks, const struct op_def *op, int number)
{
	const char *base = !strncmp(op->name, "stint.", 6) ? op->name + 6 : op->name;
	char *name = arena_printf(ks->arena, "k%03d_%s", number, base);
	for (char *p = name; p && *p; p++)
		*p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '_';
	return name;
}

enum status kernels_name(struct kernels *ks)
{
	int number = 0;
	for (int i = 0; i < ks->n; i++)
		if (ks->kernel[i].function == i) {
			ks->kernel[i].name = kernel_name(ks, ks->kernel[i].op, ++number);
			if (!ks->kernel[i].name)
				return diag_nomem(ks->diag);
		}
	for (int i = 0; i < ks->n; i++)
		ks->kernel[i].name = ks->kernel[ks->kernel[i].function].name;
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

static enum status keep_kernel(struct kernels *ks, const struct node *n, struct kernel k,
	const char *params, const char *body)
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
	k.params = arena_strdup(ks->arena, params);
	k.body = arena_strdup(ks->arena, body);
	k.op = n->op;
	k.function = ks->n;
	k.about = about(ks, n);
	if (!k.params || !k.body || !k.about)
		return diag_nomem(ks->diag);
	ks->kernel[ks->n++] = k;
	return ST_OK;
}

static bool same_kernel(
	const struct kernel *a, const struct kernel *b, const char *params, const char *body)
{
	return a->narg == b->narg && a->checked == b->checked && !strcmp(a->params, params) &&
	       !strcmp(a->body, body);
}

static enum status kernel_from_body(struct kernels *ks, const struct node *n, const int *in_place,
	struct kernel k, const struct emit *e, int *index)
{
	const char *body = e->out.s ? e->out.s : "";
	struct text params = {0}, whole = {0};
	k.arg = ARENA_ARRAY(ks->arena, struct kernel_arg, n->nin + n->nout + 1);
	if (!k.arg)
		return diag_nomem(ks->diag);
	const struct call_uses *u = e->uses;
	frame(&k, n, in_place, body, u, &params);
	k.calls = u->calls;
	k.nnumber = u->nnumber;
	k.number = u->number;
	enum status st = ST_OK;
	if (u->calls)
		text_puts(&whole, body);
	if ((!u->calls && !write_body(ks->arena, &k, n, in_place, body, &whole)) || whole.failed ||
		params.failed) {
		st = diag_nomem(ks->diag);
	} else {
		*index = 0;
		while (*index < ks->n && !same_kernel(&ks->kernel[*index], &k, params.s, whole.s))
			++*index;
		if (*index == ks->n)
			st = keep_kernel(ks, n, k, params.s, whole.s);
	}
	text_free(&params);
	text_free(&whole);
	return st;
}

static void note_types(struct kernels *ks, int n, struct tensor *const *t)
{
	for (int i = 0; i < n; i++) {
		ks->bf16 |= t[i] && t[i]->dtype == DT_BF16;
		ks->fp16 |= t[i] && t[i]->dtype == DT_F16;
	}
}

enum status kernel_find(struct kernels *ks, const struct graph *g, const struct node *n,
	const int *in_place, int *index)
{
	struct call_uses uses = {.checked = n->op->traits & OP_CHECKED,
		.x = ARENA_ARRAY(ks->arena, bool, n->nin + 1),
		.y = ARENA_ARRAY(ks->arena, bool, n->nout + 1)};
	struct emit e = {
		.g = g, .in_place = {-1, -1, -1, -1}, .uses = &uses, .helpers = &ks->helpers};
	if (!uses.x || !uses.y)
		return diag_nomem(ks->diag);
	for (int i = n->nin - 1; i >= 0; i--)
		if (in_place[i] >= 0 && in_place[i] < 4)
			e.in_place[in_place[i]] = i;
	int lib;
	enum status st = body_of(ks, g, n, &e, &lib);
	const struct where w = {.file = g->file, .node = n->name, .op = n->op->name};
	if (st == ST_OK && g->target->cuda && e.c_only)
		st = diag_fail(
			ks->diag, ST_INVALID, &w, "compile for --target c", "has no CUDA text yet");
	if (st == ST_OK && uses.calls && (n->op->traits & OP_CHECKED))
		emit(&e, "\treturn 0;\n");
	if (st == ST_OK && lib < 0 && g->target->cuda && !uses.calls)
		cuda_end_stage(&e);
	if (st == ST_OK && e.out.failed)
		st = diag_nomem(ks->diag);
	note_types(ks, n->nin, n->in);
	note_types(ks, n->nout, n->out);
	if (st == ST_OK) {
		struct kernel k = {.library = lib >= 0,
			.launched = lib < 0 && g->target->cuda,
			.checked = lib < 0 && (n->op->traits & OP_CHECKED) != 0,
			.nstage = e.nstage};
		memcpy(k.stage, e.stage, sizeof k.stage);
		st = kernel_from_body(ks, n, in_place, k, &e, index);
	}
	text_free(&e.out);
	return st;
}

/* --- Their text --- */

bool kernel_fails(const struct kernel *k)
{
	return k->library || k->launched;
}

void print_signature(const struct kernel *k, struct text *t)
{
	enum { WIDTH = 96, TAB = 8 };
	const bool empty = !strcmp(k->params, "void");
	int column = (int)strlen(k->name) + 13;
	text_add(t, "KERNEL %s %s(", k->checked || kernel_fails(k) ? "int" : "void", k->name);
	if (k->launched) {
		text_puts(t, empty ? "stint_step *s)\n" : "stint_step *s");
		column += 13;
	}
	if (k->launched && empty)
		return;
	for (const char *p = k->members ? k->shared_params : k->params; *p;) {
		const char *comma = strstr(p, ", ");
		int len = comma ? (int)(comma - p) : (int)strlen(p);
		if (t->s[t->len - 1] != '(') {
			bool wrap = column + len + 3 > WIDTH;
			text_puts(t, wrap ? ",\n\t" : ", ");
			column = wrap ? TAB : column + 2;
		}
		text_write(t, p, (size_t)len);
		column += len;
		p += len + (comma ? 2 : 0);
	}
	text_puts(t, ")\n");
}

void print_helpers(const struct kernels *ks, struct text *t)
{
	for (const struct helper *h = ks->helpers.first; h; h = h->next) {
		size_t len = strlen(h->text);
		text_add(t, "\n%s%s", h->text, len && h->text[len - 1] == '\n' ? "" : "\n");
	}
}

void print_kernels(const struct kernels *ks, struct text *t)
{
	for (int i = 0; i < ks->n; i++) {
		const struct kernel *k = &ks->kernel[i];
		if (k->function != i || k->launched)
			continue;
		text_add(t, "\n/* %s", k->about);
		if (k->members)
			text_add(t, "\n * and %d more of other sizes", k->members - 1);
		text_puts(t, " */\n");
		print_signature(k, t);
		text_add(t, "{\n%s}\n", k->members ? k->shared_body : k->body);
	}
}
