/* Pointwise expressions as trees: every record's is what its author wrote, to the byte, and comes
 * to what the compiler makes of the same text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/expr.h"
#include "ops/ops.h"

/* --- What a tree comes to: C's types and conversions, of what records use --- */

enum type { WHOLE, NATURAL, REAL };
struct number {
	enum type type;
	double real;
	int64_t whole;
};
struct values {
	struct number operand[POINTWISE_INPUTS];
	double option[8];
};

static struct number real(double v)
{
	return (struct number){REAL, v, 0};
}

static struct number whole(enum type type, int64_t v)
{
	return (struct number){type, type == NATURAL ? (double)(uint64_t)v : (double)v, v};
}

static bool truth(struct number x)
{
	return x.type == REAL ? x.real != 0 : x.whole != 0;
}

#define COMPARE(x, y)                                                                              \
	(op[0] == '=' || op[0] == '!' ? ((x) == (y)) == (op[0] == '=')                             \
		: op[0] == '<'        ? (op[1] == '=' ? (x) <= (y) : (x) < (y))                    \
				      : (op[1] == '=' ? (x) >= (y) : (x) > (y)))

static bool compared(const char *op, enum type type, struct number x, struct number y)
{
	if (type == REAL)
		return COMPARE(x.real, y.real);
	if (type == NATURAL)
		return COMPARE((uint64_t)x.whole, (uint64_t)y.whole);
	return COMPARE(x.whole, y.whole);
}

static double of_reals(char op, double x, double y)
{
	assert_non_null(strchr("+-*/", op));
	return op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y;
}

static int64_t of_wholes(char op, int64_t x, int64_t y)
{
	const uint64_t a = (uint64_t)x, b = (uint64_t)y;
	if (op == '/' || op == '%') {
		assert_true(y != 0 && !(x == INT64_MIN && y == -1));
		return op == '/' ? x / y : x % y;
	}
	assert_non_null(strchr("+-*&|^", op));
	return (int64_t)(op == '+'   ? a + b
			 : op == '-' ? a - b
			 : op == '*' ? a * b
			 : op == '&' ? (a & b)
			 : op == '|' ? (a | b)
				     : (a ^ b));
}

static struct number binary(const char *op, struct number x, struct number y)
{
	const enum type type = x.type > y.type ? x.type : y.type;
	if (op[0] == op[1] && (op[0] == '<' || op[0] == '>')) {
		assert_true(y.type == WHOLE && y.whole >= 0 && y.whole < 64);
		if (op[0] == '<')
			return whole(x.type, (int64_t)((uint64_t)x.whole << y.whole));
		assert_true(x.type == WHOLE);
		return whole(WHOLE, x.whole >> y.whole);
	}
	if (strchr("<>=!", op[0]))
		return whole(WHOLE, compared(op, type, x, y));
	if (type == REAL)
		return real(of_reals(op[0], x.real, y.real));
	assert_true(type == WHOLE || !strchr("/%", op[0]));
	return whole(type, of_wholes(op[0], x.whole, y.whole));
}

static struct number unary(char op, struct number x)
{
	if (op == '!')
		return whole(WHOLE, !truth(x));
	if (x.type == REAL)
		return real(-x.real);
	return whole(x.type, op == '~' ? ~x.whole : (int64_t)(0 - (uint64_t)x.whole));
}

static double same(double x)
{
	return x;
}

static double normal_cdf(double x)
{
	return 0.5 * erfc(x * -0.70710678118654752);
}

static double larger(double x, double y)
{
	return x > y ? x : y;
}

static double smaller(double x, double y)
{
	return x < y ? x : y;
}

static const struct {
	const char *name;
	double (*f)(double x);
	double (*of_two)(double x, double y);
} functions[] = {{"R", same, NULL}, {"EXP", exp, NULL}, {"LOG", log, NULL}, {"LOG1P", log1p, NULL},
	{"SQRT", sqrt, NULL}, {"TANH", tanh, NULL}, {"ERF", erf, NULL},
	{"NORMAL_CDF", normal_cdf, NULL}, {"FABS", fabs, NULL}, {"FLOOR", floor, NULL},
	{"CEIL", ceil, NULL}, {"RINT", rint, NULL}, {"TRUNC", trunc, NULL}, {"SIN", sin, NULL},
	{"COS", cos, NULL}, {"TAN", tan, NULL}, {"ASIN", asin, NULL}, {"ACOS", acos, NULL},
	{"ATAN", atan, NULL}, {"SINH", sinh, NULL}, {"COSH", cosh, NULL}, {"ASINH", asinh, NULL},
	{"ACOSH", acosh, NULL}, {"ATANH", atanh, NULL}, {"POW", NULL, pow}, {"FMOD", NULL, fmod},
	{"MAX", NULL, larger}, {"MIN", NULL, smaller}};

/* x times itself n times, modulo 2^64; 1 / x^-n without its fraction. */
static int64_t power(int64_t x, int64_t n)
{
	uint64_t p = 1;
	if (n < 0)
		return x == 1 || (x == -1 && n % 2 == 0) ? 1 : x == -1 ? -1 : 0;
	for (int bit = 62; bit >= 0; bit--) {
		p *= p;
		p *= n >> bit & 1 ? (uint64_t)x : 1;
	}
	return (int64_t)p;
}

static struct number called(const char *name, struct number x, struct number y)
{
	if (!strcmp(name, "int_power"))
		return whole(WHOLE, power(x.whole, y.whole));
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(functions[i].name, name))
			return real(functions[i].f ? functions[i].f(x.real)
						   : functions[i].of_two(x.real, y.real));
	fail_msg("%s: what is it?", name);
	return x;
}

static struct number value_of(const struct expr *x, int i, const struct values *v)
{
	const struct expr_node *n = &x->node[i];
	struct number of[EXPR_CHILDREN] = {0};
	char word[32];
	snprintf(word, sizeof word, "%.*s", n->length, x->text + n->at);
	if (n->kind == EXPR_CHOICE)
		return value_of(x, n->of[truth(value_of(x, n->of[0], v)) ? 1 : 2], v);
	if (n->kind == EXPR_BINARY && (!strcmp(word, "&&") || !strcmp(word, "||"))) {
		const bool first = truth(value_of(x, n->of[0], v));
		return whole(
			WHOLE, first == (word[0] == '|') ? first : truth(value_of(x, n->of[1], v)));
	}
	for (int k = 0; k < n->n; k++)
		of[k] = value_of(x, n->of[k], v);
	double number;
	switch ((enum expr_kind)n->kind) {
	case EXPR_NUMBER:
		assert_int_equal(sscanf(word, "%lf", &number), 1);
		return strpbrk(word, ".eI") ? real(number) : whole(WHOLE, (int64_t)number);
	case EXPR_OPERAND:
		return v->operand[n->which];
	case EXPR_OPTION:
		return real(v->option[n->which]);
	case EXPR_UNARY:
		return unary(word[0], of[0]);
	case EXPR_BINARY:
		return binary(word, of[0], of[1]);
	case EXPR_CAST:
		assert_true(of[0].type != REAL);
		return whole(word[0] == 'u' ? NATURAL : WHOLE, of[0].whole);
	case EXPR_CALL:
		return called(word, of[0], of[1]);
	default:
		return of[0];
	}
}

/* --- All records --- */

static uint64_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* Numbers that expressions compare with, equal ones, and any. */
static double draw_real(uint64_t *seed, double before)
{
	static const double marks[] = {
		0, -0.0, 1, -1, 0.5, 3, -3, 20, 21, INFINITY, -INFINITY, NAN};
	const uint64_t what = draw(seed) % 8;
	if (what == 0)
		return before;
	if (what == 1)
		return marks[draw(seed) % (sizeof marks / sizeof *marks)];
	return ((double)draw(seed) / 0x1p30 - 1) * (what == 2 ? 30 : 2);
}

static int64_t draw_whole(uint64_t *seed, int64_t before)
{
	static const int64_t marks[] = {0, 1, -1, 63, 64, INT64_MIN, INT64_MAX};
	const uint64_t what = draw(seed) % 6;
	if (what == 0)
		return before;
	if (what == 1)
		return marks[draw(seed) % (sizeof marks / sizeof *marks)];
	if (what == 2)
		return (int64_t)(draw(seed) << 33 ^ draw(seed));
	return (int64_t)(draw(seed) % 20) - 8;
}

static void check_reals(const struct op_def *op, const struct expr *x, uint64_t *seed)
{
	double in[POINTWISE_INPUTS], before = 0;
	struct values v = {0};
	for (int k = 0; k < POINTWISE_INPUTS; k++) {
		before = in[k] = draw_real(seed, before);
		v.operand[k] = real(in[k]);
	}
	for (int i = 0; op->option && op->option[i].name; i++)
		v.option[i] = draw(seed) % 4 ? draw_real(seed, 2) : op->option[i].value;
	const struct number is = value_of(x, x->n - 1, &v);
	const double expected = op->ref(in, v.option);
	if (memcmp(&is.real, &expected, sizeof expected) != 0 &&
		!(isnan(is.real) && isnan(expected)))
		fail_msg("%s: %s of a = %g, b = %g, c = %g, d = %g is %.17g, not %.17g", op->name,
			x->text, in[0], in[1], in[2], in[3], expected, is.real);
}

static void check_wholes(const struct op_def *op, const struct expr *x, uint64_t *seed)
{
	int64_t in[POINTWISE_INPUTS] = {0}, before = 0;
	struct values v = {0};
	for (int k = 0; k < POINTWISE_INPUTS; k++) {
		before = in[k] = draw_whole(seed, before);
		v.operand[k] = whole(WHOLE, in[k]);
	}
	const struct number is = value_of(x, x->n - 1, &v);
	if (is.type == REAL || is.whole != op->int_ref(in))
		fail_msg("%s: %s of a = %lld, b = %lld, c = %lld is %lld, not %lld", op->name,
			x->text, (long long)in[0], (long long)in[1], (long long)in[2],
			(long long)op->int_ref(in), (long long)is.whole);
}

static void check_text(const struct op_def *op, const char *text,
	void (*check)(const struct op_def *op, const struct expr *x, uint64_t *seed))
{
	struct expr x;
	struct text again = {0};
	uint64_t seed = 1;
	if (!expr_parse(&x, text, op->option))
		fail_msg("%s: \"%s\", at \"%s\": %s", op->name, text, text + x.at, x.wrong);
	expr_print(&x, &(const struct expr_names){0}, &again);
	assert_string_equal(again.s, text);
	text_free(&again);
	for (int i = 0; i < 2000; i++)
		check(op, &x, &seed);
}

static void every_record_is_its_text(void **state)
{
	(void)state;
	const struct op_table *t = ops_table();
	int reals = 0, wholes = 0;
	for (int f = 0; f < t->nfamily; f++)
		for (const struct op_def *op = t->family[f]; op->name; op++) {
			if (op->expr)
				check_text(op, op->expr, check_reals);
			if (op->int_expr)
				check_text(op, op->int_expr, check_wholes);
			reals += op->expr != NULL;
			wholes += op->int_expr != NULL;
		}
	assert_true(reals > 120 && wholes > 20);
}

/* --- What records do not show --- */

#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wlogical-not-parentheses"
#pragma GCC diagnostic ignored "-Wbool-compare"

static void precedence_is_the_compilers(void **state)
{
	(void)state;
	const int64_t a = 7, b = 3, c = 2, d = 5;
	const struct values v = {
		{whole(WHOLE, a), whole(WHOLE, b), whole(WHOLE, c), whole(WHOLE, d)}, {0}};
#define CASE(e)                                                                                    \
	{                                                                                          \
#e, (int64_t)(e)                                                                   \
	}
	const struct {
		const char *text;
		int64_t value;
	} cases[] = {CASE(a - b - c), CASE(a - (b - c)), CASE(a / b / c), CASE(a / b * c),
		CASE(a % d * c), CASE(a - b * c + d), CASE(a << b - c), CASE(a << b >> c),
		CASE(d > b > 0), CASE(a < b == c < d), CASE(a != b >= c), CASE(d | c & b ^ a),
		CASE(c ^ b & d), CASE(a & b == c), CASE(d | b ^ a), CASE(a || b && 0),
		CASE(0 && a || b), CASE(-a + b), CASE(-a % b), CASE(!a == 0), CASE(!(a == 0)),
		CASE(~a & d), CASE(- -a),
		CASE(a      ? b
			: c ? d
			    : 1),
		CASE(0      ? a
			: 0 ? b
			    : c),
		CASE(a > b ? c > d ? 1 : 2 : 3), CASE(0 || a ? b : c), CASE(-(int64_t)a - b),
		CASE((uint64_t)c - (uint64_t)a > 0)};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct expr x;
		assert_true(expr_parse(&x, cases[i].text, NULL));
		if (value_of(&x, x.n - 1, &v).whole != cases[i].value)
			fail_msg("%s", cases[i].text);
	}
}

static const struct op_option options[] = {{.name = "alpha"}, {.name = "p"}, {.name = NULL}};

static void what_is_near_is_called_so(void **state)
{
	(void)state;
	struct expr x;
	struct text out = {0};
	assert_true(expr_parse(&x, "a / (1 + EXP(-a * b)) * LOG1P(EXP(a))/b", options));
	expr_print(&x, &(struct expr_names){.near = true}, &out);
	assert_string_equal(out.s, "divide_near(divide_near(a, (1 + exp_near(-a * b))) * "
				   "LOG1P(exp_near(a)),b)");
	text_free(&out);
}

static void other_names_stand_in_their_places(void **state)
{
	(void)state;
	struct expr x;
	struct text out = {0};
	assert_true(expr_parse(
		&x, "alpha *a - c > 0 ? POW(-a,b) : (e) + 1e-3 + LOG1P(EXP(a))", options));
	expr_print(&x, &(struct expr_names){.operand = {"v10", "", "t3"}, .behind_option = "_7"},
		&out);
	assert_string_equal(
		out.s, "alpha_7 *v10 - t3 > 0 ? POW(-v10,b) : (e) + 1e-3 + LOG1P(EXP(v10))");
	text_free(&out);
	assert_true(expr_reads(&x, EXPR_OPERAND, 2) && !expr_reads(&x, EXPR_OPERAND, 3));
	assert_true(expr_reads(&x, EXPR_OPTION, 0) && !expr_reads(&x, EXPR_OPTION, 1));
	assert_int_equal(expr_slow_calls(&x), 3);
}

/* A line of an optimizer's rule, with the options alpha and p, and what a step's text has of it. */
static void line_becomes(const char *text, double alpha, double p, bool wide, const char *want)
{
	static const char *const names[] = {"lr", "exp_avg", "g", NULL};
	const double value[] = {alpha, p};
	struct expr x;
	struct text out = {0};
	if (!expr_parse_in(&x, text, &(const struct expr_scope){options, names, value}))
		fail_msg("%s, at %s: %s", text, text + x.at, x.wrong);
	expr_print(&x, &(struct expr_names){.wide = wide, .value = wide ? NULL : value}, &out);
	assert_string_equal(out.s, want);
	text_free(&out);
}

static void rules_are_written_out(void **state)
{
	(void)state;
	line_becomes("alpha * exp_avg + (1 - alpha) * g", 0.9, 0, false,
		"R(0.9) * exp_avg + R(1 - 0.9) * g");
	line_becomes("2 * alpha * g - -p", -0.25, 3, false, "R(2 * (-0.25)) * g - R(-3.0)");
	line_becomes("MAX(exp_avg, 1 - alpha) + R(0.5)", 0.1, 0, false,
		"MAX(exp_avg, R(1 - 0.1)) + R(0.5)");
	line_becomes("lr / (1 - POWER(alpha, g)) + SQRT(EXP(g))", 0.9, 0, true,
		"lr / (1 - power_double(alpha, g)) + sqrt(exp_double(g))");
	line_becomes("lerp_real(exp_avg, g, 1 - alpha)", 0.9, 0, false,
		"lerp_real(exp_avg, g, R(1 - 0.9))");
	/* what is not taken is no part of it, nor the option that chose */
	line_becomes("g + (alpha ? exp_avg * g : lr)", 1, 0, false, "g + (exp_avg * g)");
	line_becomes("g + (alpha ? exp_avg * g : lr)", 0, 0, false, "g + (lr)");
	line_becomes("alpha ? p ? g : g * g : SQRT(g)", 1, 0, false, "g * g");
	line_becomes("alpha ? p ? g : g * g : SQRT(g)", 1, 1, false, "g");
	line_becomes("alpha ? p ? g : g * g : SQRT(g)", 0, 1, false, "SQRT(g)");
	line_becomes("alpha > 0 ? g : lr", 0, 1, false, "R(0.0) > 0 ? g : lr");
	static const char *const names[] = {"g", "h", NULL};
	const double value[] = {1, 0};
	const struct expr_scope scope = {options, names, value};
	struct expr x;
	assert_true(expr_parse_in(&x, "alpha ? g : h * p", &scope));
	assert_true(expr_reads(&x, EXPR_OPERAND, 0) && !expr_reads(&x, EXPR_OPERAND, 1));
	assert_false(expr_reads(&x, EXPR_OPTION, 0) || expr_reads(&x, EXPR_OPTION, 1));
	assert_false(expr_parse_in(&x, "alpha ? g", &scope));
	assert_false(expr_parse_in(&x, "alpha ? g : ", &scope));
	assert_false(expr_parse_in(&x, "alpha ? a : g", &scope));
}

static void refuse(const char *text, const char *from, const char *why)
{
	struct expr x;
	assert_false(expr_parse(&x, text, options));
	assert_string_equal(text + x.at, from);
	assert_string_equal(x.wrong, why);
}

static void other_text_is_refused(void **state)
{
	(void)state;
	static const char *const misplaced[][2] = {{"", ""}, {"a +", ""}, {"a b", "b"}, {"(a", ""},
		{"a)", ")"}, {"a ? b", ""}, {"a ? b : ", ""}, {"a : b", ": b"}, {"EXP", ""},
		{"EXP(a, b)", ", b)"}, {"POW(a)", ")"}, {"EXP(a", ""}, {"EXP()", ")"},
		{"a = b", "= b"}, {"a += b", "= b"}, {"a, b", ", b"}, {"a--b", "--b"},
		{"a - --b", "--b"}, {"a++b", "+b"}, {"a;", ";"}, {"*a", "*a"}, {"a && &b", "&b"},
		{"a[0]", "[0]"}, {"alpha(a)", "(a)"}, {"(int64_t)", ""}, {"(int64_t a)", "a)"}};
	for (size_t i = 0; i < sizeof misplaced / sizeof *misplaced; i++)
		refuse(misplaced[i][0], misplaced[i][1], "cannot stand here");
	static const char *const unknown[][2] = {{"i", "i"}, {"a + beta", "beta"},
		{"sin(a)", "sin(a)"}, {"EXPM1(a)", "EXPM1(a)"}, {"(double)a", "double)a"},
		{"ab", "ab"}, {"a * alph", "alph"}};
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		refuse(unknown[i][0], unknown[i][1], "no operand, option or function");
	static const char *const numbers[] = {"0x10", "1.5f", "1e", "1e-", "2u", "1.2.3"};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		refuse(numbers[i], numbers[i], "not a number");
}

static void long_text_is_refused(void **state)
{
	(void)state;
	char text[EXPR_TEXT + 2];
	struct expr x;
	memset(text, '-', sizeof text);
	text[sizeof text - 1] = '\0';
	refuse(text, text, "too long");
	for (int n = 1; n < EXPR_NODES; n += 2) { /* a+a+...+a: n nodes */
		memcpy(text + n - 1, "a", 2);
		assert_true(expr_parse(&x, text, NULL));
		assert_int_equal(x.n, n);
		text[n] = '+';
	}
	memcpy(text + EXPR_NODES - 1, "+a", 3);
	assert_false(expr_parse(&x, text, NULL));
	assert_string_equal(x.wrong, "too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_record_is_its_text),
		cmocka_unit_test(precedence_is_the_compilers),
		cmocka_unit_test(rules_are_written_out),
		cmocka_unit_test(what_is_near_is_called_so),
		cmocka_unit_test(other_names_stand_in_their_places),
		cmocka_unit_test(other_text_is_refused), cmocka_unit_test(long_text_is_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
