/* SPDX-License-Identifier: MIT-0 */
/* The library calls of a step on the processor. See stint_rt_device.h. */
#include <stdlib.h>

#include "stint_lib.h"

static int make(stint_step *s)
{
	const struct stint_model *m = s->model;
	s->lib = calloc((size_t)m->nlib + 1, sizeof *s->lib);
	if (!s->lib)
		return stint_rt_no_memory(s);
	for (int i = 0; i < m->nlib; i++) {
		const struct stint_lib_call *call = &m->lib[i].call;
		if (!stint_rt_room(STINT_LIB_ROOM))
			return stint_rt_no_room(s, "oneDNN's code", STINT_LIB_ROOM,
				(size_t)(m->nlib - i) * STINT_LIB_KEEPS);
		const int64_t bytes = stint_lib_workspace(call, m->threads);
		if (bytes < 0 || (size_t)bytes > m->lib[i].workspace)
			return stint_rt_fail(s, STINT_BAD_MACHINE,
				"the library wants another workspace for "
				"%s than was planned: compile the model here",
				stint_lib_call_name(call));
		const int rc = stint_lib_new(&s->lib[i], call, m->threads, s->message);
		if (rc)
			return rc;
	}
	return STINT_OK;
}

static void release(stint_step *s)
{
	for (int i = 0; s->lib && i < s->model->nlib; i++)
		if (s->lib[i])
			stint_lib_free(s->lib[i]);
	free(s->lib);
	s->lib = NULL;
}

const struct stint_library stint_rt_library = {.make = make, .free = release};
