/* SPDX-License-Identifier: MIT-0 */
/* cuDNN's plans without a GPU, for compiling: nothing of it travels with a step. */
#ifndef STINT_GPU_PAPER_H
#define STINT_GPU_PAPER_H

#include "stint_gpu.h"

/* From now on stint_gpu_conv_new plans with g, which has opened no device, for one of architecture
 * `arch`; what it makes tells its workspace and engine, and cannot run. STINT_BAD_MACHINE: there is
 * no cuDNN, or none of 9.8 or later; STINT_BAD_DATA: of this architecture nothing is known. */
int stint_gpu_paper(stint_gpu *g, int arch);

#endif
