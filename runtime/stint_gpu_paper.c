/* SPDX-License-Identifier: MIT-0 */
/* A device that is not there: cuDNN plans from its properties. What it refuses, and the workspace
 * of what it takes, is so known where a step is compiled. */
#include "stint_gpu_paper.h"

#include <stdio.h>
#include <string.h>

#include "stint_gpu_api.h"

enum { CUDNN_OF_PAPER = 90800 }; /* the first that plans so */

/* Of one card of each architecture: its multiprocessors, shared memory that a block may ask for,
 * threads and blocks of a multiprocessor, L2 (CUDA C++ Programming Guide, "Compute Capabilities",
 * and the cards' data sheets: A100, RTX 3090, RTX 4090, H100, B200, RTX 5090). Heuristics look at
 * these; what an engine can do is decided by the architecture. */
static const struct paper {
	int arch, multiprocessors, shared, threads, blocks, l2_mib;
	const char *name;
} papers[] = {{80, 108, 166912, 2048, 32, 40, "A100"}, {86, 82, 101376, 1536, 16, 6, "RTX3090"},
	{89, 128, 101376, 1536, 24, 72, "RTX4090"},
	{90, 132, 232448, 2048, 32, 50, "NVIDIAH10080GBHBM3"},
	{100, 148, 232448, 2048, 32, 126, "B200"}, {120, 170, 101376, 1536, 24, 96, "RTX5090"}};

static int text_of(const struct paper *p, char *out, size_t room)
{
	const int n = snprintf(out, room,
		"{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
		"\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"smCountOrigin\":0,"
		"\"warpSize\":32,"
		"\"cudaDeviceId\":0,\"deviceId\":0,\"deviceVer\":%d,\"driverVer\":13000,"
		"\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,\"l2CacheSize\":%d,"
		"\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
		"\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
		"\"pciDeviceId\":9008,\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,"
		"\"maxThreadsPerSM\":%d,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
		"\"totalGlobalMem\":85014151168,\"oversizedSharedMemoryPerBlock\":0,"
		"\"deviceName\":\"%s\"}",
		p->multiprocessors, 10 * p->arch, p->l2_mib << 20, p->shared, p->blocks, p->threads,
		p->name);
	return n > 0 && (size_t)n < room ? n : 0;
}

int stint_gpu_paper(stint_gpu *g, int arch)
{
	char text[1024];
	const struct paper *p = NULL;
	for (size_t i = 0; i < sizeof papers / sizeof *papers; i++)
		if (papers[i].arch == arch)
			p = &papers[i];
	const int n = p ? text_of(p, text, sizeof text) : 0;
	if (!n || g->open || g->dnn_paper)
		return stint_gpu_fail(g, STINT_BAD_DATA, "no device on paper for sm_%d", arch);
	const int rc = stint_gpu_need_cudnn(g);
	if (rc)
		return rc;
	if (g->library[STINT_GPU_CUDNN].version < CUDNN_OF_PAPER)
		return stint_gpu_fail(g, STINT_BAD_MACHINE,
			"cuDNN before 9.8 plans for a device that is there only");
	int status = g->dnn.cudnnBackendCreateDescriptor(GPU_DNN_DEVICE, &g->dnn_paper);
	if (status)
		g->dnn_paper = NULL;
	if (!status)
		status = g->dnn.cudnnBackendSetAttribute(
			g->dnn_paper, GPU_DNN_DEVICE_JSON, GPU_DNN_T_CHAR, n + 1, text);
	if (!status)
		status = g->dnn.cudnnBackendFinalize(g->dnn_paper);
	char more[256];
	return status ? stint_gpu_fail(g, STINT_BAD_MACHINE, "cuDNN: a device on paper: %s%s",
				g->dnn.cudnnGetErrorString(status), stint_gpu_cudnn_more(g, more))
		      : STINT_OK;
}
