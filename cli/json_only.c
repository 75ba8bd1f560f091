#include "cli/json_only.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum status json_only_begin(bool json, int *was, struct diag *d)
{
	*was = -1;
	if (!json)
		return ST_OK;
	fflush(stdout);
	*was = dup(STDOUT_FILENO);
	if (*was < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return diag_fail(d, ST_IO, NULL, NULL, "--json: %s", strerror(errno));
	return ST_OK;
}

void json_only_end(int was)
{
	if (was < 0)
		return;
	fflush(stdout);
	(void)dup2(was, STDOUT_FILENO);
	close(was);
}
