/* Loops that all threads of a launch share, in CUDA texts of operators' own. Private to ops/. */
#ifndef STINT_OPS_TURNS_H
#define STINT_OPS_TURNS_H

#include "codegen/emit.h"

enum { TURNS_THREADS = 256 };

/* "	for (int64_t turn = THREAD; turn < 96; turn += THREADS) {" and, a tab deeper, the names of
 * the loops that its turns stand for, the last of which changes fastest: "const int64_t b = turn /
 * 12, i = turn % 12;". The launch has a thread for each turn. A body may have several such loops,
 * none of which reads or writes what another writes: no thread waits. */
void turns_emit(struct emit *e, int n, const struct emit_loop *loop);

#endif
