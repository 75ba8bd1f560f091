/* SPDX-License-Identifier: MIT-0 */
/* stint_lib.h where stint is built without oneDNN: nothing can be done by it. */
#include "stint_lib.h"

#include <stdio.h>
#include <string.h>

int64_t stint_lib_workspace(const struct stint_lib_call *call, int threads)
{
	(void)call, (void)threads;
	return -1;
}

int stint_lib_block(void)
{
	return 0;
}

int stint_lib_new(
	struct stint_lib **out, const struct stint_lib_call *call, int threads, char *message)
{
	(void)threads;
	*out = NULL;
	snprintf(message, 256, "%s: built without oneDNN", stint_lib_call_name(call));
	return STINT_BAD_MACHINE;
}

void stint_lib_free(struct stint_lib *l)
{
	(void)l;
}

int stint_lib_run(struct stint_lib *l, const void *const *in, void *const *out, void *ws)
{
	(void)l, (void)in, (void)out, (void)ws;
	return 1;
}

const char *stint_lib_identity(int threads, char buf[static 96])
{
	(void)threads, (void)buf;
	return NULL;
}
