/* What names stand for, block by block. */
#include <inttypes.h>
#include <string.h>

#include "import/import_parts.h"

struct scope scope_inside(const struct scope *s, const char *prefix)
{
	struct scope inner = *s;
	inner.outer = s;
	inner.prefix = prefix;
	return inner;
}

const char *scope_name(struct importer *im, const struct scope *s, const char *name)
{
	return *s->prefix ? arena_printf(im->m.arena, "%s%s", s->prefix, name) : name;
}

bool scope_get(const struct scope *s, const char *name, struct value *out)
{
	for (; s; s = s->outer) {
		struct tensor *t = names_get(s->tensor, name);
		const struct value *v = t ? NULL : names_get(s->other, name);
		if (t)
			*out = (struct value){.kind = VALUE_TENSOR, .tensor = t};
		if (v)
			*out = *v;
		if (t || v)
			return true;
	}
	return false;
}

enum status scope_set(
	struct importer *im, const struct scope *s, const char *name, const struct value *v)
{
	bool tensor = v->kind == VALUE_TENSOR;
	void **at = names_at(tensor ? s->tensor : s->other, name);
	if (!at)
		return diag_nomem(im->d);
	*at = tensor ? (void *)v->tensor : arena_memdup(im->m.arena, v, 1, sizeof *v);
	return *at ? ST_OK : diag_nomem(im->d);
}

enum status expansion_count(struct importer *im, const struct where *w, size_t bytes)
{
	im->left -= 1 + (int64_t)(bytes / BYTES_A_NODE);
	return im->left >= 0 ? ST_OK
			     : diag_fail(im->d, ST_INVALID, w,
				       "functions are inlined and loops unrolled; fewer turns, or "
				       "a smaller model",
				       "functions and loops come to more than %" PRId64 " nodes",
				       im->limit);
}
