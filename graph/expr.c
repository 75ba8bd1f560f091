/* Pointwise expressions: a parser by precedence, and the way back. */
#include "graph/expr.h"

#include <ctype.h>
#include <string.h>

#include "base/literal.h"

/* What may be called: macros and functions of ops/family.h, and for a step of kernels/. */
static const struct function {
	const char *name;
	int nin;
	bool slow;
} functions[] = {{"R", 1, false}, {"MAX", 2, false}, {"MIN", 2, false}, {"FABS", 1, false},
	{"SQRT", 1, false}, {"FLOOR", 1, false}, {"CEIL", 1, false}, {"RINT", 1, false},
	{"TRUNC", 1, false}, {"int_power", 2, false}, {"lerp_real", 3, false}, {"EXP", 1, true},
	{"LOG", 1, true}, {"POWER", 2, true}, {"LOG1P", 1, true}, {"POW", 2, true},
	{"FMOD", 2, true}, {"ERF", 1, true}, {"NORMAL_CDF", 1, true}, {"SIN", 1, true},
	{"COS", 1, true}, {"TAN", 1, true}, {"ASIN", 1, true}, {"ACOS", 1, true}, {"ATAN", 1, true},
	{"SINH", 1, true}, {"COSH", 1, true}, {"TANH", 1, true}, {"ASINH", 1, true},
	{"ACOSH", 1, true}, {"ATANH", 1, true}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* What those are called that have another name in double precision. */
static const char *const wide_names[][2] = {
	{"SQRT", "sqrt"}, {"EXP", "exp_double"}, {"LOG", "log_double"}, {"POWER", "power_double"}};

/* Those of two operands; before another one stands what it begins. */
static const struct infix {
	char text[3];
	int level; /* a higher one binds more tightly */
} infixes[] = {{"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7}, {"<<", 8},
	{">>", 8}, {"|", 3}, {"^", 4}, {"&", 5}, {"<", 7}, {">", 7}, {"+", 9}, {"-", 9}, {"*", 10},
	{"/", 10}, {"%", 10}};

/* How a kind is written: w its word, e an expression, u what unary operators apply to, b an operand
 * of a binary operator; the rest stands for itself. */
static const char *form_of(enum expr_kind kind, int nin)
{
	static const char *const forms[] = {[EXPR_NUMBER] = "w",
		[EXPR_OPERAND] = "w",
		[EXPR_OPTION] = "w",
		[EXPR_UNARY] = "wu",
		[EXPR_BINARY] = "bwb",
		[EXPR_CHOICE] = "e?e:e",
		[EXPR_PARENS] = "(e)",
		[EXPR_CAST] = "(w)u",
		[EXPR_CALL] = "w(e)"};
	return kind != EXPR_CALL || nin == 1 ? forms[kind] : nin == 2 ? "w(e,e)" : "w(e,e,e)";
}

/* --- Parsing: functions return a node's number; -1: not understood, which is noted once --- */

struct parser {
	struct expr *x;
	const char *p; /* the next token */
	bool space;    /* stands before it */
	const struct expr_scope *in;
};

static void skip_spaces(struct parser *s)
{
	s->space = *s->p == ' ';
	while (*s->p == ' ')
		s->p++;
}

static int fail(struct parser *s, const char *what)
{
	if (!s->x->wrong) {
		s->x->wrong = what;
		s->x->at = (int)(s->p - s->x->text);
	}
	return -1;
}

static int add_node(struct parser *s, const struct expr_node *n)
{
	if (s->x->n == EXPR_NODES)
		return fail(s, "too long");
	s->x->node[s->x->n] = *n;
	return s->x->n++;
}

static bool add_child(struct expr_node *n, int number)
{
	if (number >= 0)
		n->of[n->n++] = (unsigned char)number;
	return number >= 0;
}

static int choice(struct parser *s);
static int unary(struct parser *s);

/* The rest of a node, as this form has it, with a word of this length. */
static bool read_form(struct parser *s, struct expr_node *n, const char *form, size_t word)
{
	for (int i = 0; *form; form++) {
		if (*form == 'e' || *form == 'u') {
			if (!add_child(n, *form == 'e' ? choice(s) : unary(s)))
				return false;
			continue;
		}
		if (*form != 'w' && *form != *s->p)
			return fail(s, "cannot stand here") >= 0;
		n->spaces |= (unsigned char)(s->space << i++);
		if (*form == 'w') {
			n->at = (short)(s->p - s->x->text);
			n->length = (unsigned char)word;
		}
		s->p += *form == 'w' ? word : 1;
		skip_spaces(s);
	}
	return true;
}

static int read_node(struct parser *s, enum expr_kind kind, int which, size_t word)
{
	struct expr_node n = {.kind = (unsigned char)kind, .which = (unsigned char)which};
	const char *form = form_of(kind, kind == EXPR_CALL ? functions[which].nin : 0);
	return read_form(s, &n, form, word) ? add_node(s, &n) : -1;
}

/* Letters, digits and _ from here on. */
static size_t word_length(const char *p)
{
	size_t n = 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	return n;
}

static bool is_word(const char *p, const char *word)
{
	const size_t length = word_length(p);
	return strlen(word) == length && !strncmp(p, word, length);
}

/* "12", "0.5", "1e-3". */
static int number(struct parser *s)
{
	const char *p = s->p + strspn(s->p, "0123456789");
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	if (*p == 'e' && isdigit((unsigned char)p[1 + (p[1] == '-')]))
		p += 2 + strspn(p + 2, "0123456789");
	if (word_length(p) > 0 || *p == '.' || p - s->p > UINT8_MAX)
		return fail(s, "not a number");
	return read_node(s, EXPR_NUMBER, 0, (size_t)(p - s->p));
}

/* Which operand stands here; -1: none. */
static int operand_at(const struct parser *s)
{
	const char *const *name = s->in->operand;
	if (!name)
		return word_length(s->p) == 1 && *s->p >= 'a' && *s->p < 'a' + POINTWISE_INPUTS
			       ? *s->p - 'a'
			       : -1;
	for (int i = 0; name[i]; i++)
		if (is_word(s->p, name[i]))
			return i;
	return -1;
}

static int name(struct parser *s)
{
	const size_t length = word_length(s->p);
	const struct op_option *const option = s->in->option;
	const int operand = operand_at(s);
	if (operand >= 0 && s->in->operand)
		return read_node(s, EXPR_OPERAND, operand, length);
	for (int i = 0; option && option[i].name; i++)
		if (is_word(s->p, option[i].name))
			return read_node(s, EXPR_OPTION, i, length);
	if (operand >= 0)
		return read_node(s, EXPR_OPERAND, operand, length);
	if (is_word(s->p, "INFINITY"))
		return read_node(s, EXPR_NUMBER, 0, length);
	for (int i = 0; i < FUNCTIONS; i++)
		if (is_word(s->p, functions[i].name))
			return read_node(s, EXPR_CALL, i, length);
	return fail(s, "no operand, option or function");
}

static int unary(struct parser *s)
{
	if (isdigit((unsigned char)*s->p))
		return number(s);
	if (isalpha((unsigned char)*s->p) || *s->p == '_')
		return name(s);
	if (*s->p == '(') {
		const char *type = s->p + 1 + strspn(s->p + 1, " ");
		const bool cast = is_word(type, "int64_t") || is_word(type, "uint64_t");
		return read_node(s, cast ? EXPR_CAST : EXPR_PARENS, 0, word_length(type));
	}
	if (!*s->p || !strchr("-!~", *s->p) || s->p[1] == '-')
		return fail(s, "cannot stand here");
	return read_node(s, EXPR_UNARY, 0, 1);
}

static const struct infix *infix_at(const char *p)
{
	if (!strncmp(p, "--", 2))
		return NULL;
	for (size_t i = 0; i < sizeof infixes / sizeof *infixes; i++)
		if (!strncmp(p, infixes[i].text, strlen(infixes[i].text)))
			return &infixes[i];
	return NULL;
}

/* Operators of this level and higher ones, from left to right. */
static int binary(struct parser *s, int level)
{
	const struct infix *o;
	int left = unary(s);
	while (left >= 0 && (o = infix_at(s->p)) && o->level >= level) {
		struct expr_node n = {.kind = EXPR_BINARY, .n = 1, .of = {(unsigned char)left}};
		read_form(s, &n, "w", strlen(o->text));
		left = add_child(&n, binary(s, o->level + 1)) ? add_node(s, &n) : -1;
	}
	return left;
}

/* Whether a space is to stand before the text of a node; whether one did. */
static bool set_space(struct expr *x, int node, bool space)
{
	struct expr_node *n = &x->node[node];
	while (n->kind == EXPR_BINARY || n->kind == EXPR_CHOICE)
		n = &x->node[n->of[0]];
	const bool did = n->spaces & 1;
	n->spaces = (unsigned char)((n->spaces & ~1) | space);
	return did;
}

/* "? x : y" behind an option, the last node: it is x or y, in the option's place. */
static int taken(struct parser *s)
{
	const struct expr_node by = s->x->node[--s->x->n];
	const bool first = s->in->value[by.which] != 0;
	int n = s->x->n, is = -1;
	for (int k = 0; k < 2; k++) {
		s->x->n = n; /* x is left out where it is not taken */
		if (*s->p != "?:"[k])
			return fail(s, "cannot stand here");
		s->p++;
		skip_spaces(s);
		const int branch = choice(s);
		if (branch < 0)
			return -1;
		if (first != (k == 1))
			n = s->x->n, is = branch;
	}
	s->x->n = n;
	set_space(s->x, is, by.spaces & 1);
	return is;
}

static int choice(struct parser *s)
{
	struct expr_node n = {.kind = EXPR_CHOICE};
	const int first = binary(s, 1);
	if (!add_child(&n, first) || *s->p != '?')
		return first;
	if (s->in->value && s->x->node[first].kind == EXPR_OPTION)
		return taken(s);
	return read_form(s, &n, form_of(EXPR_CHOICE, 0) + 1, 0) ? add_node(s, &n) : -1;
}

bool expr_parse(struct expr *x, const char *text, const struct op_option *option)
{
	return expr_parse_in(x, text, &(const struct expr_scope){.option = option});
}

bool expr_parse_in(struct expr *x, const char *text, const struct expr_scope *scope)
{
	struct parser s = {.x = x, .p = text, .in = scope};
	x->text = text;
	x->n = x->at = 0;
	x->wrong = strlen(text) > EXPR_TEXT ? "too long" : NULL;
	skip_spaces(&s);
	if (!x->wrong && choice(&s) >= 0 && *s.p)
		fail(&s, "cannot stand here");
	return !x->wrong;
}

/* --- What the tree says --- */

bool expr_reads(const struct expr *x, enum expr_kind kind, int which)
{
	for (int i = 0; i < x->n; i++)
		if (x->node[i].kind == kind && x->node[i].which == which)
			return true;
	return false;
}

int expr_slow_calls(const struct expr *x)
{
	int calls = 0;
	for (int i = 0; i < x->n; i++)
		calls += x->node[i].kind == EXPR_CALL && functions[x->node[i].which].slow;
	return calls;
}

static void print_value(double v, struct text *out)
{
	char buf[LITERAL_TEXT];
	literal_text(v, false, buf);
	text_add(out, v < 0 ? "(%s)" : "%s", buf);
}

static const char *wide_name(const struct expr_node *n)
{
	for (size_t i = 0; n->kind == EXPR_CALL && i < sizeof wide_names / sizeof *wide_names; i++)
		if (!strcmp(functions[n->which].name, wide_names[i][0]))
			return wide_names[i][1];
	return NULL;
}

static void print_word(const struct expr *x, const struct expr_node *n, const struct expr_names *as,
	struct text *out)
{
	const char *wide = as->wide ? wide_name(n) : NULL;
	if (n->kind == EXPR_OPERAND && n->which < POINTWISE_INPUTS && *as->operand[n->which])
		text_puts(out, as->operand[n->which]);
	else if (n->kind == EXPR_OPTION && as->value)
		print_value(as->value[n->which], out);
	else if (wide)
		text_puts(out, wide);
	else if (as->near && n->kind == EXPR_CALL && !strcmp(functions[n->which].name, "EXP"))
		text_puts(out, "exp_near");
	else
		text_write(out, x->text + n->at, n->length);
	if (n->kind == EXPR_OPTION)
		text_puts(out, as->behind_option);
}

/* Whether a node is sums and the like of numbers and options alone; *options: how many of these. */
static bool is_constant(const struct expr *x, const struct expr_node *n, int *options)
{
	static const bool may[] = {[EXPR_NUMBER] = true,
		[EXPR_OPTION] = true,
		[EXPR_UNARY] = true,
		[EXPR_BINARY] = true,
		[EXPR_PARENS] = true,
		[EXPR_CALL] = false};
	bool constant = may[n->kind] && (n->kind != EXPR_BINARY || strchr("+-*/", x->text[n->at]));
	*options += n->kind == EXPR_OPTION;
	for (int i = 0; i < n->n && constant; i++)
		constant = is_constant(x, &x->node[n->of[i]], options);
	return constant;
}

static void print_node(const struct expr *x, const struct expr_node *n, const struct expr_names *as,
	struct text *out);

/* "R(1 - 0.9)"; false: it is no such constant. */
static bool print_constant(const struct expr *x, const struct expr_node *n,
	const struct expr_names *as, struct text *out)
{
	int options = 0;
	if (!as->value || as->inside || !is_constant(x, n, &options) || options == 0)
		return false;
	struct expr plain = *x;
	struct expr_names inside = *as;
	inside.inside = true;
	text_puts(out, set_space(&plain, (int)(n - x->node), false) ? " R" : "R");
	text_puts(out, n->kind == EXPR_PARENS ? "" : "(");
	print_node(&plain, &plain.node[n - x->node], &inside, out);
	text_puts(out, n->kind == EXPR_PARENS ? "" : ")");
	return true;
}

static void print_node(const struct expr *x, const struct expr_node *n, const struct expr_names *as,
	struct text *out)
{
	if (print_constant(x, n, as, out))
		return;
	const unsigned char *child = n->of;
	int token = 0;
	if (as->near && n->kind == EXPR_BINARY && n->length == 1 && x->text[n->at] == '/') {
		text_puts(out, "divide_near(");
		print_node(x, &x->node[child[0]], as, out);
		text_puts(out, ",");
		print_node(x, &x->node[child[1]], as, out);
		text_puts(out, ")");
		return;
	}
	for (const char *p = form_of(n->kind, n->n); *p; p++) {
		if (strchr("eub", *p)) {
			print_node(x, &x->node[*child++], as, out);
			continue;
		}
		if (n->spaces >> token++ & 1)
			text_puts(out, " ");
		if (*p == 'w')
			print_word(x, n, as, out);
		else
			text_write(out, p, 1);
	}
}

void expr_print(const struct expr *x, const struct expr_names *as, struct text *out)
{
	print_node(x, &x->node[x->n - 1], as, out);
}
