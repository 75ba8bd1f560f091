/* Which options go together, and what the machine settles, when all are given. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/cross.h"
#include "api/offload.h"
#include "api/options.h"
#include "api/processors.h"
#include "runtime/stint_gpu.h"
#include "runtime/stint_lib.h"

/* Kernels whose threads each have scratch of their own run with so many on a GPU, whatever the
 * processors here. */
enum { GPU_THREADS = 32, GPU_ARCH = 90, THREADS_MOST = 1024 };
/* No cost is known so well. */
static const double GAP = 0.001;

/* --arch, 90 or sm_90. */
static enum status check_arch(struct options *o, bool cuda, struct diag *d)
{
	o->compile.arch = GPU_ARCH;
	if (!o->gpu)
		return ST_OK;
	if (!cuda)
		return diag_fail(d, ST_USAGE, NULL, "add --target cuda",
			"--arch names a GPU's architecture");
	const char *digits = strncmp(o->gpu, "sm_", 3) ? o->gpu : o->gpu + 3;
	const size_t n = strspn(digits, "0123456789");
	o->compile.arch = n > 0 && n < 4 && !digits[n] ? atoi(digits) : 0;
	if (!o->compile.arch ||
		stint_gpu_arch(o->compile.arch / 10, o->compile.arch % 10) != o->compile.arch)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--arch is 80, 86, 89, 90, 100 or 120, not: '%s'", o->gpu);
	return ST_OK;
}

/* --cross: which library the other machine has nobody knows here, nor how many processors. */
static enum status check_cross(struct options *o, struct diag *d)
{
	if (!o->compile.cross)
		return ST_OK;
	TRY(cross_check(o->compile.cross, d));
	o->compile.portable = 1;
	if (o->compile.threads == OPTION_NOT_GIVEN)
		diag_note(d, NULL, "--threads N says how many processors the other machine has",
			"--cross: plain C, planned for as many threads as this machine has");
	return ST_OK;
}

/* Without the library that a step would call, it is plain C. */
static void check_library(struct options *o, struct diag *d)
{
	char identity[96];
	if (o->compile.portable || stint_lib_identity(1, identity))
		return;
	o->compile.portable = 1;
	diag_note(d, NULL, "--portable says so; or install libdnnl-dev and build stint again",
		"this stint was built without oneDNN: steps are plain C");
}

/* A microcontroller has one processor, and what is compiled for it does not run here. */
static enum status check_bare(struct options *o, struct diag *d)
{
	struct compile_options *c = &o->compile;
	if (!c->bare)
		return ST_OK;
	if (c->target == TARGET_CUDA || c->isa || c->debug_arena || c->link_weights ||
		c->precision == PRECISION_FP64 ||
		(c->threads != OPTION_NOT_GIVEN && c->threads != 1))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--%s does not go with --bare",
			c->target == TARGET_CUDA         ? "target cuda"
			: c->isa                         ? "isa"
			: c->debug_arena                 ? "debug-arena"
			: c->link_weights                ? "link-weights"
			: c->precision == PRECISION_FP64 ? "precision fp64"
							 : "threads");
	c->portable = 1;
	c->threads = 1;
	o->no_build = 1;
	return ST_OK;
}

/* A step has one narrow type; small numbers go with any. */
static enum status check_frozen(const struct options *o, struct diag *d)
{
	const struct compile_options *c = &o->compile;
	static const char *const precision[] = {"fp32", "tf32", "bf16", "fp16", "fp64"};
	static const char *const frozen[] = {"fp32", "bf16", "fp16", "int8", "nf4", "nf4-double"};
	const bool small = c->frozen_precision >= FROZEN_INT8;
	const bool single = c->precision == PRECISION_FP32 || c->precision == PRECISION_TF32;
	const bool same = single || (small && c->precision != PRECISION_FP64) ||
			  !strcmp(precision[c->precision], frozen[c->frozen_precision]);
	if (c->frozen_precision == FROZEN_FP32 || (same && !c->bare))
		return ST_OK;
	if (c->bare)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--frozen-precision %s does not go with --bare yet",
			frozen[c->frozen_precision]);
	return diag_fail(d, ST_USAGE, NULL, small ? NULL : "give both the same, or leave one out",
		"--frozen-precision %s does not go with --precision %s",
		frozen[c->frozen_precision], precision[c->precision]);
}

static enum status check_states(const struct options *o, struct diag *d)
{
	const struct compile_options *c = &o->compile;
	if (c->state_precision == STATE_FP32 || (c->precision != PRECISION_FP64 && !c->bare))
		return ST_OK;
	return diag_fail(d, ST_USAGE, NULL, NULL, "--state-precision bf16 does not go with --%s",
		c->bare ? "bare" : "precision fp64");
}

/* Steps for several lengths share an arena in this process's memory. */
static enum status check_lengths(const struct options *o, struct diag *d)
{
	const struct compile_options *c = &o->compile;
	const char *other = c->target == TARGET_CUDA ? "target cuda"
			    : c->bare                ? "bare"
			    : c->disk.folder         ? "offload disk"
			    : c->ranks               ? "ranks"
			    : c->split               ? "split"
						     : NULL;
	return !c->lengths.n || !other
		       ? ST_OK
		       : diag_fail(d, ST_USAGE, NULL, "compile for one length",
				 "--dim %s=N,N does not go with --%s", c->lengths.dim, other);
}

enum status options_check(struct options *o, struct diag *d)
{
	TRY(check_bare(o, d));
	const bool cuda = o->compile.target == TARGET_CUDA;
	TRY(check_cross(o, d));
	if (!cuda)
		check_library(o, d);
	if (cuda && (o->compile.portable || o->compile.debug_arena || o->compile.isa))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--%s does not go with --target cuda",
			o->compile.cross      ? "cross"
			: o->compile.portable ? "portable"
			: o->compile.isa      ? "isa"
					      : "debug-arena");
	TRY(check_arch(o, cuda, d));
	TRY(check_frozen(o, d));
	TRY(check_states(o, d));
	if (options_given(o, "shard") && !o->compile.ranks)
		return diag_fail(d, ST_USAGE, NULL, "add --ranks N",
			"--shard says what so many processes share");
	if (o->link && !o->compile.ranks)
		return diag_fail(d, ST_USAGE, NULL, "--ranks 64 --link 25GB/s,2us",
			"--link is what is between --ranks processes");
	if (o->link)
		TRY(ranks_link_parse(o->link, &o->compile.link, d));
	if (o->compile.precision == PRECISION_TF32 && !cuda)
		return diag_fail(d, ST_USAGE, NULL,
			"add --target cuda, or take fp32: the same training, nothing rounded",
			"--precision tf32 is for GPUs: no CPU's library has tf32");
	if (o->compile.precision == PRECISION_FP64 && !o->compile.portable)
		return diag_fail(d, ST_USAGE, NULL, "add --portable",
			"--precision fp64 is for the portable path");
	if (o->compile.threads == OPTION_NOT_GIVEN)
		o->compile.threads = cuda ? GPU_THREADS : processors(THREADS_MOST);
	if (o->compile.threads < 1 || o->compile.threads > THREADS_MOST)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--threads wants 1 to 1024");
	if (o->compile.segments < 0 || (o->compile.segments && o->compile.keep_all))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--segments wants a number of 1 or more, without --keep-all");
	if (!(o->compile.clip_norm >= 0) || isinf(o->compile.clip_norm))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--clip-norm wants a number above 0");
	if (!(o->compile.clip_value >= 0) || isinf(o->compile.clip_value))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--clip-value wants a number above 0");
	if (!(o->compile.ema >= 0 && o->compile.ema < 1))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--ema wants a decay from 0 to below 1");
	if (!(o->compile.seconds >= 0))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--time wants seconds");
	if (!(o->compile.effort > 0) || isinf(o->compile.effort))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--effort wants a number above 0");
	if (!options_given(o, "gap"))
		o->compile.gap = o->compile.effort > 1 ? 0 : GAP;
	if (!(o->compile.gap >= 0 && o->compile.gap < 1))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--gap wants a share from 0 to below 1");
	TRY(check_lengths(o, d));
	return offload_check(o, d);
}
