#include "planner/problem/roofline.h"

#include <stddef.h>

/* Two cores of a 2023 server (AVX-512, 1 MiB of L2 each, 32 MiB of L3 shared), fitted on the
 * examples, most operators within a factor of two (tests/bench/costs.sh,
 * docs/howto/plan-with-measured-costs.md): products at 150 GFLOP/s, in bf16 twice that; 80 GB/s is
 * L3's, memory has half of it. */
static const struct roofline cpu = {150e3, 300e3, 40e3, 40e3, 80e3, 0.5, 0, false};

/* GPUs: 0.7 of the peak of products, 0.85 of the bandwidth, of the largest card of an architecture
 * as NVIDIA's data sheets have them (A100 80 GB, RTX 3090, RTX 4090, H200, B200, RTX 5090; dense,
 * fp32 accumulation); generated kernels at a quarter of the fp32 peak, as they do not contract. An
 * H200's products and bytes were found so (docs/benchmarks.md). Generated products of 16 bits
 * (attention) by what was measured there, 150 TFLOP/s; elsewhere as much for each multiprocessor
 * and cycle, and no more than 0.7 of the peak. Copies: 16 lanes of PCI Express 4.0 or 5.0 at 16 or
 * 32 GT/s, less the 128b/130b code 31.5 or 63 GB/s in a direction (PCI Express Base Specification,
 * 4.2.2), of which packets' heads leave about 0.8: not measured. */
#define GPU(fp32, narrow, own, bandwidth, link)                                                    \
	{                                                                                          \
		0.7e6 * (fp32), 0.7e6 * (narrow), 1e6 * (own), 0.25e6 * (fp32),                    \
			0.85e3 * (bandwidth), 2, 0.8e3 * (link), true                              \
	}
static const struct {
	int arch;
	struct roofline roofline;
} gpu[] = {{80, GPU(19.5, 312, 99, 2039, 31.5)}, {86, GPU(35.6, 71, 50, 936, 31.5)},
	{89, GPU(82.6, 165, 115, 1008, 31.5)}, {90, GPU(67, 989, 150, 4800, 63)},
	{100, GPU(75, 2250, 180, 8000, 63)}, {120, GPU(104.8, 209.5, 147, 1792, 63)}};

const struct roofline *roofline_of(int arch)
{
	if (arch == 0)
		return &cpu;
	for (size_t i = 0; i < sizeof gpu / sizeof *gpu; i++)
		if (gpu[i].arch == arch)
			return &gpu[i].roofline;
	return NULL;
}
