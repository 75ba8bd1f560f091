/* The heads of loops that all threads of a launch share. */
#include "ops/turns.h"

#include <inttypes.h>

void turns_emit(struct emit *e, int n, const struct emit_loop *loop)
{
	int64_t turns = 1, inner;
	for (int k = 0; k < n; k++)
		turns *= loop[k].end;
	emit(e, "\tfor (int64_t turn = THREAD; turn < %" PRId64 "; turn += THREADS) {\n", turns);
	/* a division of 32 bits is several times as fast */
	const char *turn = n > 1 && turns <= INT32_MAX ? "(uint32_t)turn" : "turn";
	inner = turns;
	for (int k = 0; k < n && turns > 0; k++) {
		inner /= loop[k].end;
		emit(e, "%s%s = %s", k ? ", " : "\t\tconst int64_t ", loop[k].variable, turn);
		if (inner > 1)
			emit(e, " / %" PRId64, inner);
		if (k > 0)
			emit(e, " %% %" PRId64, loop[k].end);
	}
	emit(e, n > 0 && turns > 0 ? ";\n" : "");
	const int64_t blocks = (turns + TURNS_THREADS - 1) / TURNS_THREADS;
	emit_launch(e, blocks > e->tasks ? blocks : e->tasks, TURNS_THREADS);
}
