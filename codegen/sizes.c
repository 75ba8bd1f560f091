/* Kernels that differ in numbers only become one function that takes the numbers: fewer functions
 * to read and to compile.
 *
 * Requires: all kernels of both schedules. Produces: kernel.function, and kernel.size where that is
 * shared. A number stays in the text where the compiler makes good use of it: small ones (what is
 * unrolled, a vector's lanes), short innermost loops, divisors; and where C wants a constant. What
 * is computed does not depend on it: the same operations on the same values. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/parts.h"

enum {
	SHARE_FROM = 16,  /* kernels: fewer stay as they are, which reads better */
	SMALL = 16,       /* numbers up to here stay */
	SHORT_LOOP = 256, /* and the bounds of innermost loops below this */
	SIZES_MAX = 24    /* of one function */
};

/* --- The numbers of a body --- */

/* The walk through a body, character by character. */
struct walk {
	const char *s;
	size_t at;
	char hold;      /* numbers stay until this character; 0: none */
	int declarator; /* depth of brackets in an array's declaration */
	int parens;
};

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The last character before `at` that is no space; 0 at the start. */
static char before(const char *s, size_t at)
{
	while (at > 0 && isspace((unsigned char)s[at - 1]))
		at--;
	return at > 0 ? s[at - 1] : 0;
}

static size_t word_start(const char *s, size_t end)
{
	while (end > 0 && in_word(s[end - 1]))
		end--;
	return end;
}

/* Whether the bracket at w->at follows a name that is being declared. */
static bool opens_declarator(const struct walk *w)
{
	const size_t name = word_start(w->s, w->at);
	if (name == w->at || name == 0)
		return false;
	if (w->s[name - 1] == '*')
		return true;
	const char c = before(w->s, name);
	if (c == ',')
		return w->parens == 0;
	size_t end = name;
	while (end > 0 && isspace((unsigned char)w->s[end - 1]))
		end--;
	const size_t word = word_start(w->s, end);
	return word < end && strncmp(w->s + word, "return", end - word) != 0;
}

/* Words behind which numbers stay, and until where. */
static char held_by(const char *word, size_t len)
{
	static const struct {
		const char *word;
		char until;
	} list[] = {{"static", ';'}, {"enum", ';'}, {"case", ':'}, {"PARALLEL_FOR", '\n'},
		{"unsigned", '\n'}, {"uint32_t", '\n'}, {"uint64_t", '\n'}, {"size_t", '\n'}};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (strlen(list[i].word) == len && !strncmp(list[i].word, word, len))
			return list[i].until;
	return 0;
}

/* The number at `at`: its length, and what it is; 0 for one with a suffix or in another base. */
static size_t number_at(const char *s, size_t at, char *kind)
{
	size_t n = 0;
	const bool hex = s[at] == '0' && (s[at + 1] == 'x' || s[at + 1] == 'X');
	bool real = false;
	while (in_word(s[at + n]) || s[at + n] == '.' ||
		(n > 0 && (s[at + n] == '-' || s[at + n] == '+') &&
			(s[at + n - 1] == 'e' || s[at + n - 1] == 'E') && !hex)) {
		real |= s[at + n] == '.' || s[at + n] == 'e' || s[at + n] == 'E';
		n++;
	}
	const char last = s[at + n - 1];
	*kind = hex ? 0 : real ? (last == 'f' ? 'f' : 'd') : isdigit((unsigned char)last) ? 'i' : 0;
	return n;
}

/* Where the loop whose head's round bracket opens at `at` ends. *nested: it holds another. */
static void look_into_loop(const char *s, size_t at, bool *nested)
{
	int depth = 0;
	do {
		depth += (s[at] == '(') - (s[at] == ')');
		at++;
	} while (s[at] && depth > 0);
	*nested = false;
	for (int braces = 0; s[at]; at++) {
		braces += (s[at] == '{') - (s[at] == '}');
		if (!strncmp(s + at, "for (", 5) && !in_word(s[at - 1])) {
			*nested = true;
			return;
		}
		if (braces <= 0 && (s[at] == ';' || s[at] == '}'))
			return;
	}
}

/* Whether the number at `at` is what a loop's variable stays below; *nested as above. */
static bool bounds_loop(const char *s, size_t at, bool *nested)
{
	size_t line = at;
	int semicolons = 0;
	if (before(s, at) != '<')
		return false;
	while (line > 0 && s[line - 1] != '\n') {
		line--;
		semicolons += s[line] == ';';
		if (!strncmp(s + line, "for (", 5)) {
			look_into_loop(s, line + 4, nested);
			return semicolons == 1;
		}
	}
	return false;
}

static bool shifts_or_divides(const char *s, size_t at, size_t len)
{
	const char a = before(s, at);
	size_t end = at + len;
	while (s[end] == ' ')
		end++;
	size_t start = at;
	while (start > 0 && isspace((unsigned char)s[start - 1]))
		start--;
	const bool shift = (start > 1 && a == s[start - 2] && (a == '<' || a == '>')) ||
			   ((s[end] == '<' || s[end] == '>') && s[end + 1] == s[end]);
	return shift || a == '/' || a == '%' || s[end] == '%' ||
	       (s[end] == '/' && s[end + 1] != '*' && s[end + 1] != '/');
}

/* A whole number that the compiler should see, or has to. */
static bool stays(const struct walk *w, size_t at, size_t len)
{
	static const char library[] = "s->lib[";
	const size_t n = sizeof library - 1;
	const long long value = strtoll(w->s + at, NULL, 10);
	bool nested;
	if (at >= n && !strncmp(w->s + at - n, library, n))
		return false;
	if (len > 18 || w->declarator > 0 || shifts_or_divides(w->s, at, len))
		return true;
	if (bounds_loop(w->s, at, &nested))
		return !nested && value < SHORT_LOOP;
	return value <= SMALL;
}

static size_t skip_past(const char *s, size_t at, const char *end)
{
	const char *p = strstr(s + at, end);
	return p ? (size_t)(p - s) + strlen(end) : at + strlen(s + at);
}

static size_t skip_quoted(const char *s, size_t at)
{
	const char quote = s[at++];
	while (s[at] && s[at] != quote)
		at += s[at] == '\\' && s[at + 1] ? 2 : 1;
	return s[at] ? at + 1 : at;
}

static void step_over(struct walk *w)
{
	const char c = w->s[w->at];
	if (c == '[' && (w->declarator > 0 || opens_declarator(w)))
		w->declarator++;
	if (c == ']' && w->declarator > 0)
		w->declarator--;
	w->parens += (c == '(') - (c == ')');
	if (c == w->hold)
		w->hold = 0;
	w->at++;
}

/* The numbers that could be parameters; counts only where `out` is NULL. */
int numbers_of(const char *body, struct number *out)
{
	struct walk w = {.s = body};
	int n = 0;
	size_t comment = 0; /* where the last one ends */
	while (body[w.at]) {
		const char *p = body + w.at;
		const bool said = w.at < comment;
		if (*p == '#' && !said) {
			w.at = skip_past(body, w.at, "\n");
		} else if (!strncmp(p, "/*", 2)) {
			comment = skip_past(body, w.at, "*/");
			w.at += 2;
		} else if (!said && (*p == '"' || *p == '\'')) {
			w.at = skip_quoted(body, w.at);
		} else if (isdigit((unsigned char)*p)) {
			struct number x = {.at = w.at};
			x.len = number_at(body, w.at, &x.kind);
			const bool keep = said || x.kind == 0 || w.hold != 0 ||
					  (x.kind == 'i' && stays(&w, x.at, x.len));
			if (!keep && out)
				out[n] = x;
			n += !keep;
			w.at += x.len;
		} else if (in_word(*p)) {
			size_t len = 1;
			while (in_word(p[len]))
				len++;
			if (!w.hold && !said)
				w.hold = held_by(p, len);
			w.at += len;
		} else if (said) {
			w.at++;
		} else {
			step_over(&w);
		}
	}
	return n;
}

/* --- Kernels of one form --- */

/* A kernel's text with its numbers taken out. */
struct form {
	int kernel, n;
	struct number *number;
	char *text; /* arguments and body */
};

static bool make_form(struct arena *a, const struct kernel *k, int index, struct form *f)
{
	struct text t = {0};
	size_t at = 0;
	f->kernel = index;
	f->n = k->nnumber;
	f->number = ARENA_ARRAY(a, struct number, f->n);
	if (!f->number)
		return false;
	if (f->n)
		memcpy(f->number, k->number, (size_t)f->n * sizeof *f->number);
	text_add(&t, "%d%d", k->checked, k->library);
	for (int i = 0; i < k->narg; i++)
		text_add(&t, " %s %c%d", k->arg[i].type, k->arg[i].kind, k->arg[i].k);
	text_puts(&t, "\n");
	for (int i = 0; i < f->n; i++) {
		const struct number *x = &f->number[i];
		text_write(&t, k->body + at, x->at - at);
		text_puts(&t, x->kind == 'i' ? "\1" : x->kind == 'f' ? "\2" : "\3");
		at = x->at + x->len;
	}
	text_puts(&t, k->body + at);
	f->text = t.failed ? NULL : arena_strdup(a, t.s);
	text_free(&t);
	return f->text != NULL;
}

static int by_text(const void *x, const void *y)
{
	const struct form *a = x, *b = y;
	const int c = strcmp(a->text, b->text);
	return c ? c : (a->kernel > b->kernel) - (a->kernel < b->kernel);
}

struct group {
	const struct kernels *ks;
	struct form *form; /* n kernels, the first is first in the schedule */
	int n, parameters;
};

static const char *number_text(const struct group *g, int member, int i)
{
	const struct form *f = &g->form[member];
	return g->ks->kernel[f->kernel].body + f->number[i].at;
}

static bool same_number(const struct group *g, int member, int i, int other, int j)
{
	const size_t len = g->form[member].number[i].len;
	return len == g->form[other].number[j].len &&
	       !strncmp(number_text(g, member, i), number_text(g, other, j), len);
}

static bool varies(const struct group *g, int i)
{
	for (int m = 1; m < g->n; m++)
		if (!same_number(g, 0, i, m, i))
			return true;
	return false;
}

/* Numbers i and j are the same in each kernel. */
static bool go_together(const struct group *g, int i, int j)
{
	if (g->form->number[i].kind != g->form->number[j].kind)
		return false;
	for (int m = 0; m < g->n; m++)
		if (!same_number(g, m, i, m, j))
			return false;
	return true;
}

/* The parameter that stands for number i: an earlier one's, or a new one; 0: all have it alike. */
static int parameter_for(struct group *g, int i)
{
	const struct number *x = g->form->number;
	if (!varies(g, i))
		return 0;
	for (int j = 0; j < i; j++)
		if (x[j].parameter > 0 && go_together(g, i, j))
			return x[j].parameter;
	return ++g->parameters;
}

static bool list_kinds(struct arena *a, const struct group *g, struct kernel *k)
{
	char kind[SIZES_MAX + 1] = {0};
	for (int i = 0; i < g->form->n; i++)
		if (g->form->number[i].parameter > 0)
			kind[g->form->number[i].parameter - 1] = g->form->number[i].kind;
	k->size_kind = arena_strdup(a, kind);
	return k->size_kind != NULL;
}

/* The body with names for numbers. */
static bool write_function(struct arena *a, const struct group *g, struct kernel *k)
{
	const struct form *f = g->form;
	struct text body = {0};
	size_t at = 0;
	int stage = 0;
	for (int i = 0; i < f->n; i++) {
		const struct number *x = &f->number[i];
		if (x->parameter == 0 && x->kind != WORD_STATIC)
			continue;
		for (; stage < k->nstage && k->stage[stage].end <= x->at; stage++)
			k->shared_end[stage] = body.len + k->stage[stage].end - at;
		text_write(&body, k->body + at, x->at - at);
		if (x->kind != WORD_STATIC)
			text_add(&body, "n%d", x->parameter);
		at = x->at + x->len;
	}
	for (; stage < k->nstage; stage++)
		k->shared_end[stage] = body.len + k->stage[stage].end - at;
	text_puts(&body, k->body + at);
	k->shared_body = body.failed ? NULL : arena_strdup(a, body.s);
	text_free(&body);
	return k->shared_body && list_kinds(a, g, k);
}

/* What member m passes. */
static bool write_sizes(struct arena *a, const struct group *g, int m, struct kernel *k)
{
	k->size = ARENA_ARRAY(a, const char *, g->parameters);
	if (!k->size)
		return false;
	k->nsize = g->parameters;
	for (int i = 0; i < g->form->n; i++) {
		const int p = g->form->number[i].parameter;
		if (p <= 0 || k->size[p - 1])
			continue;
		k->size[p - 1] = arena_strndup(a, number_text(g, m, i), g->form[m].number[i].len);
		if (!k->size[p - 1])
			return false;
	}
	return true;
}

static bool share(struct kernels *ks, struct group *g)
{
	struct kernel *first = &ks->kernel[g->form->kernel];
	for (int i = 0; i < g->form->n; i++)
		g->form->number[i].parameter = parameter_for(g, i);
	if (g->parameters > SIZES_MAX)
		return true;
	first->members = g->n;
	for (int m = 0; m < g->n; m++) {
		ks->kernel[g->form[m].kernel].function = g->form->kernel;
		if (!write_sizes(ks->arena, g, m, &ks->kernel[g->form[m].kernel]))
			return false;
	}
	return write_function(ks->arena, g, first);
}

enum status kernels_share(struct kernels *ks)
{
	struct form *form = ARENA_ARRAY(ks->arena, struct form, ks->n);
	if (!form)
		return diag_nomem(ks->diag);
	for (int i = 0; i < ks->n; i++)
		if (!make_form(ks->arena, &ks->kernel[i], i, &form[i]))
			return diag_nomem(ks->diag);
	qsort(form, (size_t)ks->n, sizeof *form, by_text);
	for (int i = 0, n; i < ks->n; i += n) {
		for (n = 1; i + n < ks->n && !strcmp(form[i].text, form[i + n].text);)
			n++;
		struct group g = {.ks = ks, .form = form + i, .n = n};
		if (n >= SHARE_FROM && !share(ks, &g))
			return diag_nomem(ks->diag);
	}
	return ST_OK;
}
