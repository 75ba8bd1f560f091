/* Einsum: sums of products named by an equation: reading it, and evaluating it on the host. */
#include <ctype.h>
#include <inttypes.h>

#include "ops/boxes/boxes_op.h"
#include "ops/product/einsum_op.h"

bool term_has(const struct term *t, int label)
{
	for (int i = 0; i < t->n; i++)
		if (t->label[i] == label)
			return true;
	return false;
}

/* --- The equation --- */

/* A term's labels; its ellipsis stands for `dots` axes, or, below 0, for what is left of `rank`.
 * Stops at ',', '-' or the end. */
static enum status read_term(struct graph *g, const struct node *n, const struct equation *q,
	const char **text, int rank, int dots, struct term *t)
{
	const char *s = *text;
	int letters = 0;
	bool ellipsis = false;
	for (const char *p = s; *p && *p != ',' && *p != '-'; p++)
		letters += *p != ' ' && *p != '.';
	t->n = 0;
	for (; *s && *s != ',' && *s != '-'; s++) {
		if (*s == ' ')
			continue;
		const bool upper = *s >= 'A' && *s <= 'Z', lower = *s >= 'a' && *s <= 'z';
		int count = 1, first = upper ? *s - 'A' : *s - 'a' + 26;
		if (!strncmp(s, "...", 3) && !ellipsis) {
			ellipsis = true;
			s += 2;
			count = dots >= 0 ? dots : rank - letters;
			first = LETTERS + count - 1; /* the last axis is LETTERS */
		} else if (!upper && !lower) {
			return node_fail(
				g, n, NULL, "equation '%s': '%c' is no label", q->text, *s);
		}
		if (count > RANK_MAX - t->n)
			return node_fail(
				g, n, NULL, "equation '%s': more than %d axes", q->text, RANK_MAX);
		for (int i = 0; i < count; i++)
			t->label[t->n++] = first < LETTERS ? first : first - i;
	}
	*text = s;
	if (rank >= 0 && t->n != rank)
		return node_fail(g, n, NULL,
			"equation '%s': a term does not fit an operand of %d axes", q->text, rank);
	return ST_OK;
}

static enum status read_sizes(
	struct graph *g, const struct node *n, struct equation *q, int operand)
{
	const struct tensor *x = n->in[operand];
	for (int i = 0; i < x->rank; i++) {
		int64_t *size = &q->size[q->in[operand].label[i]];
		if (x->dim[i] != 1 && *size != 1 && *size != x->dim[i])
			return node_fail(g, n, NULL,
				"equation '%s': axis %d of operand %d has size %" PRId64
				", others of its label %" PRId64,
				q->text, i, operand, x->dim[i], *size);
		if (x->dim[i] != 1)
			*size = x->dim[i];
	}
	return ST_OK;
}

/* The output that an equation without "->" stands for: the ellipsis, then the labels that occur
 * once. */
static enum status implicit_output(
	struct graph *g, const struct node *n, struct equation *q, int dots)
{
	int count[LABELS] = {0};
	for (int k = 0; k < q->nin; k++)
		for (int i = 0; i < q->in[k].n; i++)
			count[q->in[k].label[i]]++;
	for (int i = dots - 1; i >= 0; i--)
		q->out.label[q->out.n++] = LETTERS + i;
	for (int i = 0; i < LETTERS; i++) {
		if (count[i] == 1 && q->out.n == RANK_MAX)
			return node_fail(
				g, n, NULL, "equation '%s': more than %d axes", q->text, RANK_MAX);
		if (count[i] == 1)
			q->out.label[q->out.n++] = i;
	}
	return ST_OK;
}

static enum status read_output(
	struct graph *g, const struct node *n, struct equation *q, const char *s, int dots)
{
	if (!*s)
		return implicit_output(g, n, q, dots);
	s += 2;
	TRY(read_term(g, n, q, &s, -1, dots, &q->out));
	if (*s)
		return node_fail(g, n, NULL, "equation '%s': more than one output", q->text);
	for (int i = 0; i < q->out.n; i++) {
		bool known = false, twice = false;
		for (int k = 0; k < q->nin; k++)
			known |= term_has(&q->in[k], q->out.label[i]);
		for (int k = 0; k < i; k++)
			twice |= q->out.label[k] == q->out.label[i];
		if (!known || twice)
			return node_fail(g, n, NULL, "equation '%s': a label of the output %s",
				q->text, twice ? "is there twice" : "is in no operand");
	}
	return ST_OK;
}

static enum status read_equation(struct graph *g, const struct node *n, struct equation *q)
{
	const char *s = node_string(n, "equation", NULL);
	int dots = 0;
	if (!s)
		return node_fail(g, n, NULL, "has no equation");
	q->text = s;
	q->nin = n->nin;
	q->in = ARENA_ARRAY(g->arena, struct term, n->nin);
	if (!q->in)
		return diag_nomem(g->diag);
	for (int i = 0; i < LABELS; i++)
		q->size[i] = 1;
	for (int k = 0; k < n->nin; k++) {
		if (!n->in[k])
			return node_fail(g, n, NULL, "input %d is missing", k);
		TRY(read_term(g, n, q, &s, n->in[k]->rank, -1, &q->in[k]));
		if (*s != (k + 1 < n->nin ? ',' : 0) && strncmp(s, "->", 2) != 0)
			return node_fail(g, n, NULL, "equation '%s' is not one of %d operands",
				q->text, n->nin);
		if ((*s == '-') != (k + 1 == n->nin) && *s)
			return node_fail(g, n, NULL, "equation '%s' is not one of %d operands",
				q->text, n->nin);
		if (n->in[k]->dtype != n->in[0]->dtype || n->in[k]->dtype == DT_BOOL)
			return node_fail(g, n, NULL,
				"equation '%s': operands must be numbers of one element type",
				q->text);
		TRY(read_sizes(g, n, q, k));
		s += *s == ',';
		for (int i = 0; i < q->in[k].n; i++)
			if (q->in[k].label[i] - LETTERS >= dots)
				dots = q->in[k].label[i] - LETTERS + 1;
	}
	return read_output(g, n, q, s, dots);
}

static enum status einsum_infer(struct graph *g, struct node *n)
{
	struct equation *q = ARENA_NEW(g->arena, struct equation);
	int64_t dim[RANK_MAX];
	if (!q)
		return diag_nomem(g->diag);
	TRY(read_equation(g, n, q));
	for (int i = 0; i < q->out.n; i++)
		dim[i] = q->size[q->out.label[i]];
	n->param = q;
	return data_output(g, n, 0, n->in[0]->dtype, q->out.n, dim);
}

/* The term of operand k, up to ',' or "->"; NULL: there are fewer. */
static const char *term_text(const char *equation, int k)
{
	for (; equation && k > 0; k--) {
		equation += strcspn(equation, ",-");
		equation = *equation == ',' ? equation + 1 : NULL;
	}
	return equation;
}

/* How many of the first `length` are the letter; 0: are any. */
static int letters_in(const char *s, size_t length, char letter)
{
	int n = 0;
	for (size_t i = 0; i < length; i++)
		n += letter ? s[i] == letter : isalpha((unsigned char)s[i]) != 0;
	return n;
}

static bool has_dots(const char *s, size_t length)
{
	return memchr(s, '.', length) != NULL;
}

/* Axes of the output behind the letter's; -1: it is not in the output, or how many is not told.
 * Without an arrow it has all letters that stand once, in their order. */
static int letters_behind(const char *equation, const char *arrow, char letter)
{
	const char *out = arrow ? strchr(arrow, letter) : NULL;
	int n = 0;
	if (arrow)
		return !out || has_dots(out, strlen(out)) ? -1
							  : letters_in(out, strlen(out), 0) - 1;
	for (char c = (char)(letter + 1); c <= 'z'; c++)
		n += isalpha((unsigned char)c) && letters_in(equation, strlen(equation), c) == 1;
	return n;
}

/* What counts outputs has a letter that is in this operand and the output alone. */
static bool einsum_counts(const char *equation, int k, int rank, int *axis, int *behind)
{
	const char *term = term_text(equation, k), *arrow = strstr(equation, "->");
	const size_t inputs = arrow ? (size_t)(arrow - equation) : strlen(equation);
	const size_t length = term ? strcspn(term, ",-") : 0;
	int found = 0;
	for (size_t i = 0; i < length; i++) {
		if (!isalpha((unsigned char)term[i]) || letters_in(equation, inputs, term[i]) != 1)
			continue;
		const int after = letters_behind(equation, arrow, term[i]);
		if (after < 0)
			continue;
		found++;
		*behind = after;
		*axis = has_dots(term + i, length - i) ? letters_in(term, i, 0)
						       : rank - letters_in(term + i, length - i, 0);
	}
	return found == 1 && *axis >= 0 && *axis < rank;
}

/* --- On the host: every product, one by one --- */

/* How far a step along a label moves in a tensor. */
static void label_strides(const struct term *t, const struct tensor *x, int64_t *stride)
{
	int64_t dense[RANK_MAX];
	box_strides(x->rank, x->dim, dense);
	memset(stride, 0, LABELS * sizeof *stride);
	for (int i = 0; i < t->n; i++)
		stride[t->label[i]] += x->dim[i] == 1 ? 0 : dense[i];
}

static enum status einsum_fold(struct graph *g, const struct node *n, void *const *out)
{
	const struct equation *q = n->param;
	const struct tensor *y = n->out[0];
	const bool ints = y->dtype == DT_I64;
	int64_t(*stride)[LABELS] = arena_alloc(g->arena, (size_t)n->nin + 1, sizeof *stride);
	int64_t *at = ARENA_ARRAY(g->arena, int64_t, n->nin + 1), index[LABELS] = {0};
	double *sum = ARENA_ARRAY(g->arena, double, y->numel);
	uint64_t *whole = ARENA_ARRAY(g->arena, uint64_t, y->numel);
	int64_t total = 1;
	if (!stride || !at || !sum || !whole)
		return diag_nomem(g->diag);
	for (int k = 0; k < n->nin; k++)
		label_strides(&q->in[k], n->in[k], stride[k]);
	label_strides(&q->out, y, stride[n->nin]);
	for (int i = 0; i < LABELS; i++)
		if (!size_mul(total, q->size[i], &total))
			return node_fail(g, n, NULL, "equation '%s' is too large", q->text);
	for (int64_t e = 0; e < total; e++) {
		double product = 1;
		uint64_t p = 1;
		for (int k = 0; k < n->nin; k++) {
			product *= tensor_real(n->in[k], at[k]);
			p *= (uint64_t)tensor_int(n->in[k], at[k]);
		}
		sum[at[n->nin]] += product;
		whole[at[n->nin]] += p;
		for (int i = LABELS - 1; i >= 0; i--) {
			bool wrap = ++index[i] == q->size[i];
			for (int k = 0; k <= n->nin; k++)
				at[k] += stride[k][i] * (wrap ? 1 - q->size[i] : 1);
			if (!wrap)
				break;
			index[i] = 0;
		}
	}
	for (int64_t i = 0; i < y->numel; i++)
		if (ints)
			((int64_t *)out[0])[i] = (int64_t)whole[i];
		else
			value_set(y->dtype, out[0], i, sum[i]);
	return ST_OK;
}

#define EQ(shapes, equation)                                                                       \
	{                                                                                          \
		.in = shapes, .attr = "equation=" equation                                         \
	}

/* clang-format off */
const struct op_def ops_einsum[] = {
	{.name = "Einsum",
		.since = 12,
		.min_in = 1,
		.max_in = -1,
		.weights = ALL_OPERANDS,
		.equation = "equation",
		.counts = einsum_counts,
		.infer = einsum_infer,
		.fold = einsum_fold,
		.lower = einsum_lower,
		.example = EXAMPLES(EQ("a,b b,c", "ij,jk->ik"), EQ("2,3,6,5 2,3,7,5", "bhqd,bhkd->bhqk"),
			EQ("a,C,b,d a,D,b,d", "bqhd,bkhd->bhqk"), EQ("2,3,6,7 2,7,3,5", "bhqk,bkhd->bqhd"),
			EQ("a,b c,b d,b", "ij,kj,lj->ikl"), EQ("2,3 3,4 4,5", "ij,jk,kl"),
			EQ("2,2", "ii->i"), EQ("2,2", "ii"), EQ("b,a,a", "...ii->...i"),
			EQ("2,3,2,3", "ijij->ji"), EQ("3,3,3 3", "iii,i->i"), EQ("a,b", "ij->ji"),
			EQ("2,3,4", "ijk->j"), EQ("2 2", "i,i"), EQ("2 3", "i,j->ij"),
			EQ("a,b a,b", "ij,ij->i"), EQ("2,3 2", "ij,i->ij"), EQ("2 2,3", "i,ij->ji"),
			EQ("2,3,4 4", "...i,i->..."), EQ("2,3,4 2,4,5", "...ij,...jk"),
			EQ("2,1,3,4 5,4,3", "...ij,...ji->..."), EQ("2,3,1 1,4,5", "ijk,ikl->jl"),
			EQ("1,3 2,1", "ij,ij->ij"), EQ("1,3 2,1", "ij,ij->"), EQ("2,3 4", "ij,k->"), EQ("()  3", ",i->i"),
			EQ("2,3,4 4,3,5", "zij,jik->zk"), EQ("2,3,4 3,2,5 5,4", "ijk,jil,lk->kl"),
			EQ("3 3 3 3", "i,i,i,i->i"), EQ("2,0 0,3", "ij,jk->ik"),
			EQ("2,3:i64<9 3:i64<9", "ij,j->ij"))},
	{.name = NULL},
};
/* clang-format on */
