#include "compile/target.h"

#include "runtime/stint_gpu.h"
#include "runtime/stint_lib.h"

int64_t target_library_workspace(void *target, const struct lib_call *call)
{
	struct target *t = target;
	t->no_room |= !stint_rt_room(STINT_LIB_ROOM);
	return t->no_room ? -1 : stint_lib_workspace(&call->call, t->threads);
}

/* What a GPU's libraries are planned to use: fixed by shape and architecture. What cuDNN, where it
 * is installed, has nothing for is left to plain loops: a step for it would end at its start. */
static int64_t gpu_workspace(void *user, const struct lib_call *call)
{
	struct gpu_asked *asked = user;
	struct stint_gpu_product product;
	struct stint_gpu_convolution c;
	if (call->rough) /* ways of the CPU's library */
		return -1;
	if (!stint_gpu_product_of(&call->call, asked->arch, &product))
		return (int64_t)product.cap;
	if (stint_gpu_convolution_of(&call->call, &c))
		return -1;
	const struct gpu_answer *answer = gpu_ask(asked, &c);
	return answer && answer->refused ? -1 : (int64_t)c.cap;
}

void target_set(
	struct target *t, const struct compile_options *o, struct arena *a, struct gpu_asked *asked)
{
	static const struct ranks_link usual = {1250, 20, 10}; /* 10 Gbit/s and its switches */
	static const struct ranks_link pcie = {25000, 10, 5};  /* GPUs in one machine */
	const bool cuda = o->target == TARGET_CUDA;
	const struct ranks_link *link = o->link.bytes > 0 ? &o->link : cuda ? &pcie : &usual;
	*asked = (struct gpu_asked){.arena = a,
		.arch = o->arch,
		.tf32 = o->precision == PRECISION_TF32,
		.strict = o->math == MATH_STRICT};
	*t = (struct target){.cuda = cuda,
		.arch = cuda ? o->arch : 0,
		.portable = o->portable,
		.bare = o->bare,
		.ranks = !o->bare && !o->disk.folder && (!cuda || o->ranks > 0),
		.away = o->disk.folder ? o->disk.least : 0,
		.disk_reads = o->disk.reads,
		.disk_writes = o->disk.writes,
		.link = link->bytes,
		.latency = link->latency + link->message,
		.tf32 = o->precision == PRECISION_TF32,
		.narrow = o->precision == PRECISION_BF16 || o->precision == PRECISION_FP16,
		.threads = o->threads,
		.math = o->math,
		.block = o->portable ? 0
			 : cuda      ? BLOCK_ALL
				     : stint_lib_block(),
		.library_workspace = o->portable ? NULL
				     : cuda      ? gpu_workspace
						 : target_library_workspace,
		.user = t};
	if (cuda)
		t->user = asked;
}
