#include "train/metrics.h"

#include <math.h>
#include <string.h>

#include "base/nearest.h"
#include "train/auc.h"
#include "train/option_text.h"

enum { CLASSES_SHOWN = 4096 }; /* a confusion matrix of more takes more than 128 MiB */

static const struct kind {
	const char *name;
	unsigned tasks; /* 1 << METRIC_CLASSES ... */
	bool averages;  /* over classes: `average=` */
	bool falls;
} kinds[] = {
	[METRIC_ACCURACY] = {"accuracy", 1 << METRIC_CLASSES | 1 << METRIC_BINARY, true, false},
	[METRIC_TOP_K] = {"top-k", 1 << METRIC_CLASSES, false, false},
	[METRIC_PRECISION] = {"precision", 1 << METRIC_CLASSES | 1 << METRIC_BINARY, true, false},
	[METRIC_RECALL] = {"recall", 1 << METRIC_CLASSES | 1 << METRIC_BINARY, true, false},
	[METRIC_F1] = {"f1", 1 << METRIC_CLASSES | 1 << METRIC_BINARY, true, false},
	[METRIC_IOU] = {"iou", 1 << METRIC_CLASSES | 1 << METRIC_BINARY, true, false},
	[METRIC_PERPLEXITY] = {"perplexity", 1 << METRIC_CLASSES, false, true},
	[METRIC_AUC] = {"auc", 1 << METRIC_CLASSES | 1 << METRIC_BINARY, true, false},
	[METRIC_CONFUSION] = {"confusion", 1 << METRIC_CLASSES | 1 << METRIC_BINARY, false, false},
	[METRIC_MAE] = {"mae", 1 << METRIC_VALUES | 1 << METRIC_BINARY, false, true},
	[METRIC_RMSE] = {"rmse", 1 << METRIC_VALUES | 1 << METRIC_BINARY, false, true},
};
enum { NKIND = sizeof kinds / sizeof *kinds };

/* --- What is asked for --- */

static enum status unknown(struct arena *a, const char *name, struct diag *d)
{
	const char *all = "", *known[NKIND];
	for (int i = 0; i < NKIND && all; i++) {
		all = arena_printf(a, "%s%s%s", all, i ? ", " : "", kinds[i].name);
		known[i] = kinds[i].name;
	}
	return all ? diag_fail(d, ST_USAGE, NULL, did_you_mean(a, name, known, NKIND),
			     "no metric '%s'; there are %s", name, all)
		   : diag_nomem(d);
}

/* "acc", as Keras has it, is accuracy. */
static bool is_short(const char *text)
{
	return !strncmp(text, "acc", 3) && (!text[3] || text[3] == ':');
}

static enum status parse_one(struct arena *a, const char *text, struct metric *m, struct diag *d)
{
	struct spec s;
	int which = 0, average;
	if (is_short(text)) {
		text = arena_printf(a, "accuracy%s", text + 3);
		if (!text)
			return diag_nomem(d);
	}
	TRY(spec_parse(a, "--metric", text, &s, d));
	while (which < NKIND && strcmp(kinds[which].name, s.name) != 0)
		which++;
	if (which == NKIND)
		return unknown(a, s.name, d);
	*m = (struct metric){
		.label = text, .text = text, .which = (enum metric_which)which, .k = 5};
	average = which == METRIC_ACCURACY ? METRIC_MICRO : METRIC_MACRO;
	if (kinds[which].averages)
		TRY(spec_choice(&s, "average",
			which == METRIC_AUC ? "macro" : "macro micro weighted", &average, d));
	m->average = (enum metric_average)average;
	if (which == METRIC_AUC)
		TRY(spec_whole(&s, "thresholds", 2, 1000000, &m->thresholds, d));
	m->output = spec_word(&s, "output");
	if (which == METRIC_TOP_K) {
		TRY(spec_whole(&s, "k", 1, INT32_MAX, &m->k, d));
		m->label = arena_printf(a, "top-%lld%s%s", (long long)m->k,
			m->output ? ":output=" : "", m->output ? m->output : "");
		if (!m->label)
			return diag_nomem(d);
	}
	return spec_end(&s, d);
}

enum status metrics_parse(
	struct arena *a, const char *const *text, int n, struct metrics *out, struct diag *d)
{
	*out = (struct metrics){0};
	if (n > METRICS_MAX)
		return diag_fail(d, ST_USAGE, NULL, NULL, "at most %d metrics", METRICS_MAX);
	for (int i = 0; i < n; i++) {
		TRY(parse_one(a, text[i], &out->item[i], d));
		if (metrics_find(out, out->item[i].label) >= 0)
			return diag_fail(
				d, ST_USAGE, NULL, NULL, "--metric %s is given twice", text[i]);
		out->n++;
	}
	return ST_OK;
}

bool metric_falls(const struct metric *m)
{
	return kinds[m->which].falls;
}

int metrics_find(const struct metrics *m, const char *name)
{
	if (!strcmp(name, "acc"))
		name = "accuracy";
	for (int i = 0; i < m->n; i++)
		if (!strcmp(m->item[i].label, name) || !strcmp(m->item[i].text, name))
			return i;
	return -1;
}

/* --- What is scored --- */

static bool binary(const struct metrics *m)
{
	return m->task.kind == METRIC_BINARY;
}

int64_t metrics_classes(const struct metrics *m)
{
	return binary(m) ? 2 : m->task.classes;
}

bool metric_suits(const struct metric *m, const struct metric_task *task)
{
	return kinds[m->which].tasks & 1u << task->kind;
}

static enum status suits(const struct metric *x, const struct metric_task *t, struct diag *d)
{
	static const char *const wants[] = {"has no target that the loss compares an output with",
		"is trained with labels of classes", "is trained with answers of yes and no",
		"is trained with numbers"};
	if (!metric_suits(x, t))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--metric %s: the model %s", x->text,
			wants[t->kind]);
	if (x->which == METRIC_CONFUSION && t->classes > CLASSES_SHOWN)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--metric confusion: at most %d classes; the model has %lld", CLASSES_SHOWN,
			(long long)t->classes);
	return ST_OK;
}

static enum status start_curve(struct arena *a, struct metrics *m, int i, struct diag *d)
{
	struct metric *x = &m->item[i];
	const int64_t classes = binary(m) ? 1 : m->task.classes;
	int64_t most, scores;
	if (!size_mul(m->task.rows, m->task.inner, &most) || !size_mul(most, classes, &scores))
		return diag_nomem(d);
	if (!x->thresholds && scores > AUC_SCORES) {
		x->thresholds = AUC_THRESHOLDS;
		diag_note(d, NULL, "auc:thresholds=N asks for another number",
			"auc: %lld scores are more than are kept: between %d thresholds",
			(long long)scores, AUC_THRESHOLDS);
	}
	m->curve[i] = auc_new(a, classes, most, x->thresholds);
	return m->curve[i] ? ST_OK : diag_nomem(d);
}

enum status metrics_start(
	struct arena *a, struct metrics *m, const struct metric_task *task, struct diag *d)
{
	m->task = *task;
	const int64_t classes = metrics_classes(m);
	for (int i = 0; i < m->n; i++) {
		TRY(suits(&m->item[i], task, d));
		const enum metric_which which = m->item[i].which;
		if (which == METRIC_AUC)
			TRY(start_curve(a, m, i, d));
		if (which == METRIC_CONFUSION &&
			!(m->confusion = ARENA_ARRAY(a, int64_t, classes * classes)))
			return diag_nomem(d);
	}
	if (task->kind != METRIC_CLASSES && task->kind != METRIC_BINARY)
		return ST_OK;
	m->hit = ARENA_ARRAY(a, int64_t, classes);
	m->said = ARENA_ARRAY(a, int64_t, classes);
	m->were = ARENA_ARRAY(a, int64_t, classes);
	m->row = ARENA_ARRAY(a, double, 2 * classes); /* scores; probabilities */
	return m->hit && m->said && m->were && m->row ? ST_OK : diag_nomem(d);
}

static void zero(int64_t *p, int64_t n)
{
	for (int64_t i = 0; p && i < n; i++)
		p[i] = 0;
}

void metrics_clear(struct metrics *m)
{
	const int64_t classes = metrics_classes(m);
	zero(m->hit, classes);
	zero(m->said, classes);
	zero(m->were, classes);
	zero(m->confusion, classes * classes);
	for (int i = 0; i < m->n; i++) {
		m->item[i].right = 0;
		if (m->curve[i])
			auc_clear(m->curve[i]);
	}
	m->counted = m->right = 0;
	m->sums = m->batch = (struct metric_sums){0};
	m->not_binary = false;
}

/* --- A batch --- */

static bool wanted(const struct metrics *m, enum metric_which which)
{
	for (int i = 0; i < m->n; i++)
		if (m->item[i].which == which)
			return true;
	return false;
}

static double number(const void *p, bool wide, int64_t i)
{
	return wide ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static void count(struct metrics *m, int64_t label, int64_t best)
{
	m->counted++;
	m->right += best == label;
	m->hit[label] += best == label;
	m->said[best]++;
	m->were[label]++;
	if (m->confusion)
		m->confusion[label * metrics_classes(m) + best]++;
}

/* A score that is not a number is never the largest, unless it is the first: then it stays. */
static int64_t largest(const double *x, int64_t n)
{
	int64_t best = 0;
	for (int64_t c = 1; c < n; c++)
		if (x[c] > x[best])
			best = c;
	return best;
}

/* Which place the label's score takes, from 0; of equal ones the first is before. */
static int64_t place_of(const double *x, int64_t n, int64_t label)
{
	int64_t before = 0;
	for (int64_t c = 0; c < n; c++)
		before += x[c] > x[label] || (x[c] == x[label] && c < label);
	return isnan(x[label]) ? n : before;
}

/* *p: softmax of x; returns the logarithm of the label's. */
static double softmax(const double *x, int64_t n, int64_t label, double *p)
{
	const double most = x[largest(x, n)];
	double sum = 0;
	for (int64_t c = 0; c < n; c++)
		sum += p[c] = exp(x[c] - most);
	for (int64_t c = 0; c < n; c++)
		p[c] /= sum;
	return x[label] - most - log(sum);
}

static void add_label(struct metrics *m, int64_t label, bool soft)
{
	const int64_t n = m->task.classes;
	count(m, label, largest(m->row, n));
	if (soft)
		m->batch.log_loss -= softmax(m->row, n, label, m->row + n);
	for (int i = 0; i < m->n; i++) {
		struct metric *x = &m->item[i];
		if (x->which == METRIC_TOP_K)
			x->right += place_of(m->row, n, label) < x->k;
		else if (x->which == METRIC_AUC)
			auc_add(m->curve[i], m->row + n, label);
	}
}

static void add_classes(struct metrics *m, const void *scores, const int64_t *label, int64_t rows)
{
	const int64_t n = m->task.classes, inner = m->task.inner;
	const bool soft = wanted(m, METRIC_PERPLEXITY) || wanted(m, METRIC_AUC);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < inner; i++) {
			const int64_t want = label[r * inner + i];
			if (want == m->task.ignore)
				continue;
			for (int64_t c = 0; c < n; c++)
				m->row[c] = number(scores, m->task.wide, (r * n + c) * inner + i);
			add_label(m, want, soft);
		}
}

static void add_error(struct metrics *m, double answer, double target)
{
	m->batch.absolute += fabs(answer - target);
	m->batch.square += (answer - target) * (answer - target);
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static void add_binary(struct metrics *m, double x, double y)
{
	const double p = m->task.logits ? sigmoid(x) : x;
	const int64_t is = y > 0.5;
	m->not_binary |= y != 0 && y != 1;
	count(m, is, m->task.logits ? x > 0 : x > 0.5);
	add_error(m, p, y);
	for (int i = 0; i < m->n; i++)
		if (m->curve[i]) /* in the order of the scores probabilities are, too */
			auc_add(m->curve[i], m->item[i].thresholds ? &p : &x, is);
}

static void add_values(struct metrics *m, const void *answers, const void *target, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		const double x = number(answers, m->task.wide, i),
			     y = number(target, m->task.wide_target, i);
		if (binary(m)) {
			add_binary(m, x, y);
		} else {
			m->counted++;
			add_error(m, x, y);
		}
	}
}

void metrics_add_sums(struct metric_sums *to, const struct metric_sums *batch)
{
	to->log_loss += batch->log_loss;
	to->absolute += batch->absolute;
	to->square += batch->square;
}

void metrics_add(struct metrics *m, const void *scores, const void *target, int64_t rows)
{
	m->batch = (struct metric_sums){0};
	if (m->task.kind == METRIC_CLASSES)
		add_classes(m, scores, target, rows);
	else
		add_values(m, scores, target, rows * m->task.inner);
	metrics_add_sums(&m->sums, &m->batch);
}

/* --- Several processes --- */

void metrics_pass_over(struct metrics *m, int64_t rows)
{
	for (int i = 0; i < m->n; i++)
		if (m->curve[i])
			auc_pass_over(m->curve[i], rows * m->task.inner);
}

enum status metrics_join(struct metrics *m, const struct metric_join *join, struct diag *d)
{
	const int64_t classes = metrics_classes(m);
	int64_t number[METRICS_MAX + 3] = {m->counted, m->right, m->not_binary};
	int64_t *const per_class[] = {m->hit, m->said, m->were};
	for (int i = 0; i < m->n; i++)
		number[3 + i] = m->item[i].right;
	TRY(join->counts(join->user, number, 3 + m->n, d));
	m->counted = number[0];
	m->right = number[1];
	m->not_binary = number[2] != 0;
	for (int i = 0; i < m->n; i++)
		m->item[i].right = number[3 + i];
	for (int i = 0; i < 3; i++)
		if (per_class[i])
			TRY(join->counts(join->user, per_class[i], classes, d));
	if (m->confusion)
		TRY(join->counts(join->user, m->confusion, classes * classes, d));
	for (int i = 0; i < m->n; i++)
		if (m->curve[i])
			TRY(auc_join(m->curve[i], join, d));
	return ST_OK;
}

/* --- What it comes to --- */

static double share(double part, double of)
{
	return of > 0 ? part / of : 0;
}

/* Of counts: rightly said to be it, said to be it, it. */
static double score(enum metric_which which, double hit, double said, double were)
{
	switch (which) {
	case METRIC_PRECISION:
		return share(hit, said);
	case METRIC_F1:
		return share(2 * hit, said + were);
	case METRIC_IOU:
		return share(hit, said + were - hit);
	default: /* the accuracy of a class is its recall */
		return share(hit, were);
	}
}

bool metrics_per_class(const struct metrics *m, int i)
{
	const enum metric_which which = m->item[i].which;
	return !binary(m) && kinds[which].averages;
}

double metrics_class_value(const struct metrics *m, int i, int64_t c)
{
	if (m->curve[i])
		return auc_value(m->curve[i], c);
	return score(m->item[i].which, (double)m->hit[c], (double)m->said[c], (double)m->were[c]);
}

/* Classes that neither occur nor are said to have no part in a mean, except in the AUC's. */
static double averaged(const struct metrics *m, int i)
{
	double sum = 0, weights = 0;
	for (int64_t c = 0; c < m->task.classes; c++) {
		double weight = m->curve[i] || m->said[c] + m->were[c] > 0;
		if (m->item[i].average == METRIC_WEIGHTED)
			weight = (double)m->were[c];
		if (m->item[i].which == METRIC_IOU && c == m->task.ignore)
			weight = 0;
		if (weight > 0)
			sum += weight * metrics_class_value(m, i, c);
		weights += weight;
	}
	return share(sum, weights);
}

static double micro(const struct metrics *m, int i)
{
	const double all = (double)m->counted, right = (double)m->right;
	double said = all, were = all;
	if (m->item[i].which == METRIC_IOU && m->task.ignore >= 0 &&
		m->task.ignore < m->task.classes) /* its union is left out */
		said -= (double)m->said[m->task.ignore];
	return score(m->item[i].which, right, said, were);
}

double metrics_value(const struct metrics *m, int i)
{
	const struct metric *x = &m->item[i];
	const double all = (double)m->counted;
	switch (x->which) {
	case METRIC_CONFUSION:
		return NAN;
	case METRIC_TOP_K:
		return share((double)x->right, all);
	case METRIC_PERPLEXITY:
		return m->counted ? exp(m->sums.log_loss / all) : NAN;
	case METRIC_MAE:
		return m->counted ? m->sums.absolute / all : NAN;
	case METRIC_RMSE:
		return m->counted ? sqrt(m->sums.square / all) : NAN;
	default:
		break;
	}
	if (binary(m) && (x->which == METRIC_ACCURACY || x->average == METRIC_MICRO))
		return share((double)m->right, all);
	if (binary(m)) /* of yes */
		return metrics_class_value(m, i, m->curve[i] ? 0 : 1);
	return x->average == METRIC_MICRO ? micro(m, i) : averaged(m, i);
}
