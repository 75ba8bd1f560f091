#include "cli/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "runtime/stint_lib.h"

/* "model name : AMD EPYC" */
static char *cpu_name(struct arena *a)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];
	char *name = NULL;
	while (f && !name && fgets(line, sizeof line, f)) {
		char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		name = arena_strndup(a, colon, strcspn(colon, "\n"));
	}
	if (f)
		fclose(f);
	return name ? name : arena_strdup(a, "unknown");
}

/* The widest vectors. */
static const char *isa_name(struct arena *a)
{
#if defined(__x86_64__) || defined(__i386__)
	(void)a;
	return __builtin_cpu_supports("avx512f") ? "avx512"
	       : __builtin_cpu_supports("avx2")  ? "avx2"
	       : __builtin_cpu_supports("avx")   ? "avx"
						 : "sse2";
#else
	struct utsname u;
	return uname(&u) == 0 ? arena_strdup(a, u.machine) : "unknown";
#endif
}

enum status machine_describe(struct arena *a, bool library, struct costs *c, struct diag *d)
{
	char identity[96];
	c->cpu = cpu_name(a);
	c->isa = isa_name(a);
	c->library = library ? arena_strdup(a, stint_lib_identity(c->threads, identity)) : NULL;
	if (!c->cpu || !c->isa || (library && !c->library))
		return diag_nomem(d);
	return ST_OK;
}
