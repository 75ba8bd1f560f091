/* The Makefile beside step.c. */
#include "codegen/parts.h"

static bool uses_threads(const struct kernels *ks)
{
	for (int i = 0; i < ks->n; i++)
		if (ks->kernel[i].threads)
			return true;
	return false;
}

/* What is linked, and with what. A GPU's libraries are found when the step is opened. */
static void print_source_names(bool gpu, bool library, struct text *t)
{
	text_add(t, "\nSOURCES = step.c stint_rt.c safetensors.c safetensors_write.c%s\n",
		gpu       ? " kernels.c stint_rt_gpu_feed.c stint_rt_gpu.c stint_rt_gpu_bench.c "
			    "stint_rt_gpu_library.c \\\n"
			    "\tstint_gpu_cache.c stint_gpu_conv.c stint_gpu_copy.c stint_gpu_device.c "
			    "stint_gpu_load.c \\\n"
			    "\tstint_gpu_matmul.c stint_gpu_nvrtc.c stint_gpu_places.c "
			    "stint_gpu_run.c"
		: library ? " stint_rt_cpu.c stint_lib.c stint_lib_recipe.c"
			  : " stint_rt_cpu.c");
}

void print_makefile(const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	const bool gpu = ks->graph->target->cuda, library = ks->nlib > 0 && !gpu;
	text_add(t,
		"# make             step.so, which stint opens\n"
		"# make libstep.a   for a program of your own: include stint_step.h, link it "
		"and -lm%s\n"
		"\nCC ?= cc\n",
		gpu ? " -ldl" : "");
	text_add(t, "CFLAGS ?= -O2 $(LOOPS)%s%s -Wall -Wextra\n", *in->isa_flags ? " " : "",
		in->isa_flags);
	text_puts(t,
		"\n# Loops as gcc's -O3 makes them, but short ones are no calls of memmove. The "
		"rest of "
		"-O3, copies of\n# functions for their arguments' values, takes as long again to "
		"compile. clang's -O2 has its loops.\n"
		"LOOPS := $(shell $(CC) -fvect-cost-model=dynamic -E -x c /dev/null >/dev/null "
		"2>&1 && \\\n"
		"\techo -ftree-vectorize -fvect-cost-model=dynamic -fpeel-loops -funswitch-loops "
		"\\\n"
		"\t-fversion-loops-for-strides -fno-tree-loop-distribute-patterns)\n");
	text_puts(t,
		"\n# On an i386 floats are computed as floats in these registers only; elsewhere "
		"nothing.\n"
		"SSE := $(shell echo __i386__ | $(CC) $(CFLAGS) -E -P -x c - 2>/dev/null | \\\n"
		"\tgrep -qx 1 && echo -msse2 -mfpmath=sse)\n");
	text_puts(t, "\n# What debug information calls this folder: stint compiles beside it.\n"
		     "DEBUG_PATH = \"-fdebug-prefix-map=$$PWD=$${STINT_PLACE:-$$PWD}\"\n");
	text_puts(t,
		"\n# None of these changes a bit of the results; contraction into fma would, and "
		"so is off.\n"
		"STEP_FLAGS = -std=gnu11 -ffp-contract=off -fno-math-errno "
		"-fno-trapping-math -fPIC $(SSE) \\\n"
		"\t$(DEBUG_PATH)");
	text_puts(t, gpu ? " -DSTINT_WITH_GPU\n" : library ? " -DSTINT_WITH_LIB\n" : "\n");
	text_add(t, "LIBS =%s -lm\n", gpu ? " -ldl" : library ? " -ldnnl" : "");
	/* the library's primitives are made for a number of threads, set through OpenMP */
	if (!gpu && (library || uses_threads(ks)))
		text_puts(t, "\n# Threads, where the compiler has OpenMP.\n"
			     "OPENMP := $(shell echo 'int main(void) { return 0; }' | \\\n"
			     "\t$(CC) -fopenmp -x c -o /dev/null - 2>/dev/null && echo "
			     "-fopenmp)\n");
	else
		text_puts(t, "OPENMP =\n");
	print_source_names(gpu, library, t);
	text_puts(t, "OBJECTS = $(SOURCES:.c=.o)\n"
		     "\nstep.so: shared.o $(filter-out step.o,$(OBJECTS))\n"
		     "\t$(CC) $(CFLAGS) $(OPENMP) -shared -o $@ $^ $(LDFLAGS) $(LIBS)\n"
		     "\nlibstep.a: $(OBJECTS)\n"
		     "\trm -f $@\n"
		     "\t$(AR) rcs $@ $^\n"
		     "\nHEADERS = $(wildcard *.h kernels/*.h) Makefile\n"
		     "COMPILE = $(CC) $(CFLAGS) $(STEP_FLAGS) $(OPENMP) -c -o $@ $<\n"
		     "\nstep.o: step.c $(HEADERS)\n"
		     "\t$(COMPILE)\n"
		     "\n# The runtime reads files and makes calls: more optimizing gains nothing.\n"
		     "%.o: %.c $(HEADERS)\n"
		     "\t$(COMPILE:-O2=-O1)\n"
		     "\n# The step with the one name that stint asks for.\n"
		     "shared.o: step.c $(HEADERS)\n"
		     "\t$(COMPILE) -DSTINT_SHARED\n"
		     "\n.INTERMEDIATE: shared.o $(OBJECTS)\n"
		     "\n.PHONY: clean\n"
		     "clean:\n"
		     "\trm -f step.so libstep.a\n");
}
