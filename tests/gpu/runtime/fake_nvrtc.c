/* A stand-in for libnvrtc.so.13, for tests that are about something else and would wait for the
 * real one: what it makes of a text names its kernels, and that is all that the stand-in driver
 * asks of a cubin. It looks at no text: what the real one makes of it, other tests see. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/stint_gpu_api.h"

#define GPU_PROTOTYPE(type, name, parameters) type name parameters;
GPU_NVRTC(GPU_PROTOTYPE)

enum { ELF_HEADER = 64, ELF_SECTIONS_AT = 40, BAD_INPUT = 3, BAD_TEXT = 6 };

struct program {
	char *text;
	unsigned char *cubin;
	uint64_t bytes;
};

const char *nvrtcGetErrorString(int error)
{
	return error == 0 ? "no error" : error == BAD_TEXT ? "compilation" : "invalid input";
}

int nvrtcVersion(int *major, int *minor)
{
	*major = 13;
	*minor = 0;
	return 0;
}

int nvrtcCreateProgram(void **out, const char *text, const char *name, int nheader,
	const char *const *header, const char *const *include)
{
	struct program *p = calloc(1, sizeof *p);
	if (!name || nheader || header || include || !p || !(p->text = strdup(text))) {
		free(p);
		return BAD_INPUT;
	}
	*out = p;
	return 0;
}

int nvrtcDestroyProgram(void **program)
{
	struct program *p = *program;
	free(p->text);
	free(p->cubin);
	free(p);
	*program = NULL;
	return 0;
}

/* "extern "C" __global__ void __launch_bounds__(256) name(...": the name of each, with a zero. */
int nvrtcCompileProgram(void *program, int noption, const char *const *option)
{
	static const char start[] = "\nextern \"C\" __global__ void ";
	struct program *p = program;
	if (noption < 1 || strncmp(option[0], "--gpu-architecture=sm_", 22) != 0)
		return BAD_INPUT;
	p->cubin = calloc(1, ELF_HEADER + strlen(p->text) + 1);
	if (!p->cubin)
		return BAD_INPUT;
	p->bytes = ELF_HEADER;
	for (const char *at = p->text; (at = strstr(at, start));) {
		at += sizeof start - 1;
		const char *end = at + strcspn(at, "\n"), *name = end;
		while (name > at && *name != '(')
			name--; /* of the parameters, whose types have none */
		end = name;
		while (name > at && name[-1] != ' ')
			name--;
		memcpy(p->cubin + p->bytes, name, (size_t)(end - name));
		p->bytes += (uint64_t)(end - name) + 1;
	}
	memcpy(p->cubin, "\177ELF", 4);
	memcpy(p->cubin + ELF_SECTIONS_AT, &p->bytes, sizeof p->bytes);
	return 0;
}

int nvrtcGetCUBINSize(void *program, size_t *bytes)
{
	const struct program *p = program;
	*bytes = (size_t)p->bytes;
	return p->cubin ? 0 : BAD_INPUT;
}

int nvrtcGetCUBIN(void *program, char *cubin)
{
	const struct program *p = program;
	memcpy(cubin, p->cubin, (size_t)p->bytes);
	return 0;
}

int nvrtcGetProgramLogSize(void *program, size_t *bytes)
{
	*bytes = program ? 1 : 0;
	return 0;
}

int nvrtcGetProgramLog(void *program, char *log)
{
	log[0] = 0;
	return program ? 0 : BAD_INPUT;
}
