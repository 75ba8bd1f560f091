/* nvrtc_check [--library FILE] [--arch 80,90] TEXT.cu...: compiles kernels' text for devices and
 * holds what comes out against the devices' limits. Exit 0: all fit. 1: one does not compile or
 * fit. 2: usage. 77: no NVRTC.
 *
 * Kernels are declared on one line, extern "C" __global__ void __launch_bounds__(256) name(..., and
 * where a launch gives shared memory the text says so: a comment "dynamic shared: name 40960". */
#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/gpu/cubin.h"

enum { NO_NVRTC = 77, ARCHES = 16, NAME = 128 };

/* Shared memory that a block may have, in KiB: CUDA C++ Programming Guide, "Technical
 * Specifications per Compute Capability". Registers: 65536 to a block, given to warps in units of
 * 256. */
static const struct {
	int arch, shared;
} limits[] = {{80, 163}, {86, 99}, {87, 163}, {89, 99}, {90, 227}, {100, 227}, {120, 99}};
enum { REGISTERS = 65536 };

/* NVRTC's functions, as its header has them (nvrtc.h of CUDA 12 and 13). */
typedef struct nvrtc_program *program;
struct nvrtc {
	int (*version)(int *major, int *minor);
	int (*create)(program *p, const char *text, const char *name, int nheaders,
		const char *const *headers, const char *const *names);
	int (*compile)(program p, int n, const char *const *options);
	int (*log_size)(program p, size_t *size);
	int (*log)(program p, char *log);
	int (*cubin_size)(program p, size_t *size);
	int (*cubin)(program p, char *cubin);
	int (*destroy)(program *p);
};

static bool bind(struct nvrtc *n, void *library)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {{"nvrtcVersion", &n->version}, {"nvrtcCreateProgram", &n->create},
		{"nvrtcCompileProgram", &n->compile}, {"nvrtcGetProgramLogSize", &n->log_size},
		{"nvrtcGetProgramLog", &n->log}, {"nvrtcGetCUBINSize", &n->cubin_size},
		{"nvrtcGetCUBIN", &n->cubin}, {"nvrtcDestroyProgram", &n->destroy}};
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *f = library ? dlsym(library, functions[i].name) : NULL;
		if (!f)
			return false;
		memcpy(functions[i].to, &f, sizeof f);
	}
	return true;
}

/* The system's, the toolkit's, pip's. */
static bool find_nvrtc(struct nvrtc *n, const char *given)
{
	static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
	static const char *const places[] = {"/usr/local/cuda*/lib*/libnvrtc.so",
		"/usr/local/lib/python3*/*-packages/nvidia/*/lib/libnvrtc.so.*",
		"/usr/lib/python3*/*-packages/nvidia/*/lib/libnvrtc.so.*"};
	static const char *const homes[][2] = {
		{"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.*"},
		{"HOME", "/.local/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.*"}};
	if (given)
		return bind(n, dlopen(given, RTLD_NOW));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (bind(n, dlopen(names[i], RTLD_NOW)))
			return true;
	for (size_t i = 0; i < 5; i++) {
		char pattern[1024];
		glob_t found = {0};
		const char *home = i < 3 ? "" : getenv(homes[i - 3][0]);
		bool ok = false;
		if (!home)
			continue;
		snprintf(
			pattern, sizeof pattern, "%s%s", home, i < 3 ? places[i] : homes[i - 3][1]);
		if (glob(pattern, 0, NULL, &found) == 0)
			for (size_t k = 0; k < found.gl_pathc && !ok; k++)
				ok = bind(n, dlopen(found.gl_pathv[k], RTLD_NOW));
		globfree(&found);
		if (ok)
			return true;
	}
	return false;
}

struct kernel {
	char name[NAME];
	int threads, dynamic; /* from the text */
	int registers, shared, stack, spill_stores,
		spill_loads; /* from the log; registers -1: none */
	int instructions;    /* of the machine code */
};

static struct kernel *find_kernel(struct kernel *k, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(k[i].name, name) == 0)
			return &k[i];
	return NULL;
}

static const char *next_line(const char *s)
{
	const char *end = strchr(s, '\n');
	return end ? end + 1 : s + strlen(s);
}

/* Kernels of a text, at most `max`; -1: one without its launch bounds. */
static int read_text(const char *text, struct kernel *k, int max)
{
	static const char start[] = "extern \"C\" __global__";
	int n = 0;
	for (const char *line = text; *line; line = next_line(line)) {
		if (strncmp(line, start, sizeof start - 1) != 0)
			continue;
		const char *rest = line + sizeof start - 1;
		struct kernel *to = &k[n];
		if (n == max ||
			(sscanf(rest, " void __launch_bounds__(%d) %127[A-Za-z0-9_](", &to->threads,
				 to->name) != 2 &&
				sscanf(rest, " void __launch_bounds__(%d, %*d) %127[A-Za-z0-9_](",
					&to->threads, to->name) != 2)) {
			printf("no launch bounds: %.*s\n", (int)strcspn(line, "\n"), line);
			return -1;
		}
		n++;
	}
	for (const char *s = text; (s = strstr(s, "dynamic shared: ")); s++) {
		char name[NAME];
		int bytes;
		struct kernel *to;
		if (sscanf(s, "dynamic shared: %127[A-Za-z0-9_] %d", name, &bytes) == 2 &&
			(to = find_kernel(k, n, name)))
			to->dynamic = bytes;
	}
	return n;
}

/* What ptxas says with -v. */
static void read_log(const char *log, struct kernel *k, int n)
{
	struct kernel *at = NULL;
	for (const char *line = log; *line; line = next_line(line)) {
		char name[NAME];
		const char *found = strstr(line, "Compiling entry function '");
		const char *end = next_line(line), *s;
		if (found && found < end &&
			sscanf(found, "Compiling entry function '%127[^']'", name) == 1)
			at = find_kernel(k, n, name);
		if (!at)
			continue;
		if ((s = strstr(line, "bytes stack frame")) && s < end)
			sscanf(line,
				"%*[^0-9]%d bytes stack frame, %d bytes spill stores, %d bytes "
				"spill loads",
				&at->stack, &at->spill_stores, &at->spill_loads);
		if ((s = strstr(line, "Used ")) && s < end) {
			sscanf(s, "Used %d registers", &at->registers);
			const char *shared = strstr(s, " bytes smem");
			while (shared && shared > s && shared < end && shared[-1] >= '0' &&
				shared[-1] <= '9')
				shared--;
			if (shared && shared < end)
				at->shared = atoi(shared);
		}
	}
}

static int shared_limit(int arch)
{
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		if (limits[i].arch == arch)
			return limits[i].shared * 1024;
	return 0;
}

static bool fits(const struct kernel *k, int arch)
{
	const int warps = (k->threads + 31) / 32, of_warp = (k->registers * 32 + 255) / 256 * 256;
	const int shared = k->shared + k->dynamic;
	const bool registers = k->registers > 0 && warps * of_warp <= REGISTERS;
	const bool memory = shared <= shared_limit(arch) && k->shared <= 48 * 1024;
	printf("sm_%-4d %-32s %7d %9d %10d %8d %7d %7d %7d %7d%s%s\n", arch, k->name, k->threads,
		k->registers, warps * of_warp, shared, k->stack, k->spill_stores, k->spill_loads,
		k->instructions, registers ? "" : "  TOO MANY REGISTERS",
		memory ? "" : "  TOO MUCH SHARED MEMORY");
	return registers && memory;
}

struct kernels {
	struct kernel *kernel;
	int n;
};

static void note_instructions(void *user, const char *name, size_t instructions)
{
	const struct kernels *all = user;
	struct kernel *k = find_kernel(all->kernel, all->n, name);
	if (k)
		k->instructions = (int)instructions;
}

/* The machine code, of so many bytes. */
static bool read_cubin(const struct nvrtc *n, program p, size_t bytes, struct kernels *all)
{
	char *cubin = malloc(bytes);
	const bool ok = cubin && n->cubin(p, cubin) == 0 &&
			cubin_read(cubin, bytes, note_instructions, all) == 0;
	free(cubin);
	return ok;
}

/* NULL: out of memory or NVRTC's failure; *ok: it compiled. */
static char *compile(const struct nvrtc *n, const char *text, const char *path, int arch,
	struct kernels *all, bool *ok)
{
	char architecture[64];
	const char *options[] = {architecture, "--fmad=false", "--std=c++20",
		"--device-as-default-execution-space", "--ptxas-options=-v"};
	program p;
	size_t size = 0, cubin = 0;
	char *log = NULL;
	snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d", arch);
	if (n->create(&p, text, path, 0, NULL, NULL) != 0)
		return NULL;
	*ok = n->compile(p, sizeof options / sizeof *options, options) == 0 &&
	      n->cubin_size(p, &cubin) == 0 && cubin > 0 && read_cubin(n, p, cubin, all);
	if (n->log_size(p, &size) == 0 && (log = calloc(1, size + 1)))
		n->log(p, log);
	n->destroy(&p);
	return log;
}

enum { KERNELS = 4096 };

static bool check_text(const struct nvrtc *n, const char *path, const int *arch, int narch)
{
	struct arena *a = arena_new();
	struct diag d = {.put = NULL};
	struct kernel *k = a ? ARENA_ARRAY(a, struct kernel, KERNELS) : NULL;
	char *text;
	size_t size;
	bool good = k && file_read(a, path, &text, &size, &d) == ST_OK;
	const int count = good ? read_text(text, k, KERNELS) : 0;
	if (!good || count <= 0)
		printf("%s: %s\n", path, good ? "no kernels" : "cannot be read");
	good = good && count > 0;
	for (int i = 0; i < narch && count > 0; i++) {
		bool ok = false;
		for (int j = 0; j < count; j++) {
			k[j].registers = -1;
			k[j].shared = k[j].stack = k[j].spill_stores = k[j].spill_loads = 0;
			k[j].instructions = 0;
		}
		char *log = compile(n, text, path, arch[i], &(struct kernels){k, count}, &ok);
		if (!ok)
			printf("%s: sm_%d: it does not compile\n%s\n", path, arch[i],
				log ? log : "");
		else if (log)
			read_log(log, k, count);
		good = good && ok && log;
		for (int j = 0; ok && j < count; j++)
			good = fits(&k[j], arch[i]) && good;
		free(log);
	}
	arena_free(a);
	return good;
}

/* "80,90"; 0: a number that is not known. */
static int read_arches(const char *s, int *arch)
{
	int n = 0;
	while (*s && n < ARCHES) {
		char *end;
		arch[n] = (int)strtol(s, &end, 10);
		if (end == s || !shared_limit(arch[n]) || (*end && *end != ','))
			return 0;
		n++;
		s = *end ? end + 1 : end;
	}
	return n;
}

int main(int argc, char **argv)
{
	struct nvrtc n;
	const char *library = NULL, *arches = "80,86,89,90,100,120";
	int arch[ARCHES], major = 0, minor = 0, i = 1;
	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (strcmp(argv[i], "--library") == 0)
			library = argv[i + 1];
		else if (strcmp(argv[i], "--arch") == 0)
			arches = argv[i + 1];
		else
			break;
	}
	const int narch = read_arches(arches, arch);
	if (i >= argc || argv[i][0] == '-' || !narch) {
		fprintf(stderr, "nvrtc_check [--library FILE] [--arch 80,90] TEXT.cu...\n");
		return 2;
	}
	if (!find_nvrtc(&n, library)) {
		fprintf(stderr, "no NVRTC found (the CUDA toolkit has it, or pip install "
				"nvidia-cuda-nvrtc; or --library FILE)\n");
		return NO_NVRTC;
	}
	n.version(&major, &minor);
	printf("NVRTC %d.%d\n%-7s %-32s %7s %9s %10s %8s %7s %7s %7s %7s\n", major, minor, "arch",
		"kernel", "threads", "registers", "x threads", "shared", "stack", "stores", "loads",
		"instrs");
	bool good = true;
	for (; i < argc; i++)
		good = check_text(&n, argv[i], arch, narch) && good;
	return good ? 0 : 1;
}
