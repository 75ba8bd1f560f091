/* One training step, on inputs of zeros: what hot_loops.sh counts the instructions of. */
#include <stdio.h>

#include "stint_step.h"

int main(int argc, char **argv)
{
	stint_step *s = NULL;
	int rc = stint_init(&s, &MODEL, NULL, 0);
	if (!rc && argc > 1)
		rc = stint_load(s, argv[1]);
	if (!rc)
		rc = stint_train(s, 0.01);
	if (rc)
		fprintf(stderr, "%s\n", s ? stint_message(s) : "out of memory");
	stint_free(s);
	return rc;
}
