/* What is trained by its name but looks like no parameter. PyTorch's older exporter writes buffers
 * (grids, anchors, masks, decays) as it writes parameters, and nothing of requires_grad: only the
 * command line can tell them apart, and a note says which to look at. */
#include <math.h>
#include <string.h>

#include "graph/pass.h"
#include "import/import_parts.h"

enum { NAMES_TOLD = 8 };

/* As buffers are called. */
static bool is_named_so(const char *name)
{
	static const char *const word[] = {"running_mean", "running_var", "num_batches_tracked",
		"position_ids", "relative_position_index", "relative_coords_table", "inv_freq",
		"anchors", "anchor_grid", "strides", "grid", "mask", "attn_mask", "causal_mask",
		"freqs", "slopes", "decay", "buffer", "pe", "pos_table", "cos_cached", "sin_cached",
		"mean", "std", "pixel_mean", "pixel_std", "window"};
	const char *leaf = name_leaf(name);
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		if (!strcmp(leaf, word[i]))
			return true;
	return false;
}

bool looks_uniform(const struct tensor *t)
{
	for (int64_t i = 1; i < t->numel; i++)
		if (tensor_real(t, i) != tensor_real(t, 0))
			return false;
	return true;
}

static bool is_whole(const struct tensor *t)
{
	for (int64_t i = 0; i < t->numel; i++)
		if (tensor_real(t, i) != floor(tensor_real(t, i)))
			return false;
	return true;
}

/* Evenly spaced, or each the same multiple of the one before: what no training leaves behind. */
static bool is_progression(const struct tensor *t)
{
	const double first = tensor_real(t, 0), second = tensor_real(t, 1);
	const double step = second - first, ratio = second / first;
	bool even = t->numel >= 4 && step != 0, powers = even && isfinite(ratio) && ratio != 0;
	for (int64_t i = 1; i < t->numel && (even || powers); i++) {
		const double v = tensor_real(t, i), before = tensor_real(t, i - 1);
		const double near = 1e-5 * (fabs(v) + fabs(before));
		even &= fabs(v - before - step) <= near;
		powers &= fabs(v - before * ratio) <= near;
	}
	return even || powers;
}

/* Sines and cosines of positions: the first one's are zeros and ones. */
static bool is_position_table(const struct tensor *t)
{
	const int64_t row = t->rank >= 2 ? t->dim[t->rank - 1] : 0;
	int64_t zeros = 0, ones = 0;
	for (int64_t i = 0; i < t->numel; i++) {
		const double v = tensor_real(t, i);
		if (!(fabs(v) <= 1))
			return false;
		zeros += i < row && v == 0;
		ones += i < row && v == 1;
	}
	return zeros && ones && zeros + ones == row && row < t->numel;
}

bool looks_computed(const struct tensor *t)
{
	return !looks_uniform(t) && (is_whole(t) || is_progression(t) || is_position_table(t));
}

/* By tensor id: whether something else than pointwise nodes reads it. What a product reads may
 * begin as an identity, or as ones among zeros. */
static bool *read_otherwise(struct importer *im)
{
	const struct graph *g = im->g;
	bool *other = ARENA_ARRAY(im->m.arena, bool, g->ntensor);
	for (int i = g->nnode - 1; other && i >= 0; i--) {
		const struct node *n = g->node[i];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k])
				other[n->in[k]->id] |= n->op->traits & OP_VIEW
							       ? k == 0 && other[n->out[0]->id]
							       : !(n->op->traits & OP_POINTWISE);
	}
	return other;
}

static bool is_suspect(const struct tensor *t, bool other)
{
	if (t->role != TR_PARAMETER || !t->data || !t->why || t->numel < 2 ||
		strcmp(t->why, "by its name") != 0)
		return false;
	return is_named_so(t->name) || (!other && looks_computed(t));
}

/* "--freeze '*.mask'" where all that are called so are suspects, the name itself otherwise. */
static void add_pattern(
	const struct importer *im, const struct names *suspect, const char *name, struct text *hint)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	const char *leaf = name_leaf(name);
	struct text pattern = {0};
	text_add(&pattern, "*.%s", leaf);
	int alike = 0, others = 0;
	for (size_t i = 0; pattern.s && i < g->n_initializer; i++) {
		const char *const list[] = {pattern.s, NULL};
		if (!name_matches(list, text_of(g->initializer[i]->name)))
			continue;
		const bool is = names_get(suspect, text_of(g->initializer[i]->name)) != NULL;
		alike += is;
		others += !is;
	}
	const char *chosen = alike > 1 && !others ? pattern.s : name;
	struct text word = {0};
	text_add(&word, "%s--freeze '%s'", hint->len ? " " : "", chosen);
	if (word.s && (!hint->s || !strstr(hint->s, word.s + (hint->len > 0))))
		text_puts(hint, word.s);
	text_free(&word);
	text_free(&pattern);
}

static void tell(struct importer *im, const struct names *suspect)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	struct text list = {0}, hint = {0};
	int n = 0;
	for (size_t i = 0; i < g->n_initializer; i++) {
		const char *name = text_of(g->initializer[i]->name);
		if (!names_get(suspect, name))
			continue;
		if (n++ < NAMES_TOLD)
			text_add(&list, "%s'%s'", n > 1 ? ", " : "", name);
		if (hint.len < 400)
			add_pattern(im, suspect, name, &hint);
	}
	if (n && !list.failed && !hint.failed)
		diag_note(im->d, &(struct where){.file = im->m.path}, hint.s,
			"trained by %s, but %s like no parameter%s: %s%s; the file does not tell "
			"buffers from parameters",
			n == 1 ? "its name" : "their names", n == 1 ? "looks" : "look",
			n == 1 ? "" : "s", list.s, n > NAMES_TOLD ? ", ..." : "");
	text_free(&list);
	text_free(&hint);
}

enum status note_suspects(struct importer *im)
{
	const struct graph *g = im->g;
	struct names suspect = {.arena = im->m.arena};
	if (im->module_first)
		return ST_OK;
	const bool *other = read_otherwise(im), *passes = graph_ways_back(g);
	if (!other || !passes)
		return diag_nomem(im->d);
	for (int i = 0; i < g->ntensor; i++) {
		if (!passes[i] || !is_suspect(g->tensor[i], other[i]))
			continue;
		void **at = names_at(&suspect, g->tensor[i]->name);
		if (!at)
			return diag_nomem(im->d);
		*at = g->tensor[i];
	}
	tell(im, &suspect);
	return ST_OK;
}

/* --- Left out --- */

/* Made by the exporter, and read where parameters are: it may be made of parameters. */
static bool is_left_out(const struct importer *im, const struct tensor *t)
{
	const struct use *u = names_get(&im->use, t->name);
	if (t->role != TR_CONSTANT || !t->from_model || !t->why || t->numel < 2 || !u ||
		names_get(&im->spelled, t->name) || strcmp(t->why, "made by the exporter") != 0)
		return false;
	return (u->weight || u->affine || u->table) && !looks_uniform(t) && !looks_computed(t);
}

enum status warn_of_left_out(struct importer *im)
{
	const struct graph *g = im->g;
	struct text list = {0};
	int n = 0;
	if (im->module_first || im->o->train_pattern)
		return ST_OK;
	const bool *passes = graph_ways_back(g);
	if (!passes)
		return diag_nomem(im->d);
	for (int i = 0; i < g->ntensor; i++)
		if (passes[i] && is_left_out(im, g->tensor[i]) && n++ < NAMES_TOLD)
			text_add(&list, "%s'%s'", n > 1 ? ", " : "", g->tensor[i]->name);
	if (n && !list.failed)
		diag_warn(im->d, &(struct where){.file = im->m.path},
			strcmp(text_of(im->m.proto->producer_name), "pytorch") != 0
				? "--train '*' trains these, too"
				: "--train '*' trains these, too; or export with dynamo=True, "
				  "optimize=False, or with do_constant_folding=False, which keep "
				  "parameters",
			"not trained, though %s stand%s where parameters do, and the exporter may "
			"have made %s of parameters: %s%s",
			n == 1 ? "it" : "they", n == 1 ? "s" : "", n == 1 ? "it" : "them", list.s,
			n > NAMES_TOLD ? ", ..." : "");
	text_free(&list);
	return ST_OK;
}
