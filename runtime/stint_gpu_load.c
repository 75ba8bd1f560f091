/* SPDX-License-Identifier: MIT-0 */
/* Libraries loaded while the program runs, and what every call goes through. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dlinfo */
#endif
#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "stint_gpu_api.h"

/* --- Messages --- */

int stint_gpu_fail(stint_gpu *g, int code, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(g->message, sizeof g->message, format, list);
	va_end(list);
	return code;
}

const char *stint_gpu_message(const stint_gpu *g)
{
	return g->message;
}

int stint_gpu_check(stint_gpu *g, int result, const char *what)
{
	if (!result)
		return STINT_OK;
	const char *name = NULL, *text = NULL;
	g->cu.cuGetErrorName(result, &name);
	g->cu.cuGetErrorString(result, &text);
	return stint_gpu_fail(g,
		result == GPU_CU_OUT_OF_MEMORY ? STINT_NO_MEMORY : STINT_BAD_MACHINE, "%s: %s (%s)",
		what, text ? text : "unknown error", name ? name : "?");
}

int stint_gpu_enter(stint_gpu *g)
{
	if (!g->open)
		return stint_gpu_fail(g, STINT_NO_DEVICE, "no CUDA device: none was opened");
	return stint_gpu_check(g, g->cu.cuCtxPushCurrent_v2(g->context), "the device's context");
}

int stint_gpu_leave(stint_gpu *g, int rc)
{
	void *context;
	g->cu.cuCtxPopCurrent_v2(&context);
	return rc;
}

void **stint_gpu_grow(void ***list, int *count)
{
	void **grown = realloc(*list, ((size_t)*count + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	*list = grown;
	grown[*count] = NULL;
	return &grown[(*count)++];
}

/* --- One library --- */

/* A data pointer's bits as a function's; POSIX has them alike, C has no cast for it. */
static int find(void *handle, const char *name, void *function)
{
	void *p = dlsym(handle, name);
	memcpy(function, &p, sizeof p);
	return p != NULL;
}

#define FIND(type, name, parameters)                                                               \
	if (!find(handle, #name, &api->name))                                                      \
		return #name;
#define FIND_IF_ANY(type, name, parameters) (void)find(handle, #name, &api->name);

/* Each returns the name of a function that is missing, or NULL. */
static const char *driver_bind(stint_gpu *g, void *handle, int *version)
{
	struct gpu_driver *api = &g->cu;
	GPU_DRIVER(FIND)
	GPU_DRIVER_NEWER(FIND_IF_ANY)
	if (api->cuDriverGetVersion(version))
		*version = 0;
	return NULL;
}

static const char *nvrtc_bind(stint_gpu *g, void *handle, int *version)
{
	struct gpu_nvrtc *api = &g->rtc;
	GPU_NVRTC(FIND)
	int major = 0, minor = 0;
	if (!api->nvrtcVersion(&major, &minor))
		*version = 1000 * major + 10 * minor;
	return NULL;
}

static const char *cublaslt_bind(stint_gpu *g, void *handle, int *version)
{
	struct gpu_cublaslt *api = &g->lt;
	GPU_CUBLASLT(FIND)
	*version = (int)api->cublasLtGetVersion();
	return NULL;
}

static const char *cudnn_bind(stint_gpu *g, void *handle, int *version)
{
	struct gpu_cudnn *api = &g->dnn;
	GPU_CUDNN(FIND)
	GPU_CUDNN_NEWER(FIND_IF_ANY)
	*version = (int)api->cudnnGetVersion();
	return NULL;
}

static const char *nccl_bind(stint_gpu *g, void *handle, int *version)
{
	struct gpu_nccl *api = &g->nccl;
	GPU_NCCL(FIND)
	if (api->ncclGetVersion(version))
		*version = 0;
	return NULL;
}

struct kind {
	const char *name, *install;
	const char *const soname[3]; /* through the system's search path, best first */
	int follows_driver;          /* its major version is CUDA's, which the driver must know */
	const char *(*bind)(stint_gpu *g, void *handle, int *version);
};

static const struct kind kinds[STINT_GPU_LIBRARIES] = {
	{"libcuda.so.1", "install NVIDIA's driver", {"libcuda.so.1"}, 0, driver_bind},
	{"libnvrtc", "install the CUDA toolkit, or: pip install nvidia-cuda-nvrtc",
		{"libnvrtc.so.13", "libnvrtc.so.12"}, 1, nvrtc_bind},
	{"libcublasLt", "install the CUDA toolkit, or: pip install nvidia-cublas",
		{"libcublasLt.so.13", "libcublasLt.so.12"}, 1, cublaslt_bind},
	{"libcudnn", "install cuDNN 9, or: pip install nvidia-cudnn-cu13", {"libcudnn.so.9"}, 0,
		cudnn_bind},
	{"libnccl", "install NCCL 2, or: pip install nvidia-nccl-cu13", {"libnccl.so.2"}, 0,
		nccl_bind},
};

/* What was tried and why it would not do; the beginning is kept. */
struct tried {
	char text[512];
	size_t used;
};

static void tried_add(struct tried *t, const char *path, const char *why)
{
	const int n = snprintf(t->text + t->used, sizeof t->text - t->used, "%s%s: %s",
		t->used ? "; " : "", path, why);
	if (n > 0)
		t->used += (size_t)n;
	if (t->used >= sizeof t->text)
		t->used = sizeof t->text - 1;
}

/* The major version in a path's ".so.13", or 0. */
static int major_of(const char *path)
{
	const char *base = strrchr(path, '/');
	const char *so = strstr(base ? base : path, ".so.");
	return so ? atoi(so + 4) : 0;
}

static char *path_of(void *handle, const char *asked)
{
	struct link_map *map = NULL;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map || !map->l_name[0])
		return strdup(asked);
	return strdup(map->l_name);
}

/* --- cuDNN of CUDA 12 and of CUDA 13 has one name --- */

/* Whether no other cuDNN is in the places where one is looked for. */
static int only_one(const stint_gpu *g, const char *path)
{
	struct stat mine, other;
	const int known = !stat(path, &mine);
	int only = 1;
	for (int where = 0; only && where <= 2; where++) {
		char *places = stint_gpu_places(g, STINT_GPU_CUDNN, where);
		for (char *p = places; p && *p && only; p += strlen(p) + 1)
			only = known && !stat(p, &other) && mine.st_dev == other.st_dev &&
			       mine.st_ino == other.st_ino;
		free(places);
	}
	return only;
}

/* The CUDA that it was made for; 0: not known. Asked apart from all else that is loaded: its parts
 * have one name too, and those that are loaded first are everyone's. */
static int cuda_of_cudnn(const char *path)
{
	int major = 0;
#ifdef LM_ID_NEWLM
	size_t (*version)(void) = NULL;
	void *handle = dlmopen(LM_ID_NEWLM, path, RTLD_LAZY | RTLD_LOCAL);
	if (handle && find(handle, "cudnnGetCudartVersion", &version))
		major = (int)(version() / 1000);
	if (handle)
		dlclose(handle);
#else
	(void)path;
#endif
	return major;
}

/* A cuDNN for the CUDA that cuBLASLt is of. Where one is loaded already, it is what all get. */
static int goes_together(stint_gpu *g, const char *path, struct tried *t)
{
	char why[96];
	const int cuda = g->library[STINT_GPU_CUBLASLT].version / 10000;
	void *loaded = cuda ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	if (loaded)
		dlclose(loaded);
	if (!cuda || loaded || only_one(g, path))
		return 1;
	const int its = cuda_of_cudnn(path);
	if (!its || its == cuda)
		return 1;
	snprintf(why, sizeof why, "is for CUDA %d, and cuBLASLt is of CUDA %d", its, cuda);
	tried_add(t, path, why);
	return 0;
}

/* 1: loaded. */
static int try_path(stint_gpu *g, enum stint_gpu_library library, const char *path, struct tried *t)
{
	const struct kind *k = &kinds[library];
	struct gpu_loaded *l = &g->library[library];
	char why[96];
	if (k->follows_driver && g->open && major_of(path) > g->facts.driver / 1000) {
		snprintf(why, sizeof why, "newer than the driver, which knows CUDA %d.%d",
			g->facts.driver / 1000, g->facts.driver % 1000 / 10);
		tried_add(t, path, why);
		return 0;
	}
	void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!handle) {
		const char *error = dlerror();
		/* the loader says "PATH: reason" */
		const size_t n = strlen(path);
		if (error && !strncmp(error, path, n) && error[n] == ':')
			error += n + 2;
		tried_add(t, path, error ? error : "cannot be loaded");
		return 0;
	}
	int version = 0;
	const char *missing = k->bind(g, handle, &version);
	char *found = missing ? NULL : path_of(handle, path);
	if (!found) {
		snprintf(why, sizeof why, "has no %s, too old", missing ? missing : "memory");
		tried_add(t, path, why);
		dlclose(handle);
		return 0;
	}
	l->handle = handle;
	l->path = found;
	l->version = version;
	return 1;
}

static int try_places(
	stint_gpu *g, enum stint_gpu_library library, int where, int any, struct tried *t)
{
	char *places = stint_gpu_places(g, library, where);
	int done = 0;
	for (char *p = places; p && *p && !done; p += strlen(p) + 1)
		done = (any || goes_together(g, p, t)) && try_path(g, library, p, t);
	free(places);
	return done;
}

static int try_all(stint_gpu *g, enum stint_gpu_library library, int any, struct tried *t)
{
	const struct kind *k = &kinds[library];
	int done = try_places(g, library, 0, any, t);
	for (int i = 0; !done && i < 3 && k->soname[i]; i++)
		done = (any || goes_together(g, k->soname[i], t)) &&
		       try_path(g, library, k->soname[i], t);
	for (int where = 1; !done && where <= 2; where++)
		done = try_places(g, library, where, any, t);
	return done;
}

int stint_gpu_need(stint_gpu *g, enum stint_gpu_library library)
{
	const struct kind *k = &kinds[library];
	struct tried t = {{0}, 0};
	if (g->library[library].handle)
		return STINT_OK;
	int done = try_all(g, library, library != STINT_GPU_CUDNN, &t);
	if (!done && library == STINT_GPU_CUDNN) { /* better one that does not fit than none */
		t = (struct tried){{0}, 0};
		done = try_all(g, library, 1, &t);
	}
	if (done)
		return STINT_OK;
	if (library == STINT_GPU_DRIVER)
		return stint_gpu_fail(g, STINT_NO_DEVICE,
			"no CUDA device: %s was not found (%s): %s", k->name, t.text, k->install);
	return stint_gpu_fail(g, STINT_BAD_MACHINE,
		"%s was not found in the folders given (STINT_CUDA_LIBS), on the system or among "
		"pip's packages: %s (%s)",
		k->name, k->install, t.text);
}

const char *stint_gpu_library_path(const stint_gpu *g, enum stint_gpu_library library)
{
	return g->library[library].path ? g->library[library].path : "";
}

int stint_gpu_library_version(const stint_gpu *g, enum stint_gpu_library library)
{
	return g->library[library].version;
}

void *stint_gpu_symbol(const stint_gpu *g, enum stint_gpu_library library, const char *name)
{
	void *handle = g->library[library].handle;
	return handle ? dlsym(handle, name) : NULL;
}
