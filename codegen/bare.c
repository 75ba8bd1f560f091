/* What a step for a microcontroller has in other words: its tables, its values as C, its Makefile.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/parts.h"

bool resident_in_value(const struct schedule *s, int resident)
{
	return s->gp->graph->target->bare && s->gp->tensor[resident]->data &&
	       s->gp->problem->tensor[resident].bytes == 0 &&
	       tensor_bytes(s->gp->tensor[resident]) > 0;
}

int value_number(const struct schedule *s, int resident)
{
	int n = 0;
	for (int i = 0; i < resident; i++)
		n += resident_in_value(s, i);
	return n;
}

void print_value_name(const struct codegen_input *in, int resident, struct text *t)
{
	text_add(t, "stint_%s_R%03d", in->name, resident);
}

/* --- Words --- */

/* Whole numbers and sizes have 32 bits there, an arena being smaller than 2 GiB; what is summed in
 * double elsewhere is summed in `wider` (kernels/words.h). */
static const struct exchange {
	const char *word, *other;
	bool wide;   /* about double: some files keep it */
	bool called; /* only where it is a function's name */
} exchanges[] = {{"int64_t", "int32_t", false, false}, {"INT64_MAX", "INT32_MAX", false, false},
	{"INT64_MIN", "INT32_MIN", false, false},
	{"9223372036854775808", "2147483648", false, false}, {"double", "wider", true, false},
	{"log_double", "WIDER_LOG", true, true}, {"sqrt", "WIDER_SQRT", true, true}};

static size_t word_length(const char *p)
{
	size_t n = 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	return n;
}

static const char *exchanged(const char *p, size_t n, bool wide)
{
	for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++) {
		const struct exchange *x = &exchanges[i];
		if (strlen(x->word) == n && !strncmp(x->word, p, n) && (wide || !x->wide) &&
			(!x->called || p[n] == '('))
			return x->other;
	}
	return NULL;
}

/* The C text s in those words; `wide`: those for double too. */
static void print_words(const char *s, bool wide, struct text *t)
{
	while (*s) {
		const size_t n = word_length(s);
		const char *other = n ? exchanged(s, n, wide) : NULL;
		if (other)
			text_puts(t, other);
		else
			text_write(t, s, n ? n : 1);
		s += n ? n : 1;
	}
}

void text_bare_words(struct text *t, size_t from)
{
	struct text words = {0};
	if (t->failed || from == t->len)
		return;
	print_words(t->s + from, true, &words);
	t->len = from;
	text_write(t, words.s ? words.s : "", words.len);
	t->failed |= words.failed;
	text_free(&words);
}

void print_kernel_file(const struct embedded_file *f, const struct target *target, struct text *t)
{
	/* double is what these are about */
	static const char *const stay[] = {
		"madd.h", "math.h", "math_double.h", "math_wide.h", "random.h", "words.h"};
	bool wide = true;
	for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
		wide &= strcmp(f->name, stay[i]) != 0;
	if (target->bare)
		print_words(f->text, wide, t);
	else
		text_write(t, f->text, f->len);
}

enum status bare_fits(const struct schedule *s, struct diag *d)
{
	if (s->plan->arena_bytes > INT32_MAX)
		return diag_fail(d, ST_INVALID, NULL, "leave --bare away",
			"an arena of %" PRId64 " bytes does not fit a microcontroller's 32 bits",
			s->plan->arena_bytes);
	for (int i = 0; i < s->nresident; i++) {
		const struct tensor *x = s->gp->tensor[i];
		const int64_t *v = x->dtype == DT_I64 ? x->data : NULL;
		for (int64_t k = 0; v && k < x->numel; k++)
			if (v[k] < INT32_MIN || v[k] > INT32_MAX)
				return diag_fail(d, ST_INVALID,
					&(struct where){.node = s->gp->problem->tensor[i].name,
						.op = "tensor"},
					"leave --bare away",
					"holds %" PRId64
					", and --bare has whole numbers of 32 bits",
					v[k]);
	}
	for (int i = 0; i < s->gp->graph->noutput; i++) {
		const struct tensor *y = s->gp->graph->output[i];
		const int at = y ? s->gp->index[y->id] : -1;
		if (at >= 0 && at < s->nresident && resident_in_value(s, at))
			return diag_fail(d, ST_INVALID,
				&(struct where){.node = y->name, .op = "output"},
				"leave --bare away, or the output out of the model",
				"is a constant, which a microcontroller's step does not hand out");
	}
	return ST_OK;
}

/* --- weights.c, weights.h --- */

/* Bytes of x there. */
static int64_t bare_bytes(const struct tensor *x)
{
	return x->dtype == DT_I64 ? 4 * x->numel : tensor_bytes(x);
}

static const char *bare_dtype(const struct tensor *x)
{
	return x->dtype == DT_I64 ? "STINT_I32" : dtype_text(x->dtype);
}

static bool has_value(const struct schedule *s, int resident)
{
	const struct tensor *x = s->gp->tensor[resident];
	return x->data && tensor_bytes(x) > 0;
}

static void print_declaration(
	const struct schedule *s, const struct codegen_input *in, int resident, struct text *t)
{
	static const char *const type[] = {
		[DT_F32] = "float", [DT_I64] = "int32_t", [DT_BOOL] = "unsigned char"};
	const struct tensor *x = s->gp->tensor[resident];
	text_add(t, "const %s ", type[x->dtype]);
	print_value_name(in, resident, t);
	text_add(t, "[%" PRId64 "]", x->numel);
}

/* The shortest of those texts that are this float again: most end before nine digits. */
static void print_float(float v, struct text *t)
{
	char buf[40];
	if (isnan(v) || isinf(v)) {
		text_puts(t, isnan(v) ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY");
		return;
	}
	for (int digits = 6; digits <= 9; digits++) {
		snprintf(buf, sizeof buf, "%.*g", digits, (double)v);
		if (strtof(buf, NULL) == v)
			break;
	}
	text_add(t, "%s%sf", buf, strpbrk(buf, ".e") ? "" : ".0");
}

static void print_values(const struct tensor *x, struct text *t)
{
	enum { LINE = 90 };
	size_t line = t->len;
	text_puts(t, "\t");
	for (int64_t i = 0; i < x->numel && !t->failed; i++) {
		if (t->len - line > LINE) {
			text_puts(t, "\n\t");
			line = t->len;
		}
		if (x->dtype == DT_F32)
			print_float(((const float *)x->data)[i], t);
		else if (x->dtype == DT_I64)
			text_add(t, "%" PRId64, ((const int64_t *)x->data)[i]);
		else
			text_add(t, "%d", ((const unsigned char *)x->data)[i]);
		text_puts(t, ", ");
	}
	text_puts(t, "\n");
}

void print_bare_weights(const struct schedule *s, const struct codegen_input *in,
	struct text *header, struct text *source)
{
	text_puts(header, "/* The values that the model's tensors begin with, or keep. A part of "
			  "step.c. */\n#include <stdint.h>\n\n");
	text_puts(source, "/* What weights.h declares, made from ");
	text_comment(source, in->model_file);
	text_puts(source, "; the numbers are that model's owner's. */\n#include "
			  "<math.h>\n\n#include \"weights.h\"\n");
	for (int i = 0; i < s->nresident; i++) {
		if (!has_value(s, i))
			continue;
		text_puts(header, "extern ");
		print_declaration(s, in, i, header);
		text_puts(header, "; /* ");
		text_comment(header, s->gp->problem->tensor[i].name);
		text_puts(header, resident_in_value(s, i) ? ": read here */\n" : " */\n");
		text_puts(source, "\n/* ");
		text_comment(source, s->gp->problem->tensor[i].name);
		text_puts(source, " */\n");
		print_declaration(s, in, i, source);
		text_puts(source, " = {\n");
		print_values(s->gp->tensor[i], source);
		text_puts(source, "};\n");
	}
}

/* --- step_tables.h --- */

/* name, value, bytes, offset, kind, dtype, trainable */
static void print_residents(const struct schedule *train, const struct schedule *s,
	const struct codegen_input *in, struct text *t)
{
	text_puts(t, "\n#ifdef STINT_NO_VALUES\n#define BEGINS_AS(value) NULL\n#else\n"
		     "#define BEGINS_AS(value) value\n#endif\n"
		     "static const struct stint_tensor residents[] = {\n");
	for (int i = 0; i < s->nresident; i++) {
		const struct tensor *x = s->gp->tensor[i];
		const bool in_value = resident_in_value(s, i);
		text_puts(t, "\t{");
		text_literal(t, s->gp->problem->tensor[i].name);
		text_puts(t, has_value(s, i) ? in_value ? ", " : ", BEGINS_AS(" : ", NULL");
		if (has_value(s, i))
			print_value_name(in, i, t);
		text_puts(t, has_value(s, i) && !in_value ? ")" : "");
		text_add(t, ", %" PRId64 ", ", bare_bytes(x));
		if (in_value)
			text_puts(t, "STINT_IN_VALUE");
		else
			text_add(t, "R%03d", i);
		text_add(t, ", %s, %s, %d},\n", kind_text(x->role), bare_dtype(x),
			train && train->trained[i]);
	}
	text_puts(t, "};\n");
}

/* name, bytes, offset, dtype */
static void print_outputs(const struct schedule *eval, struct text *t)
{
	const struct graph *g = eval->gp->graph;
	if (g->noutput == 0)
		return;
	text_puts(t, "\nstatic const struct stint_output outputs[] = {\n");
	for (int i = 0; i < g->noutput; i++) {
		text_puts(t, "\t{");
		text_literal(t, g->output[i]->name);
		text_add(t, ", %" PRId64 ", %s, %s},\n", bare_bytes(g->output[i]),
			eval->place[buffer_at_end(eval, g->output[i])].name,
			bare_dtype(g->output[i]));
	}
	text_puts(t, "};\n");
}

static void print_loss(const char *field, const struct schedule *s, struct text *t)
{
	const struct tensor *loss = s ? s->gp->graph->loss : NULL;
	text_add(t, "\t.%s = %s,\n", field,
		loss ? s->place[buffer_at_end(s, loss)].name : "STINT_IN_VALUE");
}

void print_bare_tables(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	const struct schedule *s = train ? train : eval;
	const struct graph *g = s->gp->graph;
	text_puts(t, "/* What the runtime knows of the model. A part of step.c. */\n");
	if (train)
		print_schedule(train, ks, in, t);
	print_schedule(eval, ks, in, t);
	print_residents(train, s, in, t);
	print_outputs(eval, t);
	text_add(t, "\nconst struct stint_model stint_model_%s = {\n\t.name = \"%s\",\n", in->name,
		in->name);
	text_puts(t, "\t.arena_bytes = ");
	text_macro(t, in->name, "ARENA_BYTES");
	text_puts(t, ",\n\t.alignment = ");
	text_macro(t, in->name, "ARENA_ALIGNMENT");
	text_add(t, ",\n\t.nresident = %d,\n\t.resident = residents,\n", s->nresident);
	text_add(t, "\t.noutput = %d,\n\t.output = %s,\n", eval->gp->graph->noutput,
		eval->gp->graph->noutput ? "outputs" : "NULL");
	text_add(t, "\t.control = %d,\n\t.lr = %d,\n", resident_of(s, g->control),
		resident_of(s, g->lr));
	print_loss("loss_offset_train", train, t);
	print_loss("loss_offset_eval", eval, t);
	text_add(t, "\t.shards = %d,\n\t.lr_default = ", in->shards);
	print_float((float)in->lr, t);
	text_add(t, ",\n\t.train = %s,\n\t.eval = step_eval,\n};\n", train ? "step_train" : "NULL");
}

/* --- Makefile --- */

void print_bare_makefile(struct text *t)
{
	text_puts(t,
		"# make libstep.a   for a program of your own: include stint_step.h, link it "
		"and -lm\n"
		"#\n"
		"# For a board, for example:\n"
		"#\tmake CC=arm-none-eabi-gcc CFLAGS=\"-O2 -mcpu=cortex-m4 -mthumb "
		"-mfloat-abi=hard -mfpu=fpv4-sp-d16\"\n"
		"\nCC = cc\nAR := $(if $(filter %gcc,$(CC)),$(patsubst %gcc,%ar,$(CC)),ar)\n"
		"CFLAGS ?= -O2 -Wall -Wextra\n"
		"\n# Contraction into fma would change the results' bits, and so is off; the "
		"others do not.\n"
		"STEP_FLAGS = -std=gnu11 -ffp-contract=off -fno-math-errno -fno-trapping-math \\\n"
		"\t-ffunction-sections -fdata-sections\n"
		"OBJECTS = step.o stint_bare.o weights.o\n"
		"\nlibstep.a: $(OBJECTS)\n"
		"\trm -f $@\n"
		"\t$(AR) rcs $@ $^\n"
		"\n%.o: %.c $(wildcard *.h kernels/*.h) Makefile\n"
		"\t$(CC) $(CFLAGS) $(STEP_FLAGS) -c -o $@ $<\n"
		"\n.INTERMEDIATE: $(OBJECTS)\n"
		"\n.PHONY: clean\n"
		"clean:\n"
		"\trm -f libstep.a $(OBJECTS)\n");
}
