/* SPDX-License-Identifier: MIT-0 */
/* Order among streams, for copies that run beside the main stream's work. */
#include "stint_gpu_api.h"

int stint_gpu_marks(stint_gpu *g, int n)
{
	const int first = g->marks;
	g->marks += n;
	return first;
}

/* One event a stream will do: a wait is for the record before it, whatever is recorded later. */
int stint_gpu_behind(stint_gpu *g, int stream, int of)
{
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	if (!g->turn[of]) {
		rc = stint_gpu_check(
			g, g->cu.cuEventCreate(&g->turn[of], GPU_CU_EVENT_UNTIMED), "an event");
		if (rc)
			g->turn[of] = NULL;
	}
	if (!rc)
		rc = stint_gpu_check(
			g, g->cu.cuEventRecord(g->turn[of], g->stream[of]), "an event");
	if (!rc)
		rc = stint_gpu_check(g, g->cu.cuStreamWaitEvent(g->stream[stream], g->turn[of], 0),
			"waiting for another stream");
	return stint_gpu_leave(g, rc);
}

int stint_gpu_reach(stint_gpu *g, int mark)
{
	if (mark < 0 || mark >= g->nevent || !g->event[mark])
		return STINT_OK;
	int rc = stint_gpu_enter(g);
	if (rc)
		return rc;
	return stint_gpu_leave(
		g, stint_gpu_check(g, g->cu.cuEventSynchronize(g->event[mark]), "the device"));
}
