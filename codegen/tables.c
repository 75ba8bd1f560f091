/* The tables at the end of step.c: what the runtime knows of the model. */
#include <inttypes.h>
#include <string.h>

#include "codegen/parts.h"
#include "graph/op_loss.h"
#include "graph/pass.h"

const char *dtype_text(enum dtype t)
{
	static const char *const text[] = {[DT_F32] = "STINT_F32",
		[DT_F64] = "STINT_F64",
		[DT_I64] = "STINT_I64",
		[DT_BOOL] = "STINT_BOOL",
		[DT_BF16] = "STINT_BF16",
		[DT_F16] = "STINT_F16",
		[DT_I8] = "STINT_I8",
		[DT_U8] = "STINT_U8"};
	return text[t];
}

const char *kind_text(enum tensor_role r)
{
	static const char *const text[] = {[TR_VALUE] = "STINT_CONSTANT",
		[TR_INPUT] = "STINT_INPUT",
		[TR_PARAMETER] = "STINT_PARAMETER",
		[TR_BUFFER] = "STINT_BUFFER",
		[TR_STATE] = "STINT_STATE",
		[TR_SUMS] = "STINT_SUMS",
		[TR_ELSEWHERE] = "STINT_ELSEWHERE",
		[TR_CONSTANT] = "STINT_CONSTANT",
		[TR_CONTROL] = "STINT_CONTROL"};
	return text[r];
}

static void print_dims(const struct tensor *x, struct text *t)
{
	if (x->rank == 0) {
		text_puts(t, "NULL");
		return;
	}
	text_puts(t, "(const int64_t[]){");
	for (int i = 0; i < x->rank; i++)
		text_add(t, "%s%" PRId64, i ? ", " : "", x->dim[i]);
	text_puts(t, "}");
}

static void print_shape(const struct tensor *x, struct text *t)
{
	text_add(t, "%s, %d, ", dtype_text(x->dtype), x->rank);
	print_dims(x, t);
}

/* name, kind, dtype, rank, dim, bytes, offset, trainable, by_shards */
static void print_residents(const struct schedule *train, const struct schedule *s,
	const struct codegen_input *in, struct text *t)
{
	if (s->nresident == 0)
		return;
	text_puts(t, "\nstatic const struct stint_tensor residents[] = {\n");
	for (int i = 0; i < s->nresident; i++) {
		const struct tensor *x = s->gp->tensor[i];
		text_puts(t, "\t{");
		text_literal(t, s->gp->problem->tensor[i].name);
		text_add(t, ", %s, ", kind_text(x->role));
		print_shape(x, t);
		text_add(t, ", %" PRId64 ", ", tensor_bytes(x));
		if (s->file[i] >= 0) { /* the file goes on where the arena ends */
			text_macro(t, in->name, "ARENA_BYTES");
			text_puts(t, " + ");
		}
		text_add(t, "R%03d, %d, %d},\n", i, train && train->trained[i],
			train && train->by_shards[i]);
	}
	text_puts(t, "};\n");
}

static int count_pieces(const struct schedule *s)
{
	int n = 0;
	for (int i = 0; i < s->nresident; i++)
		n += s->gp->tensor[i]->piece_of != NULL;
	return n;
}

/* resident, rank, dim */
static void print_pieces(const struct schedule *s, struct text *t)
{
	if (count_pieces(s) == 0)
		return;
	text_puts(t, "\nstatic const struct stint_piece pieces[] = {\n");
	for (int i = 0; i < s->nresident; i++) {
		const struct tensor *whole = s->gp->tensor[i]->piece_of;
		if (!whole)
			continue;
		text_add(t, "\t{%d, %d, ", i, whole->rank);
		print_dims(whole, t);
		text_puts(t, "},\n");
	}
	text_puts(t, "};\n");
}

/* A GPU's inputs that lie in the arena twice. */
static void print_next(const struct schedule *s, struct text *t)
{
	text_puts(t, "\nstatic const struct stint_next next_inputs[] = {\n");
	for (int i = 0; i < s->nresident; i++) {
		const int64_t next = tensor_next(s->gp->graph, s->gp->tensor[i]);
		if (next)
			text_add(t, "\t{%d, R%03d + %" PRId64 "},\n", i, i, next);
	}
	text_puts(t, "\t{-1, 0},\n};\n");
}

/* name, dtype, rank, dim, bytes, offset, whole_batch */
static void print_outputs(
	const struct schedule *eval, const char *const *whole_batch, struct text *t)
{
	const struct graph *g = eval->gp->graph;
	if (g->noutput == 0)
		return;
	text_puts(t, "\nstatic const struct stint_output outputs[] = {\n");
	for (int i = 0; i < g->noutput; i++) {
		int b = buffer_at_end(eval, g->output[i]);
		text_puts(t, "\t{");
		text_literal(t, g->output[i]->name);
		text_puts(t, ", ");
		print_shape(g->output[i], t);
		text_add(t, ", %" PRId64 ", %s, ", tensor_bytes(g->output[i]), eval->place[b].name);
		text_literal(t, whole_batch ? whole_batch[i] : NULL);
		text_puts(t, "},\n");
	}
	text_puts(t, "};\n");
}

/* Fields that are zero are left out. */
static void print_field(const char *field, int64_t v, struct text *t)
{
	if (v != 0)
		text_add(t, ", .%s = %" PRId64, field, v);
}

static void print_axes(const char *field, int axes, const int64_t v[3], struct text *t)
{
	if (v[0] == 0 && v[1] == 0 && v[2] == 0)
		return;
	text_add(t, ", .%s = {", field);
	for (int i = 0; i < axes; i++)
		text_add(t, "%s%" PRId64, i ? ", " : "", v[i]);
	text_puts(t, "}");
}

static void print_product(const struct stint_product *p, struct text *t)
{
	static const char *const extra[] = {[STINT_PRODUCT_BIAS] = "STINT_PRODUCT_BIAS",
		[STINT_PRODUCT_ADD] = "STINT_PRODUCT_ADD",
		[STINT_PRODUCT_SUM0] = "STINT_PRODUCT_SUM0",
		[STINT_PRODUCT_SUM1] = "STINT_PRODUCT_SUM1"};
	text_add(t, ", .product = {.batch = %" PRId64, p->batch);
	print_field("m", p->m, t);
	print_field("n", p->n, t);
	print_field("k", p->k, t);
	print_field("t0", p->t0, t);
	print_field("t1", p->t1, t);
	print_field("each0", p->each0, t);
	print_field("each1", p->each1, t);
	if (p->extra != STINT_PRODUCT_PLAIN)
		text_add(t, ", .extra = %s", extra[p->extra]);
	text_puts(t, "}");
}

static void print_convolution(const struct stint_convolution *c, struct text *t)
{
	static const char *const way[] = {[STINT_CONV_WINOGRAD] = "STINT_CONV_WINOGRAD",
		[STINT_CONV_HALVES] = "STINT_CONV_HALVES"};
	text_add(t, ", .conv = {.axes = %d", c->axes);
	print_field("n", c->n, t);
	print_field("c", c->c, t);
	print_field("k", c->k, t);
	print_field("groups", c->groups, t);
	print_axes("size", c->axes, c->size, t);
	print_axes("kernel", c->axes, c->kernel, t);
	print_axes("stride", c->axes, c->stride, t);
	print_axes("dilation", c->axes, c->dilation, t);
	print_axes("before", c->axes, c->before, t);
	print_axes("out", c->axes, c->out, t);
	print_field("bias", c->bias, t);
	print_field("x_blocked", c->x_blocked, t);
	print_field("y_blocked", c->y_blocked, t);
	print_field("last", c->last, t);
	if (c->way != STINT_CONV_DIRECT)
		text_add(t, ", .way = %s", way[c->way]);
	text_puts(t, "}");
}

static void print_narrow(int types, struct text *t)
{
	static const char *const bit[] = {
		"STINT_X0_NARROW", "STINT_X1_NARROW", "STINT_Y0_NARROW", "STINT_NARROW_IS_FP16"};
	const char *before = ", .types = ";
	for (int i = 0; i < 4; i++)
		if (types >> i & 1) {
			text_add(t, "%s%s", before, bit[i]);
			before = " | ";
		}
}

static void print_library(const struct kernels *ks, struct text *t)
{
	static const char *const kind[] = {[STINT_CALL_PRODUCT] = "STINT_CALL_PRODUCT",
		[STINT_CALL_CONV_FORWARD] = "STINT_CALL_CONV_FORWARD",
		[STINT_CALL_CONV_DATA] = "STINT_CALL_CONV_DATA",
		[STINT_CALL_CONV_WEIGHT] = "STINT_CALL_CONV_WEIGHT"};
	if (ks->nlib == 0)
		return;
	text_puts(t, "\nstatic const struct stint_lib_planned library_calls[] = {\n");
	for (int i = 0; i < ks->nlib; i++) {
		const struct stint_lib_call *c = &ks->lib[i].call;
		text_add(t, "\t{.call = {.kind = %s", kind[c->kind]);
		print_narrow(c->types, t);
		if (c->kind == STINT_CALL_PRODUCT)
			print_product(&c->product, t);
		else
			print_convolution(&c->conv, t);
		text_puts(t, "}");
		print_field("workspace", ks->lib_workspace[i], t);
		text_puts(t, "},\n");
	}
	text_puts(t, "};\n");
}

/* --- What init checks --- */

static void print_machine_check(
	const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	text_puts(t, "\nstatic int machine_check(stint_step *s)\n{\n"
		     "\tconst char *lacks = stint_machine_lacks();\n"
		     "\tif (lacks) {\n"
		     "\t\tsnprintf(s->message, sizeof s->message,\n"
		     "\t\t\t\"this machine lacks %s, for which the step was compiled\", lacks);\n"
		     "\t\treturn STINT_BAD_MACHINE;\n"
		     "\t}\n");
	if (ks->nlib && in->library_identity) {
		text_puts(t, "\tstatic const char planned[] = ");
		text_literal(t, in->library_identity);
		text_puts(t,
			";\n\tchar here[96];\n"
			"\tif (strcmp(stint_lib_identity(STINT_THREADS, here), planned) != 0) "
			"{\n"
			"\t\tsnprintf(s->message, sizeof s->message, \"planned for %s, this is "
			"%s\", planned, here);\n"
			"\t\treturn STINT_BAD_MACHINE;\n"
			"\t}\n");
	}
	text_puts(t, "\treturn STINT_OK;\n}\n");
}

/* --- The model --- */

int resident_of(const struct schedule *s, const struct tensor *x)
{
	return x ? s->gp->index[x->id] : -1;
}

static void print_loss_offset(
	const char *field, const struct schedule *s, const struct tensor *loss, struct text *t)
{
	if (s && loss)
		text_add(t, "\t.%s = %s,\n", field, s->place[buffer_at_end(s, loss)].name);
	else
		text_add(t, "\t.%s = SIZE_MAX,\n", field);
}

static struct tensor *loss_of(const struct schedule *s)
{
	return s ? s->gp->graph->loss : NULL;
}

/* A loss's options as they were given, but for lists. */
static void print_loss_options(int k, const struct loss_spec *l, struct text *t)
{
	int n = 0;
	for (int i = 0; i < l->nattr; i++) {
		const struct attr *a = &l->attr[i];
		if (a->kind != ATTR_FLOAT && a->kind != ATTR_STRING)
			continue;
		if (!n++)
			text_add(t,
				"\nstatic const struct stint_loss_option loss_options%d[] = {\n",
				k);
		text_add(t, "\t{\"%s\", ", a->name);
		text_literal(t, a->kind == ATTR_STRING ? a->s : NULL);
		text_add(t, ", %.17g},\n", a->kind == ATTR_FLOAT ? a->f : 0);
	}
	text_puts(t, n ? "\t{NULL, NULL, 0},\n};\n" : "");
}

static bool has_options(const struct loss_spec *l)
{
	for (int i = 0; i < l->nattr; i++)
		if (l->attr[i].kind == ATTR_FLOAT || l->attr[i].kind == ATTR_STRING)
			return true;
	return false;
}

/* The first that a loss reads, among the outputs of the evaluation; -1: none of those. */
static int output_of(const struct graph *g, const struct loss_spec *l)
{
	for (int i = 0; !l->parameter && i < g->noutput; i++)
		if (!l->output || !strcmp(g->output[i]->name, l->output[0]))
			return i;
	return -1;
}

static void print_losses(const struct schedule *train, const struct schedule *eval,
	const struct codegen_input *in, struct text *t)
{
	const struct schedule *s = train ? train : eval;
	const struct graph *g = s->gp->graph, *e = eval->gp->graph;
	const int n = in->losses ? in->losses->n : 0;
	for (int i = 0; i < n; i++)
		print_loss_options(i + 1, &in->losses->item[i], t);
	if (n)
		text_puts(t, "\nstatic const struct stint_loss_term losses[] = {\n");
	for (int i = 0; i < n; i++) {
		const struct loss_spec *l = &in->losses->item[i];
		text_puts(t, "\t{.name = ");
		text_literal(t, l->name);
		text_puts(t, ", .kind = ");
		text_literal(t, l->op ? l->op->loss->name : NULL);
		text_puts(t, ",\n\t.text = ");
		text_literal(t, l->text);
		text_add(t, ",\n\t.weight = %.17g, .target = %d, .output = %d,\n", l->weight,
			resident_of(s, i < g->nterm ? g->term[i].target : NULL), output_of(e, l));
		if (has_options(l))
			text_add(t, "\t.option = loss_options%d,\n", i + 1);
		print_loss_offset(
			"offset_train", train, train && i < g->nterm ? g->term[i].value : NULL, t);
		print_loss_offset("offset_eval", eval, i < e->nterm ? e->term[i].value : NULL, t);
		text_puts(t, "\t},\n");
	}
	text_puts(t, n ? "};\n" : "");
}

/* Where the caller computes the loss; NULL: nowhere. */
static const struct call *outside_call(const struct schedule *s)
{
	for (int i = 0; s && i < s->plan->nstep; i++)
		if (s->call[i].node.op->role == ROLE_OUTSIDE)
			return &s->call[i];
	return NULL;
}

/* name, dtype, rank, dim, bytes, value, gradient */
static void print_outside(const struct schedule *s, struct text *t)
{
	const struct call *c = outside_call(s);
	if (!c)
		return;
	const struct outside_loss *o = c->node.param;
	text_puts(t, "\nstatic const struct stint_outside outsides[] = {\n");
	for (int k = 0; k < c->node.nin; k++) {
		const struct tensor *x = c->node.in[k];
		text_puts(t, "\t{");
		text_literal(t, o->name[k]);
		text_puts(t, ", ");
		print_shape(x, t);
		text_add(t, ", %" PRId64 ", %s, %s},\n", tensor_bytes(x), s->place[c->in[k]].name,
			c->out[1 + k] < 0 ? "SIZE_MAX" : s->place[c->out[1 + k]].name);
	}
	text_puts(t, "};\n");
}

/* resident, offset; whatever the plan, in the residents' order */
static void print_kept(const struct schedule *s, struct text *t)
{
	if (!s || !s->nkept)
		return;
	text_puts(t, "\nstatic const struct stint_kept kept_gradients[] = {\n");
	for (int i = 0; i < s->nresident; i++)
		if (s->keeper[i])
			text_add(t, "\t{%d, %s},\n", i, s->place[s->keeper[i]->out[0]].name);
	text_puts(t, "};\n");
}

/* A GPU's step brings the text of its kernels. */
static void print_gpu(const struct schedule *train, const struct target *target,
	const struct codegen_input *in, struct text *t)
{
	text_add(t,
		"\nextern const char stint_kernels_%s[]; /* kernels.c */\n\n"
		"static const struct stint_gpu_model gpu = {\n"
		"\t.kernel = launches,\n\t.kernels_text = stint_kernels_%s,\n\t.next = "
		"next_inputs,\n",
		in->name, in->name);
	if (target->tf32)
		text_puts(t, "\t.tf32 = 1,\n");
	if (target->math == MATH_STRICT)
		text_puts(t, "\t.strict = 1,\n");
	if (train && train->ncopy > 0)
		text_add(t, "\t.host_bytes = %" PRId64 ",\n\t.ncopy = %d,\n", train->host_bytes,
			train->ncopy);
	text_puts(t, "};\n");
}

static void print_model(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	const struct schedule *s = train ? train : eval;
	const struct graph *g = s->gp->graph;
	const struct call *outside = outside_call(train);
	if (g->target->cuda)
		print_gpu(train, g->target, in, t);
	text_add(t, "\nconst struct stint_model stint_model_%s = {\n", in->name);
	text_add(t, "\t.version = STINT_RT_VERSION,\n\t.name = \"%s\",\n", in->name);
	text_puts(t, "\t.arena_bytes = ");
	text_macro(t, in->name, "ARENA_BYTES");
	text_puts(t, ",\n\t.alignment = ");
	text_macro(t, in->name, "ARENA_ALIGNMENT");
	text_puts(t, ",\n\t.threads = STINT_THREADS,\n\t.machine_check = machine_check,\n");
	text_add(t, "\t.nresident = %d,\n\t.resident = %s,\n", s->nresident,
		s->nresident ? "residents" : "NULL");
	text_add(t, "\t.noutput = %d,\n\t.output = %s,\n", eval->gp->graph->noutput,
		eval->gp->graph->noutput ? "outputs" : "NULL");
	text_add(t, "\t.nlib = %d,\n\t.lib = %s,\n", ks->nlib, ks->nlib ? "library_calls" : "NULL");
	if (ks->nlib)
		text_puts(t, "\t.library = &stint_rt_library,\n");
	if (g->target->cuda)
		text_puts(t, "\t.gpu = &gpu,\n");
	text_add(t, "\t.ntrain_steps = %d,\n\t.train_info = %s,\n", train ? train->plan->nstep : 0,
		train && train->plan->nstep ? "train_info" : "NULL");
	text_add(t, "\t.neval_steps = %d,\n\t.eval_info = %s,\n", eval->plan->nstep,
		eval->plan->nstep ? "eval_info" : "NULL");
	text_add(t, "\t.control = %d,\n\t.lr = %d,\n", resident_of(s, g->control),
		resident_of(s, g->lr));
	if (in->losses && in->losses->n)
		text_add(t, "\t.nloss = %d,\n\t.loss = losses,\n", in->losses->n);
	print_loss_offset("loss_offset_train", train, loss_of(train), t);
	print_loss_offset("loss_offset_eval", eval, loss_of(eval), t);
	if (outside)
		text_add(t, "\t.noutside = %d,\n\t.outside = outsides,\n\t.outside_loss = %s,\n",
			outside->node.nin, train->place[outside->out[0]].name);
	if (train && train->nkept)
		text_add(t, "\t.nkept = %d,\n\t.kept = kept_gradients,\n", train->nkept);
	text_add(t, "\t.loss_dtype = %s,\n", dtype_text(g->loss ? g->loss->dtype : g->real));
	text_add(t, "\t.shards = %d,\n\t.whole_batch = ", in->shards);
	text_literal(t, in->whole_batch);
	text_puts(t, ",\n");
	const int64_t file_bytes = g->target->cuda
					   ? 0
					   : s->file_bytes + (train ? train->host_bytes : 0);
	if (file_bytes > 0) {
		text_add(t,
			"\t.disk = &stint_rt_disk,\n\t.disk_bytes = %" PRId64 ",\n\t.ncopy = %d,\n",
			file_bytes,
			train && train->ncopy > eval->ncopy ? train->ncopy : eval->ncopy);
		text_puts(t, "\t.disk_folder = ");
		text_literal(t, in->disk_folder);
		text_puts(t, ",\n");
	}
	if (in->beside)
		text_puts(t, "\t.beside = 1,\n");
	if (in->ranks)
		text_add(t, "\t.ranks = %d,\n", in->ranks);
	if (count_pieces(s))
		text_add(t, "\t.npiece = %d,\n\t.piece = pieces,\n", count_pieces(s));
	text_add(t, "\t.lr_default = %.17g,\n", in->lr);
	text_add(t, "\t.train = %s,\n\t.eval = step_eval,\n};\n", train ? "step_train" : "NULL");
	text_add(t,
		"\n#ifdef STINT_SHARED\n"
		"/* What a program that opens step.so asks for. */\n"
		"const struct stint_model *stint_model_get(void);\n"
		"const struct stint_model *stint_model_get(void)\n{\n\treturn &stint_model_%s;\n}\n"
		"#endif\n",
		in->name);
}

void print_tables(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	if (ks->graph->target->bare) {
		print_bare_tables(train, eval, ks, in, t);
		return;
	}
	text_puts(t, "/* What the runtime knows of the model: steps, tensors, library calls, the "
		     "machine\n * it is for. A part of step.c. */\n");
	if (train)
		print_schedule(train, ks, in, t);
	print_schedule(eval, ks, in, t);
	print_residents(train, train ? train : eval, in, t);
	print_pieces(train ? train : eval, t);
	if (eval->gp->graph->target->cuda)
		print_next(train ? train : eval, t);
	print_outputs(eval, in->whole_output, t);
	print_outside(train, t);
	print_kept(train, t);
	print_library(ks, t);
	print_machine_check(ks, in, t);
	print_losses(train, eval, in, t);
	print_model(train, eval, ks, in, t);
}
