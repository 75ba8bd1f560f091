/* What PyTorch called where a node comes from, as the dynamo exporter notes it: "%linear :
 * [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_fc_weight,
 * %p_fc_bias), kwargs = {})". The names of the module's tensors in it are the truth, whatever
 * initializers the node reads after the exporter has merged equal ones: the call is made before. */
#include <stdlib.h>
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__NodeProto Node;

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* The next "%name" from *p on; false: none. */
static bool next_name(const char **p, const char **name, size_t *len)
{
	const char *at = strchr(*p, '%');
	if (!at)
		return false;
	*name = ++at;
	while (is_name(*at))
		at++;
	*len = (size_t)(at - *name);
	*p = at;
	return true;
}

/* The module's tensors among the arguments, once each. */
static enum status list_arguments(struct importer *im, struct call *c, const char *text)
{
	struct arena *a = im->m.arena;
	const char *name;
	size_t len, most = 0;
	for (const char *p = text; next_name(&p, &name, &len);)
		most++;
	c->arg = ARENA_ARRAY(a, struct module_tensor *, most);
	c->unknown = ARENA_ARRAY(a, const char *, most);
	if (!c->arg || !c->unknown)
		return diag_nomem(im->d);
	for (const char *p = text; next_name(&p, &name, &len);) {
		const char *copy = arena_strndup(a, name, len);
		void **at = copy ? names_at(&im->mentioned, copy) : NULL;
		if (!at)
			return diag_nomem(im->d);
		*at = c;
		struct module_tensor *t = names_get(&im->argument, copy);
		bool known = !t;
		if (t)
			t->call = c;
		else
			c->unknown[c->nunknown++] = copy;
		for (int i = 0; i < c->narg && !known; i++)
			known = c->arg[i] == t;
		if (!known)
			c->arg[c->narg++] = t;
	}
	return ST_OK;
}

static enum status call_new(struct importer *im, const char *text, struct call **out)
{
	static const char target[] = "[target=torch.ops.";
	struct arena *a = im->m.arena;
	const char *name, *p = text, *op = strstr(text, target);
	size_t len;
	*out = NULL;
	if (*text != '%' || !next_name(&p, &name, &len) || !op)
		return ST_OK;
	op += strlen(target);
	const char *end = strchr(op, ']');
	if (!end || end[1] != '(')
		return ST_OK;
	name = arena_strndup(a, name, len);
	void **at = name ? names_at(&im->call, name) : NULL;
	if (!at)
		return diag_nomem(im->d);
	*out = *at;
	if (*at) /* one call may come to several nodes */
		return ST_OK;
	struct call *c = *at = ARENA_NEW(a, struct call);
	if (!c)
		return diag_nomem(im->d);
	*c = (struct call){
		.name = name, .target = arena_strndup(a, op, (size_t)(end - op)), .text = end + 1};
	*out = c;
	return c->target ? list_arguments(im, c, c->text) : diag_nomem(im->d);
}

/* The exporter's optimizer may make one node of several, and notes one of the calls; but what only
 * takes a bias away leaves the node its call. */
static bool is_whole(struct arena *a, const Node *n)
{
	static const char harmless[] = "RemoveOptionalBias";
	const char *rule = metadata_get(
		a, &n->base, NODE_METADATA, "pkg.onnxscript.rewriter.rule_name");
	while (rule && *rule) {
		if (strncmp(rule, harmless, strlen(harmless)) != 0)
			return false;
		rule += strcspn(rule, ",");
		rule += strspn(rule, ", ");
	}
	return true;
}

enum status calls_read(struct importer *im)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	struct arena *a = im->m.arena;
	im->call.arena = im->mentioned.arena = im->call_of.arena = a;
	for (size_t i = 0; i < g->n_node; i++) {
		Node *n = g->node[i];
		struct call *c;
		const char *text = metadata_get(
			a, &n->base, NODE_METADATA, "pkg.torch.onnx.fx_node");
		if (!text)
			continue;
		TRY(call_new(im, text, &c));
		void **at = memo_at(&im->call_of, n);
		if (!at)
			return diag_nomem(im->d);
		*at = c;
		if (c)
			c->whole = (c->nodes++ == 0 || c->whole) && is_whole(a, n);
	}
	return ST_OK;
}

struct call *call_of(const struct importer *im, const Node *n)
{
	return memo_get(&im->call_of, n);
}

/* From its argument `i` on, of "(args = (%x, [4, 1], 7), kwargs = {})"; NULL: there is none. */
static const char *argument(const struct call *c, int i)
{
	const char *p = strchr(c->text + 1, '(');
	int depth = 0;
	for (; p && *p && (i > 0 || depth == 0); p++) {
		depth += *p == '(' || *p == '[' || *p == '{';
		depth -= *p == ')' || *p == ']' || *p == '}';
		if (depth == 0)
			return NULL;
		i -= *p == ',' && depth == 1;
	}
	return p;
}

bool call_number(const struct call *c, int i, double *out)
{
	const char *p = argument(c, i);
	char *end;
	*out = p ? strtod(p, &end) : 0;
	return p && end != p;
}

const struct module_tensor *call_tensor(const struct call *c, int i)
{
	const char *p = argument(c, i), *name;
	size_t len;
	if (!p || p[strspn(p, " ")] != '%' || !next_name(&p, &name, &len))
		return NULL;
	for (int k = 0; k < c->narg; k++)
		if (c->arg[k]->argument && strlen(c->arg[k]->argument) == len &&
			!strncmp(c->arg[k]->argument, name, len))
			return c->arg[k];
	return NULL;
}

/* --- Padding --- */

static bool padding_asked(const struct importer *im, const Node *n, int64_t *row)
{
	const struct import_options *o = im->o;
	for (int i = 0; i < o->npadding; i++)
		if (n->n_input && !strcmp(text_of(n->input[0]), o->padding[i].name)) {
			*row = o->padding[i].row;
			return true;
		}
	return false;
}

bool padding_of(const struct importer *im, const Node *n, int64_t *row)
{
	const struct call *c = call_of(im, n);
	double noted;
	if (padding_asked(im, n, row))
		return true;
	if (!c || strcmp(c->target, "aten.embedding.default") != 0 || !call_number(c, 2, &noted) ||
		!(noted >= 0 && noted < 1e15))
		return false;
	*row = (int64_t)noted;
	return true;
}

enum status padding_check(struct importer *im)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	const struct op_def *lookup = op_by_role(im->table, ROLE_LOOKUP);
	for (int i = 0; i < im->o->npadding; i++) {
		const struct import_padding *p = &im->o->padding[i];
		bool used = false;
		for (size_t k = 0; lookup && k < g->n_node && !used; k++) {
			const Node *n = g->node[k];
			used = n->n_input && !strcmp(text_of(n->op_type), lookup->name) &&
			       !strcmp(text_of(n->input[0]), p->name);
		}
		if (!used)
			return diag_fail(im->d, ST_USAGE, &(struct where){.file = im->m.path},
				"`stint show MODEL.onnx` lists the initializers",
				"--padding-idx: nothing looks up rows of an initializer '%s'",
				p->name);
	}
	return ST_OK;
}
