#include "cli/whole_path.h"

#include <stdlib.h>
#include <unistd.h>

const char *whole_path(struct arena *a, const char *path)
{
	char *here = *path == '/' ? NULL : getcwd(NULL, 0);
	const char *whole = here ? arena_printf(a, "%s/%s", here, path) : path;
	free(here);
	return whole;
}
