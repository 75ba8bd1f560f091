/* The model's own functions: found by domain, name and overload, inlined where they are called. */
#include <inttypes.h>
#include <string.h>

#include "import/import_parts.h"

/* Fields of onnx.proto that came later than the one that we build with. */
enum { FUNCTION_ATTRIBUTE_PROTO = 11, FUNCTION_OVERLOAD = 13, NODE_OVERLOAD = 8 };

/* One level of names: of domains, of names in one, of overloads of one (that without an overload is
 * the name's own). */
struct trie {
	struct names next; /* struct trie */
	struct function *function;
};

static struct trie *trie_at(struct trie *t, struct arena *a, const char *name)
{
	t->next.arena = a;
	void **at = names_at(&t->next, name);
	if (at && !*at)
		*at = ARENA_NEW(a, struct trie);
	return at ? *at : NULL;
}

static const char *domain_name(const char *domain)
{
	return !strcmp(text_of(domain), "ai.onnx") ? "" : text_of(domain);
}

const char *domain_of(const Onnx__NodeProto *n)
{
	return domain_name(n->domain);
}

int64_t opset_of(Onnx__OperatorSetIdProto *const *list, size_t n)
{
	int64_t opset = 0;
	for (size_t i = 0; i < n; i++)
		if (!*domain_name(list[i]->domain) && list[i]->version > opset)
			opset = list[i]->version;
	return opset;
}

/* --- Reading --- */

/* Defaults of attributes: a repeated message in a field that onnx.proto of 1.12 lacks. */
static enum status read_defaults(struct importer *im, struct function *f)
{
	const ProtobufCMessage *m = &f->proto->base;
	for (unsigned i = 0; i < m->n_unknown_fields; i++)
		f->ndefault += m->unknown_fields[i].tag == FUNCTION_ATTRIBUTE_PROTO;
	f->deflt = ARENA_ARRAY(im->m.arena, Onnx__AttributeProto *, f->ndefault);
	if (!f->deflt)
		return diag_nomem(im->d);
	for (unsigned i = 0, k = 0; i < m->n_unknown_fields; i++) {
		ProtobufCMessage *a;
		if (m->unknown_fields[i].tag != FUNCTION_ATTRIBUTE_PROTO)
			continue;
		TRY(model_unpack(&im->m, &onnx__attribute_proto__descriptor, &m->unknown_fields[i],
			&a, im->d));
		f->deflt[k++] = (Onnx__AttributeProto *)a;
	}
	return ST_OK;
}

static enum status read_function(struct importer *im, const Onnx__FunctionProto *p)
{
	struct arena *a = im->m.arena;
	const char *overload = unknown_text(a, &p->base, FUNCTION_OVERLOAD);
	struct function *f = ARENA_NEW(a, struct function);
	struct trie *t = trie_at(im->functions, a, domain_name(p->domain));
	t = t ? trie_at(t, a, text_of(p->name)) : NULL;
	if (t && overload && *overload)
		t = trie_at(t, a, overload);
	if (!f || !t || !overload)
		return diag_nomem(im->d);
	const struct where w = {im->m.path, text_of(p->name), "function"};
	if (t->function)
		return diag_fail(im->d, ST_INVALID, &w, NULL, "stands twice in the model");
	int64_t opset = opset_of(p->opset_import, p->n_opset_import);
	*f = (struct function){.proto = p,
		.name = text_of(p->name),
		.domain = domain_name(p->domain),
		.opset = opset > 0 && opset < INT32_MAX ? (int)opset : im->top.opset};
	t->function = f;
	TRY(read_defaults(im, f));
	return block_function(im, f);
}

enum status functions_read(struct importer *im)
{
	const Onnx__ModelProto *p = im->m.proto;
	if (!p->n_functions)
		return ST_OK;
	im->functions = ARENA_NEW(im->m.arena, struct trie);
	if (!im->functions)
		return diag_nomem(im->d);
	for (size_t i = 0; i < p->n_functions; i++)
		TRY(read_function(im, p->functions[i]));
	return ST_OK;
}

struct function *function_of(const struct importer *im, const Onnx__NodeProto *n)
{
	if (!im->functions)
		return NULL;
	const struct trie *t = names_get(&im->functions->next, domain_of(n));
	t = t ? names_get(&t->next, text_of(n->op_type)) : NULL;
	if (!t)
		return NULL;
	const char *overload = n->base.n_unknown_fields
				       ? unknown_text(im->m.arena, &n->base, NODE_OVERLOAD)
				       : "";
	if (*text_of(overload))
		t = names_get(&t->next, overload);
	return t ? t->function : NULL;
}

/* --- Calling --- */

enum status function_call(struct importer *im, struct function *f, const char *name, int nin,
	const struct value *in, int nout, struct value *out, int nattr, const struct attr *attr)
{
	const struct where w = {im->m.path, name, f->name};
	TRY(function_size(im, f, 0));
	if (nin > f->block.nin || nout > f->block.nout)
		return diag_fail(im->d, ST_INVALID, &w, NULL,
			"has %d inputs and %d outputs; the function has %d and %d", nin, nout,
			f->block.nin, f->block.nout);
	if (f->block.size > im->left)
		return diag_fail(im->d, ST_INVALID, &w,
			"functions are inlined; stint builds no more of them",
			"the function comes to %" PRId64 " nodes, %" PRId64
			" are the limit for all",
			f->block.size, im->limit);
	const char *prefix = arena_printf(im->m.arena, "%s/", name);
	if (!prefix)
		return diag_nomem(im->d);
	const struct scope s = {
		.prefix = prefix, .function = f, .nattr = nattr, .attr = attr, .opset = f->opset};
	return block_build(im, &f->block, &s, nin, in, nout, out);
}
