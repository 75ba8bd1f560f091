/* SPDX-License-Identifier: MIT-0 */
/* From text to cubin, by NVRTC or from the cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "stint_gpu_api.h"

enum { MAX_OPTIONS = 32 };

const char *stint_gpu_log(const stint_gpu *g)
{
	return g->log ? g->log : "";
}

void stint_gpu_code_free(struct stint_gpu_code *code)
{
	free(code->data);
	code->data = NULL;
	code->bytes = 0;
}

static int known(int arch)
{
	return arch > 0 && arch == stint_gpu_arch(arch / 10, arch % 10);
}

/* All options as NVRTC takes them. 0, or -1: too many. */
static int options_list(
	const char *arch, const char *const *option, int noption, const char *list[MAX_OPTIONS])
{
	int n = 0;
	list[n++] = arch;
	list[n++] = "--fmad=false";
	list[n++] = "--std=c++20";
	if (noption < 0 || noption > MAX_OPTIONS - n)
		return -1;
	for (int i = 0; i < noption; i++)
		list[n++] = option[i];
	return n;
}

/* What the cubin depends on. The library's size tells updates apart that share a version number. */
static void key_make(const stint_gpu *g, const char *text, const char *const *list, int n,
	unsigned char key[STINT_SHA])
{
	struct stint_sha s;
	struct stat st;
	char version[64];
	const char *path = g->library[STINT_GPU_NVRTC].path;
	snprintf(version, sizeof version, "cubin nvrtc %d %lld",
		g->library[STINT_GPU_NVRTC].version,
		stat(path, &st) ? -1LL : (long long)st.st_size);
	stint_sha_start(&s);
	stint_cache_field(&s, version, strlen(version));
	for (int i = 0; i < n; i++)
		stint_cache_field(&s, list[i], strlen(list[i]));
	stint_cache_field(&s, text, strlen(text));
	stint_sha_end(&s, key);
}

static int rtc_check(stint_gpu *g, int result)
{
	if (!result)
		return STINT_OK;
	return stint_gpu_fail(g,
		result == GPU_RTC_OUT_OF_MEMORY ? STINT_NO_MEMORY : STINT_BAD_MACHINE, "NVRTC: %s",
		g->rtc.nvrtcGetErrorString(result));
}

static void log_keep(stint_gpu *g, void *program)
{
	size_t bytes = 0;
	free(g->log);
	g->log = NULL;
	if (g->rtc.nvrtcGetProgramLogSize(program, &bytes) || bytes <= 1)
		return;
	g->log = calloc(bytes + 1, 1);
	if (g->log && g->rtc.nvrtcGetProgramLog(program, g->log))
		g->log[0] = 0;
}

/* The message names the first line of the log, which tells most. */
static int compile_failed(stint_gpu *g, int result, const char *arch)
{
	const char *log = stint_gpu_log(g);
	const int version = g->library[STINT_GPU_NVRTC].version;
	if (result == GPU_RTC_BAD_TEXT)
		return stint_gpu_fail(g, STINT_BAD_DATA, "a kernel's text does not compile: %.*s",
			(int)strcspn(log, "\n"), log);
	if (result == GPU_RTC_BAD_OPTION)
		return stint_gpu_fail(g, STINT_BAD_MACHINE,
			"NVRTC %d.%d does not take %s, or another option: %.*s", version / 1000,
			version % 1000 / 10, arch, (int)strcspn(log, "\n"), log);
	return rtc_check(g, result);
}

static int program_cubin(stint_gpu *g, void *program, struct stint_gpu_code *out)
{
	size_t bytes = 0;
	int rc = rtc_check(g, g->rtc.nvrtcGetCUBINSize(program, &bytes));
	if (rc)
		return rc;
	out->data = malloc(bytes ? bytes : 1);
	if (!out->data)
		return stint_gpu_fail(g, STINT_NO_MEMORY, "out of memory");
	out->bytes = bytes;
	rc = rtc_check(g, g->rtc.nvrtcGetCUBIN(program, out->data));
	if (rc)
		stint_gpu_code_free(out);
	return rc;
}

static int compile(
	stint_gpu *g, const char *text, const char *const *list, int n, struct stint_gpu_code *out)
{
	void *program = NULL;
	int rc = rtc_check(g, g->rtc.nvrtcCreateProgram(&program, text, "step.cu", 0, NULL, NULL));
	if (rc)
		return rc;
	const int result = g->rtc.nvrtcCompileProgram(program, n, list);
	log_keep(g, program);
	rc = result ? compile_failed(g, result, list[0]) : program_cubin(g, program, out);
	g->rtc.nvrtcDestroyProgram(&program);
	return rc;
}

int stint_gpu_compile(stint_gpu *g, const char *text, int arch, const char *const *option,
	int noption, struct stint_gpu_code *out)
{
	char name[40];
	const char *list[MAX_OPTIONS];
	unsigned char key[STINT_SHA];
	struct stint_gpu_code code = {NULL, 0, 0};
	if (!arch && g->open)
		arch = g->facts.arch;
	if (!known(arch))
		return stint_gpu_fail(g, STINT_BAD_DATA, "there is no code for sm_%d", arch);
	snprintf(name, sizeof name, "--gpu-architecture=sm_%d", arch);
	const int n = options_list(name, option, noption, list);
	if (n < 0)
		return stint_gpu_fail(g, STINT_BAD_DATA, "too many options for the compiler");
	int rc = stint_gpu_need(g, STINT_GPU_NVRTC);
	if (rc)
		return rc;
	free(g->log);
	g->log = NULL;
	key_make(g, text, list, n, key);
	code.data = stint_cache_read(g->cache, key, &code.bytes);
	code.cached = code.data != NULL;
	if (!code.data) {
		rc = compile(g, text, list, n, &code);
		if (rc)
			return rc;
		stint_cache_write(g->cache, key, code.data, code.bytes);
	}
	stint_gpu_time_note(g, "NVRTC");
	*out = code;
	return STINT_OK;
}
