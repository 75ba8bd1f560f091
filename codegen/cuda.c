/* Kernels as CUDA text for NVRTC: kernels.cu. It includes nothing, and every function without a
 * word on it is the device's (--device-as-default-execution-space). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"

/* --- The text --- */

static void print_start(const struct kernels *ks, struct text *t)
{
	text_puts(t,
		"/* The kernels that step.c launches, for NVRTC (--fmad=false), written by stint.\n"
		" *\n"
		" * Below: what kernels are written with, then each under its node's operator, "
		"shapes\n"
		" * and launch; step.c says which node of the model and which step calls it. */\n");
	print_types(ks, t);
	print_sources_whole(&ks->helpers.sources, t);
}

/* Parameters, `ws` as scratch, and the turn where a stage has several. */
static void print_params(const struct kernel *k, int stage, struct text *t)
{
	struct parameter p;
	const char *comma = "";
	for (int i = 0; kernel_parameter(k, i, &p); i++, comma = ", ") {
		const bool scratch = i < k->narg && k->arg[i].kind == 'w';
		text_add(t, "%s%s%s", comma, scratch ? "scratch " : p.type, p.name);
	}
	if (k->stage[stage].turns)
		text_add(t, "%sint64_t turn", comma);
}

/* Their names, as arguments, each behind `address`. */
static void print_names(const struct kernel *k, bool turn, const char *address, struct text *t)
{
	struct parameter p;
	const char *comma = "";
	for (int i = 0; kernel_parameter(k, i, &p); i++, comma = ", ")
		text_add(t, "%s%s%s", comma, address, p.name);
	if (turn)
		text_add(t, "%s%sturn", comma, *address ? "&" : "");
}

/* "k012_softmax", "k012_softmax_2" */
static void print_stage_name(const struct kernel *k, int stage, struct text *t)
{
	text_puts(t, k->name);
	if (stage > 0)
		text_add(t, "_%d", stage + 1);
}

/* Kernels that share a function are launched alike: as the largest of them. */
static int most_blocks(const struct kernels *ks, int function, int stage)
{
	int most = 1;
	for (int i = 0; i < ks->n; i++)
		if (ks->kernel[i].function == function && ks->kernel[i].stage[stage].blocks > most)
			most = ks->kernel[i].stage[stage].blocks;
	return most;
}

static void print_stage(const struct kernels *ks, int function, int stage, struct text *t)
{
	const struct kernel *k = &ks->kernel[function];
	const int blocks = most_blocks(ks, function, stage), threads = k->stage[stage].threads;
	size_t len;
	const char *body = kernel_stage(k, stage, &len);
	text_add(t, "\n/* %s\n * ", k->about);
	text_add(t, "%d block%s of %d thread%s", blocks, blocks == 1 ? "" : "s", threads,
		threads == 1 ? "" : "s");
	if (k->nstage > 1)
		text_add(t, "; launch %d of %d", stage + 1, k->nstage);
	if (k->stage[stage].turns)
		text_add(t, "; %" PRId64 " times", k->stage[stage].turns);
	text_puts(t, " */\n");
	if (k->checked) {
		text_puts(t, "static int ");
		print_stage_name(k, stage, t);
		text_puts(t, "_checked(");
		print_params(k, stage, t);
		text_add(t, ")\n{\n%.*s}\n", (int)len, body);
	}
	text_puts(t, "extern \"C\" __global__ void __launch_bounds__(");
	if (k->stage[stage].resident)
		text_add(t, "%d, %d) ", threads, k->stage[stage].resident);
	else
		text_add(t, "%d) ", BLOCK_THREADS);
	print_stage_name(k, stage, t);
	text_puts(t, "(");
	print_params(k, stage, t);
	text_puts(t, ")\n{\n");
	if (k->checked) {
		text_puts(t, "\t");
		print_stage_name(k, stage, t);
		text_puts(t, "_checked(");
		print_names(k, k->stage[stage].turns != 0, "", t);
		text_puts(t, ");\n}\n");
	} else {
		text_add(t, "%.*s}\n", (int)len, body);
	}
}

void print_cuda_kernels(const struct kernels *ks, struct text *t)
{
	print_start(ks, t);
	print_helpers(ks, t);
	for (int i = 0; i < ks->n; i++)
		for (int stage = 0; ks->kernel[i].function == i && stage < ks->kernel[i].nstage;
			stage++)
			print_stage(ks, i, stage, t);
	print_group_kernels(ks, t);
}

void print_cuda_string(const char *model, const struct text *kernels_cu, struct text *t)
{
	const char *p = kernels_cu->s ? kernels_cu->s : "";
	text_add(t,
		"/* kernels.cu as a string, for step.c. */\n"
		"extern const char stint_kernels_%s[];\n"
		"const char stint_kernels_%s[] =\n",
		model, model);
	while (*p) {
		const size_t len = strcspn(p, "\n");
		text_puts(t, "\t\"");
		for (size_t i = 0; i < len; i++)
			if (p[i] == '"' || p[i] == '\\' || p[i] == '?')
				text_add(t, "\\%c", p[i]);
			else if (p[i] == '\t')
				text_puts(t, "\\t");
			else if ((unsigned char)p[i] < 0x20 || (unsigned char)p[i] >= 0x7f)
				text_add(t, "\\%03o", (unsigned char)p[i]);
			else
				text_write(t, p + i, 1);
		text_puts(t, p[len] ? "\\n\"\n" : "\"\n");
		p += len + (p[len] != '\0');
	}
	text_puts(t, "\t\"\";\n");
}

/* --- Launches --- */

static int count_args(const struct kernel *k)
{
	struct parameter p;
	int n = 0;
	while (kernel_parameter(k, n, &p))
		n++;
	return n;
}

static bool takes_turns(const struct kernel *k)
{
	for (int i = 0; i < k->nstage; i++)
		if (k->stage[i].turns)
			return true;
	return false;
}

/* Stages [from, to), which have as many turns, where the ones before them have left `code`. */
static void print_turns(const struct kernel *k, int index, int from, int to, struct text *t)
{
	const int64_t turns = k->stage[from].turns;
	if (turns)
		text_add(t, "\tfor (turn = 0; turn < %" PRId64 "; turn++)%s\n", turns,
			to - from > 1 ? " {" : "");
	for (int i = from; i < to; i++)
		text_add(t, "%s\tcode = code ? code : stint_launch(s, %d, args);\n",
			turns ? "\t" : "", index + i);
	if (turns && to - from > 1)
		text_puts(t, "\t}\n");
}

/* `index`: of its first stage in the table. */
static void print_launch(const struct kernel *k, int index, struct text *t)
{
	const bool turns = takes_turns(k);
	text_add(t, "\n/* %s */\n", k->about);
	print_signature(k, t);
	text_puts(t, turns ? "{\n\tint64_t turn = 0;\n" : "{\n");
	text_puts(t, "\tvoid *args[] = {");
	print_names(k, turns, "(void *)&", t);
	text_puts(t, "};\n");
	if (k->nstage == 1 && !turns && !k->then) {
		text_add(t, "\treturn stint_launch(s, %d, args);\n}\n", index);
		return;
	}
	if (turns)
		text_puts(t, "\tint code = 0;\n");
	for (int i = 0, to; i < k->nstage; i = to) {
		for (to = i + 1; turns && to < k->nstage; to++)
			if (k->stage[to].turns != k->stage[i].turns)
				break;
		if (turns)
			print_turns(k, index, i, to, t);
		else
			text_add(t, "\t%s stint_launch(s, %d, args);\n",
				i == 0 ? "int code =" : "code = code ? code :", index + i);
	}
	if (k->then)
		text_add(t, "\treturn code ? code : %s;\n}\n", k->then);
	else
		text_puts(t, "\treturn code;\n}\n");
}

void print_launches(const struct kernels *ks, struct text *t)
{
	int index = 0;
	text_puts(t, "\n/* Name, blocks, threads of a block, arguments. */\n"
		     "static const struct stint_kernel launches[] = {\n");
	for (int i = 0; i < ks->n; i++) {
		const struct kernel *k = &ks->kernel[i];
		for (int stage = 0; k->function == i && stage < k->nstage; stage++) {
			text_puts(t, "\t{\"");
			print_stage_name(k, stage, t);
			text_add(t, "\", %d, %d, %d},\n", most_blocks(ks, i, stage),
				k->stage[stage].threads,
				count_args(k) + (k->stage[stage].turns != 0));
		}
	}
	print_group_launches(ks, t);
	if (sources_have(&ks->helpers.sources, "ranks.cuh"))
		text_puts(t, "\t{\"stint_tree_add\", 1024, 256, 3}, /* the runtime's */\n");
	text_puts(t, "\t{NULL, 0, 0, 0},\n};\n");
	for (int i = 0; i < ks->n; i++)
		if (ks->kernel[i].function == i && ks->kernel[i].launched) {
			print_launch(&ks->kernel[i], index, t);
			index += ks->kernel[i].nstage;
		}
}
