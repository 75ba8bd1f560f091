/* The top of step.c: what kernels and steps are written with. Only what they mention is printed. */
#include <string.h>

#include "codegen/parts.h"

static void print_includes(const struct kernels *ks, struct text *t)
{
	if (ks->graph->target->bare) {
		text_puts(t, "\n#include \"stint_step.h\"\n\n#include <float.h>\n#include "
			     "<math.h>\n#include <string.h>\n\n#include \"weights.h\"\n");
		return;
	}
	text_puts(t, "\n#include \"stint_step.h\"\n\n#include <float.h>\n#include "
		     "<math.h>\n#include <stdio.h>\n");
	text_puts(t, "#include <string.h>\n\n");
	if (ks->nlib)
		text_puts(t, "#include \"stint_lib.h\"\n");
	text_add(t, "#include \"stint_machine.h\"\n#include \"%s\"\n",
		ks->graph->target->cuda ? "stint_rt_gpu_step.h" : "stint_schedule.h");
}

bool kernels_begin(struct kernels *ks)
{
	struct sources *s = &ks->helpers.sources;
	const bool cuda = ks->graph->target->cuda;
	s->arena = ks->arena;
	return (!cuda || sources_add(s, "primitives.cuh", 0, NULL)) &&
	       sources_add(s, "lanes.h", 0, NULL) && sources_add(s, "math.h", 0, NULL) &&
	       sources_add(s, "narrow.h", 0, NULL) && sources_add(s, "philox.h", 0, NULL) &&
	       sources_add(s, "turns.h", 0, NULL);
}

void print_types(const struct kernels *ks, struct text *t)
{
	if (ks->graph->real == DT_F64)
		text_puts(t, "#define STINT_DOUBLE\n");
	if (ks->fp16)
		text_puts(t, "#define STINT_FP16\n");
	if (ks->bf16_states)
		text_puts(t, "#define STINT_STATE_BF16\n");
	if (ks->graph->target->bare)
		text_puts(t, "#define STINT_BARE\n");
}

void print_prelude(const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	print_includes(ks, t);
	text_add(t, "\nenum { STINT_THREADS = %d };\n\n", ks->graph->target->threads);
	text_puts(t, "#ifdef __FAST_MATH__\n"
		     "#error \"-ffast-math would change the results with the compiler\"\n"
		     "#endif\n\n");
	text_puts(t,
		"/* 16 is of half precision: float and double are computed as what they are. */\n"
		"#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16\n"
		"#error \"numbers are computed with more bits than they have, as the x87 does, "
		"and results would differ: compile with -msse2 -mfpmath=sse\"\n"
		"#endif\n\n");
	text_puts(t, "#define KERNEL static __attribute__((noinline))\n");
	text_puts(t, "\n");
	if (*in->isa_flags)
		text_puts(t, "/* For one instruction set: where that has no fused multiply-add, "
			     "products round twice. */\n#define STINT_ONE_ISA\n");
	print_types(ks, t);
	const size_t begin = t->len;
	if (ks->graph->target->cuda)
		text_puts(t, "#include \"kernels/narrow.h\"\n");
	else
		print_sources(&ks->helpers.sources, t);
	if (ks->graph->target->bare)
		text_bare_words(t, begin);
}
