#include "compile/custom_ops.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ops/custom/custom.h"
#include "ops/stint_op.h"

static enum status lacks(const char *file, const char *symbol, struct diag *d)
{
	return diag_fail(d, ST_INVALID, &(struct where){.file = file},
		"docs/howto/write-a-custom-operator.md shows what it holds",
		"has no symbol %s: it holds no operators for stint", symbol);
}

/* The file's records, their version checked. */
static enum status open_records(
	struct arena *a, const char *file, const struct stint_op **out, struct diag *d)
{
	const struct where w = {.file = file};
	/* a path with a slash, so that the library search path is not used */
	const char *path = strchr(file, '/') ? file : arena_printf(a, "./%s", file);
	if (!path)
		return diag_nomem(d);
	if (access(path, R_OK) != 0)
		return diag_fail(d, ST_IO, &w, NULL, "cannot be read: %s", strerror(errno));
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return diag_fail(d, ST_INVALID, &w, "cc -shared -fPIC -I ops -o FILE.so FILE.c",
			"cannot be loaded as a shared object: %s", dlerror());
	const int *version = dlsym(handle, "stint_ops_version");
	if (!version)
		return lacks(file, "stint_ops_version", d);
	if (*version != STINT_OPS_VERSION)
		return diag_fail(d, ST_INVALID, &w, "compile it again with this stint's stint_op.h",
			"is made for version %d of stint_op.h; this stint reads %d", *version,
			STINT_OPS_VERSION);
	*out = dlsym(handle, "stint_ops");
	return *out ? ST_OK : lacks(file, "stint_ops", d);
}

enum status custom_ops_load(
	struct arena *a, const char *const *files, const struct op_table **out, struct diag *d)
{
	*out = ops_table();
	for (; files && *files; files++) {
		const struct stint_op *records;
		TRY(open_records(a, *files, &records, d));
		TRY(custom_add(a, *out, *files, records, out, d));
	}
	return ST_OK;
}
