/* SPDX-License-Identifier: MIT-0 */
/* Every kernel of kernels/, compiled as a step compiles it, under all warnings; CMakeLists.txt does
 * so for each type that a step may have. */
enum { STINT_THREADS = 2 };

#include "accumulate.h"
#include "activation.h"
#include "adafactor.h"
#include "adam_mini.h"
#include "batchnorm.h"
#include "box.h"
#include "branch.h"
#include "coded.h"
#include "col2im.h"
#include "conv.h"
#include "conv_depth.h"
#include "conv_direct.h"
#include "conv_forward.h"
#include "conv_grad_w.h"
#include "conv_grad_x.h"
#include "conv_plain.h"
#include "conv_pointwise.h"
#include "countedlabels.h"
#include "ctc.h"
#include "ema.h"
#include "fill_whole.h"
#include "gather_grad.h"
#include "gemm.h"
#include "gradients.h"
#include "grid_sample.h"
#include "hardmax.h"
#include "join.h"
#include "keep.h"
#include "lanes.h"
#include "lengths.h"
#include "lerp.h"
#include "loop_run.h"
#include "loss.h"
#include "lrn_window.h"
#include "math.h"
#include "matmul.h"
#ifndef STINT_BARE
#include "matmul_stored.h"
#endif
#include "matvec.h"
#include "muon.h"
#include "nan.h"
#include "narrow.h"
#include "nll.h"
#include "norm_parts.h"
#include "philox.h"
#include "random.h"
#include "recurrent.h"
#include "recurrent_grad.h"
#include "recurrent_parts.h"
#include "reduction.h"
#include "resample_terms.h"
#include "roi_align.h"
#include "roll_box.h"
#include "row_mask.h"
#include "shard_count.h"
#include "squares.h"
#include "stored.h"
#include "turns.h"
#include "update.h"
#include "walk.h"
#include "window.h"

#define X real
#define Y real
#define Z real
#define W real
#define V real
#define NAMED(f) f
#include "templates.h"
#undef X
#undef Y
#undef Z
#undef W
#undef V
#undef NAMED

#define X narrow
#define Y narrow
#define Z narrow
#define W narrow
#define V narrow
#define NAMED(f) f##_narrow
#include "templates.h"
#undef X
#undef Y
#undef Z
#undef W
#undef V
#undef NAMED

#define X narrow
#define Y real
#define Z real
#define W real
#define V real
#define NAMED(f) f##_mixed
#include "templates.h"
