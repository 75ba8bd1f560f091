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
static void print_source_names(bool gpu, bool library, bool disk, struct text *t)
{
	text_add(t,
		"\nSOURCES = step.c stint_rt.c stint_outside.c stint_shards.c stint_schedule.c "
		"safetensors.c "
		"safetensors_write.c "
		"stint_links.c "
		"stint_sha256.c%s%s\n",
		gpu       ? " kernels.c stint_rt_gpu_feed.c stint_rt_gpu.c stint_rt_gpu_bench.c "
			    "stint_rt_gpu_library.c \\\n"
			    "\tstint_rt_gpu_ranks.c stint_sums.c stint_cache.c stint_gpu_conv.c "
			    "stint_gpu_copy.c \\\n"
			    "\tstint_gpu_device.c stint_gpu_load.c stint_gpu_matmul.c stint_gpu_nccl.c "
			    "stint_gpu_nvrtc.c \\\n"
			    "\tstint_gpu_places.c stint_gpu_run.c"
		: library ? " stint_rt_cpu.c stint_rt_library.c stint_lib.c stint_lib_recipe.c"
			  : " stint_rt_cpu.c",
		disk ? " stint_rt_disk.c\n# The file's copies run beside the step.\nSTEP_FLAGS += "
		       "-pthread\nLIBS += -pthread"
		     : "");
}

/* clang-format off */
static const char ranks_words[] =
"\n# Several processes over MPI (stint_mpi.h): MPI=1 builds that in; stint opens stint_mpi.so for it.\n"
"MPICC ?= mpicc\n"
"RANKS := $(shell command -v $(MPICC) >/dev/null 2>&1 && echo stint_mpi.so)\n"
"ifdef MPI\n"
"CC = $(MPICC)\n"
"SOURCES += stint_mpi.c stint_mpi_sums.c stint_mpi_queue.c%s\n"
"STEP_FLAGS += -pthread\n"
"endif\n";

static const char loops_words[] =
"\n# Loops as gcc's -O3 makes them, but short ones are no calls of memmove. The rest of -O3, copies of\n"
"# functions for their arguments' values, takes as long again to compile; the search for equal functions does\n"
"# where the schedule is long. clang's -O2 has its loops.\n"
"LOOPS := $(shell $(CC) -fvect-cost-model=dynamic -E -x c /dev/null >/dev/null 2>&1 && \\\n"
"\techo -ftree-vectorize -fvect-cost-model=dynamic -fpeel-loops -funswitch-loops \\\n"
"\t-fversion-loops-for-strides -fno-tree-loop-distribute-patterns -fno-ipa-icf)\n";

static const char objects_rules[] =
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
"\trm -f step.so libstep.a";

static const char ranks_rule[] =
"\nstint_mpi.so: stint_mpi.c stint_mpi_sums.c stint_mpi_queue.c stint_mpi_world.c \\\n"
"\tstint_sums.c $(HEADERS)\n"
"\t-$(MPICC) $(CFLAGS) $(STEP_FLAGS) -pthread -shared -o $@ $(filter %.c,$^)\n";
/* clang-format on */

/* What a step is linked with. */
static void print_libraries(const struct kernels *ks, bool gpu, bool library, struct text *t)
{
	text_add(t, "LIBS =%s -lm\n", gpu ? " -ldl" : library ? " -ldnnl" : "");
	if (library)
		text_puts(t, "\n# Where oneDNN is, if not where the compiler looks: include/ and "
			     "lib/ in there.\n"
			     "ifdef STINT_ONEDNN\n"
			     "STEP_FLAGS += -I\"$(STINT_ONEDNN)/include\"\n"
			     "LIBS := -L\"$(STINT_ONEDNN)/lib\" "
			     "-Wl,-rpath,\"$(STINT_ONEDNN)/lib\" $(LIBS)\n"
			     "endif\n");
	/* the library's primitives are made for a number of threads, set through OpenMP */
	if (!gpu && (library || uses_threads(ks)))
		text_puts(t, "\n# Threads, where the compiler has OpenMP.\n"
			     "OPENMP := $(shell t=$$(mktemp) && echo 'int main(void) { "
			     "return 0; }' | \\\n"
			     "\t$(CC) -fopenmp -x c -o $$t - 2>/dev/null && echo -fopenmp; rm "
			     "-f $$t)\n");
	else
		text_puts(t, "OPENMP =\n");
}

void print_makefile(const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	if (ks->graph->target->bare) {
		print_bare_makefile(t);
		return;
	}
	const bool gpu = ks->graph->target->cuda, library = ks->nlib > 0 && !gpu;
	const bool ranks = ks->graph->target->ranks && in->shards > 1;
	text_add(t,
		"# make             step.so, which stint opens\n"
		"# make libstep.a   for a program of your own: include stint_step.h, link it "
		"and -lm%s\n",
		gpu ? " -ldl" : "");
	if (in->cross)
		text_add(t,
			"\n# For another machine.\n"
			"CROSS ?= %s-\nCC = $(CROSS)gcc\nAR = $(CROSS)ar\n",
			in->cross);
	else
		text_puts(t, "\nCC ?= cc\n");
	if (in->beside)
		text_puts(t, "\n# What the steps for all lengths share is in the folder above.\n"
			     "ABOVE = ../\nvpath %.c $(ABOVE)\n\n");
	text_add(t, "CFLAGS ?= -O2 $(LOOPS)%s%s -Wall -Wextra\n", *in->isa_flags ? " " : "",
		in->isa_flags);
	text_puts(t, loops_words);
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
	text_puts(t, gpu ? " -DSTINT_WITH_GPU\n" : in->beside ? " -I$(ABOVE)\n" : "\n");
	print_libraries(ks, gpu, library, t);
	print_source_names(gpu, library, in->disk_folder != NULL, t);
	if (ranks)
		text_add(t, ranks_words, gpu ? "" : " stint_sums.c");
	text_puts(t, "OBJECTS = $(SOURCES:.c=.o)\n"
		     "\nstep.so: shared.o $(filter-out step.o,$(OBJECTS))");
	text_puts(t, ranks ? " | $(RANKS)\n" : "\n");
	text_puts(t, "\t$(CC) $(CFLAGS) $(OPENMP) -shared -o $@ $^ $(LDFLAGS) $(LIBS)\n"
		     "\nlibstep.a: $(OBJECTS)\n"
		     "\trm -f $@\n"
		     "\t$(AR) rcs $@ $^\n");
	text_add(t, "\nHEADERS = $(wildcard %s) Makefile\n",
		in->beside ? "*.h $(ABOVE)*.h $(ABOVE)kernels/*.h" : "*.h kernels/*.h");
	text_puts(t, objects_rules);
	text_puts(t, ranks ? " stint_mpi.so\n" : "\n");
	if (ranks)
		text_puts(t, ranks_rule);
}
