/* Plans the model that is named; with the installed header and library. */
#include <stdio.h>

#include <stint/stint.h>

int main(int argc, char **argv)
{
	struct stint_options *o = NULL;
	struct stint_result *r = NULL;
	int rc = argc != 2 || stint_options_new(&o, argv[1]);
	if (!rc)
		rc = stint_options_set(o, "loss", "cross-entropy") ||
		     stint_options_set(o, "optimizer", "sgd") ||
		     stint_options_set(o, "batch", "4") || stint_options_set(o, "portable", NULL) ||
		     stint_plan(&r, o, NULL);
	if (!rc)
		printf("stint %s: %lld bytes\n", stint_version(),
			(long long)stint_result_facts(r)->arena_bytes);
	stint_result_free(r);
	stint_options_free(o);
	return rc;
}
