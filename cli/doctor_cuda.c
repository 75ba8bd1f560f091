/* `stint doctor --cuda`: NVIDIA's driver and libraries, the device, and a tiny step in each
 * precision. Goes on after whatever is wrong, so that one run tells all. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/report.h"
#include "cli/doctor.h"
#include "cli/interrupt.h"
#include "runtime/stint_gpu_paper.h"

enum { ARCH_OF_PAPER = 90 }; /* asked where there is no device */

/* --- Libraries --- */

static const char *const library_name[STINT_GPU_LIBRARIES] = {
	"driver", "NVRTC", "cuBLASLt", "cuDNN", "NCCL"};

/* "13.1.0" of the number that the library counts by. */
static const char *version_text(enum stint_gpu_library which, int version, char buf[static 32])
{
	if (which == STINT_GPU_DRIVER || which == STINT_GPU_NVRTC)
		snprintf(buf, 32, "%d.%d", version / 1000, version % 1000 / 10);
	else
		snprintf(buf, 32, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
	return buf;
}

static bool library(struct doctor *x, enum stint_gpu_library which)
{
	char version[32];
	const double from = doctor_ms();
	if (stint_gpu_need(x->g, which)) {
		/* only several GPUs need NCCL */
		doctor_say(x, which == STINT_GPU_NCCL ? FINDING_NOTE : FINDING_WRONG, NULL,
			"%s: %s", library_name[which], stint_gpu_message(x->g));
		return false;
	}
	const int number = stint_gpu_library_version(x->g, which);
	doctor_say(x, FINDING_OK, NULL, "%s: %s (%d), %s, loaded in %.0f ms", library_name[which],
		version_text(which, number, version), number, stint_gpu_library_path(x->g, which),
		doctor_ms() - from);
	return true;
}

/* The CUDA that cuDNN was made for: 13; 0: it does not say. */
static int cuda_of_cudnn(const stint_gpu *g)
{
	size_t (*version)(void) = NULL;
	void *p = stint_gpu_symbol(g, STINT_GPU_CUDNN, "cudnnGetCudartVersion");
	memcpy(&version, &p, sizeof version);
	return version ? (int)(version() / 1000) : 0;
}

/* One name, libcudnn.so.9, for cuDNN of CUDA 12 and of 13. */
static void mixture(struct doctor *x)
{
	const int of[] = {stint_gpu_library_version(x->g, STINT_GPU_NVRTC) / 1000,
		stint_gpu_library_version(x->g, STINT_GPU_CUBLASLT) / 10000, cuda_of_cudnn(x->g)};
	const int driver = stint_gpu_library_version(x->g, STINT_GPU_DRIVER) / 1000;
	bool mixed = false, newer = false;
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < i; k++)
			mixed |= of[i] && of[k] && of[i] != of[k];
	for (int i = 0; i < 3; i++)
		newer |= driver && of[i] > driver;
	if (newer)
		doctor_say(x, FINDING_WRONG, "a newer driver, or libraries of the driver's CUDA",
			"CUDA's versions: a library is of a newer CUDA than the driver's %d: NVRTC "
			"%d, cuBLASLt %d, cuDNN %d",
			driver, of[0], of[1], of[2]);
	else if (mixed)
		doctor_say(x, FINDING_WRONG,
			"put the folders of one CUDA into STINT_CUDA_LIBS (of pip's packages: "
			"nvidia-cudnn-cu13 beside nvidia-cublas 13)",
			"CUDA's versions are mixed: NVRTC is of CUDA %d, cuBLASLt of %d, cuDNN of "
			"%d",
			of[0], of[1], of[2]);
	else if (of[0] || of[1] || of[2])
		doctor_say(x, FINDING_OK, NULL,
			"CUDA's versions go together: NVRTC %d, cuBLASLt %d, cuDNN %d (0: does not "
			"say)",
			of[0], of[1], of[2]);
}

static void settings(struct doctor *x)
{
	static const char *const name[] = {"STINT_CUDA_LIBS", "STINT_CACHE", "CUDA_VISIBLE_DEVICES",
		"CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "CUDA_MODULE_LOADING",
		"CUDA_CACHE_DISABLE"};
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		if (getenv(name[i]))
			doctor_say(x, FINDING_NOTE, NULL, "%s=%s", name[i], getenv(name[i]));
}

static void kernel_module(struct doctor *x)
{
	char text[256] = "";
	FILE *f = fopen("/proc/driver/nvidia/version", "r");
	if (f && fgets(text, sizeof text, f)) {
		text[strcspn(text, "\n")] = 0;
		doctor_say(x, FINDING_NOTE, NULL, "kernel: %s", text);
	} else {
		doctor_say(
			x, FINDING_NOTE, NULL, "kernel: no module of NVIDIA's tells its version");
	}
	if (f)
		fclose(f);
}

/* --- The device --- */

static void facts(struct doctor *x)
{
	const struct stint_gpu_facts *f = stint_gpu_facts_of(x->g);
	char all[24], left[24];
	size_t free_bytes = 0, total = 0;
	doctor_say(x, FINDING_OK, NULL,
		"device: %s, compute capability %d.%d (code for sm_%d), %d SMs at %d MHz, L2 %d "
		"KiB, "
		"shared %d KiB a block",
		f->name, f->major, f->minor, f->arch, f->sm, f->clock_khz / 1000, f->l2_bytes >> 10,
		f->shared_block >> 10);
	if (stint_gpu_memory_free(x->g, &free_bytes, &total)) {
		doctor_say(x, FINDING_WRONG, NULL, "memory: %s", stint_gpu_message(x->g));
		return;
	}
	const bool full = free_bytes < total / 2;
	doctor_say(x, full ? FINDING_SLOW : FINDING_OK,
		full ? "nvidia-smi shows what other programs take" : NULL, "memory: %s free of %s",
		bytes_human((int64_t)free_bytes, left), bytes_human((int64_t)total, all));
}

static void times(struct doctor *x, const char *what, const struct stint_device_memory *m)
{
	struct text t = {0};
	bench_opened(&t, m);
	doctor_say(x, FINDING_NOTE, NULL, "%s took %s", what, t.s ? t.s : "");
	text_free(&t);
}

static void device(struct doctor *x)
{
	int count = 0;
	if (stint_gpu_count(x->g, &count)) {
		doctor_say(x, FINDING_WRONG, NULL, "devices: %s", stint_gpu_message(x->g));
		return;
	}
	doctor_say(x, FINDING_OK, NULL, "devices: %d%s", count,
		count > 1 ? "; stint takes the first that CUDA_VISIBLE_DEVICES leaves" : "");
	const double from = doctor_ms();
	if (stint_gpu_open(x->g, 0)) {
		doctor_say(x, FINDING_WRONG, NULL, "device: %s", stint_gpu_message(x->g));
		return;
	}
	x->device = true;
	x->arch = stint_gpu_facts_of(x->g)->arch;
	facts(x);
	doctor_say(x, FINDING_NOTE, NULL, "device: opened in %.0f ms", doctor_ms() - from);
}

/* --- A step's parts: its text, and what the libraries have for its calls --- */

static void kernels(struct doctor *x, const struct doctor_step *s, const struct stint_model *m)
{
	/* a step's option; and that not all functions are used is no news */
	static const char *const option[] = {
		"--device-as-default-execution-space", "--diag-suppress=177"};
	struct stint_gpu_code code = {NULL, 0, 0};
	const int rc = stint_gpu_compile(x->g, m->gpu->kernels_text, x->arch, option, 2, &code);
	const char *log = stint_gpu_log(x->g);
	if (rc)
		doctor_say(x, FINDING_WRONG, NULL, "%s: kernels for sm_%d: %s", s->name, x->arch,
			stint_gpu_message(x->g));
	else
		doctor_say(x, FINDING_OK, NULL,
			"%s: kernels for sm_%d compiled by NVRTC: %zu bytes; its log is %s",
			s->name, x->arch, code.bytes, *log ? "below" : "empty");
	if (*log)
		doctor_say(x, FINDING_NOTE, NULL, "NVRTC's log: %.4000s", log);
	stint_gpu_code_free(&code);
}

static void add_sizes(struct text *t, const int64_t *size, int n)
{
	for (int i = 0; i < n; i++)
		text_add(t, "%s%" PRId64, i ? "x" : "", size[i]);
}

/* "conv_data 32x16x28x28, 16 of 3x3" */
static void add_call(struct text *t, const struct stint_lib_call *c)
{
	text_add(t, "%s ", stint_lib_call_name(c));
	if (c->kind == STINT_CALL_PRODUCT) {
		const struct stint_product *p = &c->product;
		text_add(t, "%" PRId64 " of %" PRId64 "x%" PRId64 " by %" PRId64 "x%" PRId64,
			p->batch, p->m, p->k, p->k, p->n);
		return;
	}
	text_add(t, "%" PRId64 "x%" PRId64 "x", c->conv.n, c->conv.c);
	add_sizes(t, c->conv.size, c->conv.axes);
	text_add(t, ", %" PRId64 " of ", c->conv.k);
	add_sizes(t, c->conv.kernel, c->conv.axes);
}

static int ask_product(struct doctor *x, const struct stint_lib_planned *l, bool tf32,
	struct text *t, size_t *workspace)
{
	struct stint_gpu_product p;
	struct stint_gpu_matmul *m;
	char words[96];
	int rc = stint_gpu_product_of(&l->call, x->arch, &p);
	if (rc)
		return rc;
	p.tf32 = tf32;
	p.cap = l->workspace;
	rc = stint_gpu_matmul_new(x->g, &p, &m);
	if (rc)
		return rc;
	text_add(t, "%s", stint_gpu_matmul_words(m, words));
	*workspace = stint_gpu_matmul_workspace(m);
	stint_gpu_matmul_free(m);
	return STINT_OK;
}

static int ask_convolution(struct doctor *x, const struct stint_lib_planned *l,
	const struct stint_gpu_model *model, struct text *t, size_t *workspace)
{
	struct stint_gpu_convolution c;
	struct stint_gpu_conv *m;
	int rc = stint_gpu_convolution_of(&l->call, &c);
	if (rc)
		return rc;
	c.tf32 = model->tf32;
	c.strict = model->strict;
	c.cap = l->workspace;
	rc = stint_gpu_conv_new(x->g, &c, &m);
	if (rc)
		return rc;
	text_add(t, "engine %" PRId64, stint_gpu_conv_engine(m));
	*workspace = stint_gpu_conv_workspace(m);
	stint_gpu_conv_free(m);
	return STINT_OK;
}

static void call(struct doctor *x, const struct doctor_step *s, const struct stint_model *m, int i)
{
	const struct stint_lib_planned *l = &m->lib[i];
	const bool product = l->call.kind == STINT_CALL_PRODUCT;
	struct text what = {0}, choice = {0};
	size_t workspace = 0;
	const double from = doctor_ms();
	add_call(&what, &l->call);
	const int rc = product ? ask_product(x, l, m->gpu->tf32, &choice, &workspace)
			       : ask_convolution(x, l, m->gpu, &choice, &workspace);
	if (rc)
		doctor_say(x, FINDING_WRONG, NULL, "%s: %s: %s", s->name, what.s ? what.s : "",
			stint_gpu_message(x->g));
	else
		doctor_say(x, FINDING_OK, NULL,
			"%s: %s: %s, workspace %zu of %zu bytes, chosen in %.1f ms", s->name,
			what.s ? what.s : "", choice.s ? choice.s : "", workspace, l->workspace,
			doctor_ms() - from);
	text_free(&what);
	text_free(&choice);
}

static void parts(struct doctor *x, const struct doctor_step *s)
{
	struct doctor_words words;
	struct diag d = doctor_hear(&words);
	struct loaded l;
	int products = 0;
	if (load_model(x->arena, s->dir, &l, &d) != ST_OK)
		doctor_say(x, FINDING_WRONG, NULL, "%s: %s", s->name, words.text);
	else {
		kernels(x, s, l.model);
		for (int i = 0; i < l.model->nlib; i++) {
			const bool product = l.model->lib[i].call.kind == STINT_CALL_PRODUCT;
			products += product;
			if (x->device || !product)
				call(x, s, l.model, i);
		}
		if (!x->device && products)
			doctor_say(x, FINDING_NOTE, NULL,
				"%s: %d products: cuBLASLt chooses where there is a device",
				s->name, products);
	}
	load_close(&l);
}

/* --- The step --- */

static bool open_step(struct doctor *x, const struct doctor_step *s, struct bench *b, bool again)
{
	struct doctor_words words;
	struct diag d = doctor_hear(&words);
	struct stint_device_memory m;
	char what[96];
	if (bench_open(b, &d) != ST_OK) {
		doctor_say(x, FINDING_WRONG, words.hint[0] ? words.hint : NULL,
			"%s: does not open: %s", s->name, words.text);
		return false;
	}
	if (b->l.step->device->memory(b->l.step, "values", &m)) {
		doctor_say(x, FINDING_WRONG, NULL, "%s: %s", s->name, b->l.step->message);
		return false;
	}
	snprintf(what, sizeof what, "%s: opening%s", s->name,
		again ? " again, with choices and kernels kept," : "");
	times(x, what, &m);
	return true;
}

/* The step is so small that launches are most of it. */
static void time_step(struct doctor *x, const struct doctor_step *s, struct bench *b)
{
	enum { STEPS = 3 };
	static const double launch_us = 10;
	struct doctor_words words;
	struct diag d = doctor_hear(&words);
	struct text t = {0};
	if (bench_measure(b, STEPS, &d) != ST_OK) {
		doctor_say(x, FINDING_WRONG, words.hint[0] ? words.hint : NULL, "%s: not timed: %s",
			s->name, words.text);
		return;
	}
	const double most = b->all.roof_us + launch_us * b->t.nop;
	const bool slow = b->t.step_us > most;
	doctor_say(x, slow ? FINDING_SLOW : FINDING_OK,
		slow ? "is another program on the device, or the host busy? `stint bench` says "
		       "which kernels are slow"
		     : NULL,
		"%s: a step takes %.0f us, its %d kernels and calls %.0f us one by one, %.0f us at "
		"the roofline; most is launching (up to %.0f us)",
		s->name, b->t.step_us, b->t.nop, b->all.us, b->all.roof_us, most);
	const double copies = b->roof.level[b->roof.nlevel - 1].bytes_us * 1e6;
	const double promised = stint_gpu_facts_of(x->g)->bandwidth;
	const bool low = promised > 0 && copies < promised / 2;
	char made[64] = "";
	if (promised > 0)
		snprintf(made, sizeof made, "; its memory is made for %.0f", promised / 1e9);
	roof_bandwidths(&b->roof, &t);
	doctor_say(x, low ? FINDING_SLOW : FINDING_OK,
		low ? "is another program on the device? nvidia-smi shows it" : NULL,
		"%s: the device does %.4g TFLOP/s in products of %lld%s%s", s->name,
		b->roof.flops_us / 1e6, b->roof.product, t.s ? t.s : "", made);
	text_free(&t);
}

static void step(
	struct doctor *x, struct doctor_step *s, struct doctor_step *reference, double most)
{
	struct bench b = {.arena = x->arena}, again = {.arena = x->arena};
	if (!doctor_compile(x, s))
		return;
	b.dir = again.dir = s->dir;
	/* before anything else uses the libraries: what they load then is part of its time */
	const bool opened = x->device && open_step(x, s, &b, false);
	parts(x, s);
	if (opened) {
		if (doctor_compile(x, reference))
			doctor_compare(x, s, &b, reference, most);
		time_step(x, s, &b);
		load_close(&b.l);
		(void)open_step(x, s, &again, true);
	}
	load_close(&again.l);
	load_close(&b.l);
}

/* Of how many there was an attempt. */
static int steps(struct doctor *x, const char *only)
{
	int n = 0;
	/* How far gradients may be from the C target's, whose sums have another order: some 20
	 * roundings to the digits that are kept; of fp32 as much as in a long step. */
	static const struct {
		const char *precision, *c;
		double most;
	} list[] = {{"fp32", "fp32", 1e-4}, {"tf32", "fp32", 1e-2}, {"bf16", "bf16", 5e-2},
		{"fp16", "fp16", 1e-2}};
	char *cache = arena_printf(x->arena, "%s/cache", x->work);
	if (cache)
		setenv("STINT_CACHE", cache, 1); /* nothing is there yet: what opening costs */
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		if (only && strcmp(only, list[i].precision) != 0)
			continue;
		n++;
		if (interrupt_asked())
			break;
		struct doctor_step gpu = {.name = list[i].precision,
			.target = "cuda",
			.precision = list[i].precision};
		/* which needs nothing but a compiler */
		struct doctor_step c = {.name = "C target",
			.target = "c",
			.precision = list[i].c,
			.portable = true};
		doctor_title(x, arena_printf(x->arena, "A step in %s", list[i].precision));
		step(x, &gpu, &c, list[i].most);
	}
	return n;
}

/* --- All --- */

/* cuDNN loads libraries by their names: two of one kind in the process are a mixture. */
static void doubles(struct doctor *x)
{
	static const char *const kind[] = {
		"libcublasLt.so", "libcudnn.so", "libcudnn_graph.so", "libnvrtc.so", "libcuda.so"};
	enum { KINDS = sizeof kind / sizeof *kind };
	char row[4096], *first[KINDS] = {NULL};
	FILE *f = fopen("/proc/self/maps", "r");
	while (f && fgets(row, sizeof row, f)) {
		const char *path = strchr(row, '/');
		const char *base = path ? strrchr(path, '/') + 1 : "";
		row[strcspn(row, "\n")] = 0;
		for (int i = 0; i < KINDS; i++) {
			if (strncmp(base, kind[i], strlen(kind[i])) != 0)
				continue;
			if (!first[i])
				first[i] = arena_strdup(x->arena, path);
			else if (strcmp(first[i], path) != 0) {
				doctor_say(x, FINDING_WRONG,
					"put the folders of one CUDA into STINT_CUDA_LIBS",
					"two of one kind are loaded: %s and %s", first[i], path);
				break;
			}
		}
	}
	if (f)
		fclose(f);
}

int doctor_cuda(struct doctor *x, const char *only)
{
	if (stint_gpu_new(&x->g, NULL)) {
		doctor_say(x, FINDING_WRONG, NULL, "GPU: out of memory");
		stint_gpu_free(x->g);
		return 1;
	}
	(void)stint_gpu_cache(x->g, NULL); /* what is said is what the libraries say now */
	x->arch = ARCH_OF_PAPER;
	doctor_title(x, "GPU");
	kernel_module(x);
	settings(x);
	if (library(x, STINT_GPU_DRIVER))
		device(x);
	for (int i = STINT_GPU_NVRTC; i < STINT_GPU_LIBRARIES; i++)
		(void)library(x, (enum stint_gpu_library)i);
	mixture(x);
	if (!x->device && stint_gpu_paper(x->g, x->arch))
		doctor_say(x, FINDING_NOTE, NULL,
			"no device, and cuDNN cannot plan without one: %s",
			stint_gpu_message(x->g));
	const int n = steps(x, only);
	doubles(x);
	stint_gpu_free(x->g);
	x->g = NULL;
	return n;
}
