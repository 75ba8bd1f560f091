#include "data/csv_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- The words of a column --- */

int csv_is_word(const char *cell)
{
	return *cell && !strchr("0123456789+-.", *cell);
}

int csv_word_number(struct csv_words *w, const char *cell)
{
	int low = 0, high = w->n;
	while (low < high) {
		const int middle = low + (high - low) / 2;
		const int order = strcmp(w->word[middle].text, cell);
		if (!order)
			return w->word[middle].number;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (w->n == CSV_WORDS)
		return -2;
	if (w->n == w->room) {
		const int room = 2 * w->room + 16;
		struct csv_word *word = realloc(w->word, (size_t)room * sizeof *word);
		if (!word)
			return -1;
		w->word = word;
		w->room = room;
	}
	char *text = strdup(cell);
	if (!text)
		return -1;
	memmove(w->word + low + 1, w->word + low, (size_t)(w->n - low) * sizeof *w->word);
	w->word[low] = (struct csv_word){text, w->n};
	return w->n++;
}

void csv_words_free(struct csv_words *w)
{
	for (int i = 0; i < w->n; i++)
		free(w->word[i].text);
	free(w->word);
	*w = (struct csv_words){0};
}

/* --- Numbers of words in the file --- */

/* place[k], where it is there, is for column k: the new number of each. */
static void renumber(double *row, int64_t rows, int64_t n, int *const *place)
{
	for (int64_t r = 0; r < rows; r++, row += n)
		for (int64_t k = 0; k < n; k++)
			if (place[k])
				row[k] = place[k][(int64_t)row[k]];
}

static int renumber_file(const struct dataset *d, const struct elements *e, int64_t rows, int64_t n,
	int *const *place, char message[256])
{
	const size_t width = (size_t)n * sizeof(double);
	const int64_t most = width < DATASET_BLOCK ? (int64_t)(DATASET_BLOCK / width) : 1;
	double *const row = malloc((size_t)most * width);
	int rc = row ? 0 : dataset_bad(message, d->path, "out of memory");
	for (int64_t first = 0, m; first < rows && !rc; first += m) {
		m = rows - first < most ? rows - first : most;
		const size_t bytes = (size_t)m * width;
		const off_t at = (off_t)(first * (int64_t)width);
		rc = pread(e->fd, row, bytes, at) != (ssize_t)bytes;
		if (!rc) {
			renumber(row, m, n, place);
			rc = pwrite(e->fd, row, bytes, at) != (ssize_t)bytes;
		}
		if (rc)
			dataset_bad(message, d->path, "its temporary file: %s", strerror(errno));
	}
	free(row);
	return rc;
}

static void free_places(int **place, int64_t n)
{
	for (int64_t i = 0; place && i < n; i++)
		free(place[i]);
	free(place);
}

/* A column's item in the list of all: its name, its words. */
static int add_column(struct csv_table *t, const char *name, const struct csv_words *w)
{
	struct name_list column = {0};
	int rc = name_list_add(&column, name);
	for (int i = 0; i < w->n && !rc; i++)
		rc = name_list_add(&column, w->word[i].text);
	rc = rc || name_list_add(&t->columns, column.text);
	name_list_free(&column);
	return rc;
}

static char *words_alone(const struct csv_words *w)
{
	struct name_list list = {0};
	for (int i = 0; i < w->n; i++)
		if (name_list_add(&list, w->word[i].text)) {
			name_list_free(&list);
			return NULL;
		}
	return list.text;
}

int csv_sort_words(const struct dataset *d, struct csv_table *t, int64_t rows, int n,
	const int *wanted, char *const *name, const struct csv_words *words, char message[256])
{
	int **place = calloc((size_t)n + 1, sizeof *place);
	int rc = !place, any = 0;
	for (int k = 0; k < n && !rc; k++) {
		const struct csv_words *w = &words[wanted[k]];
		rc = add_column(t, name[wanted[k]], w);
		if (!w->n || rc)
			continue;
		any = 1;
		place[k] = malloc((size_t)w->n * sizeof **place);
		rc = !place[k];
		for (int i = 0; i < w->n && !rc; i++)
			place[k][w->word[i].number] = i;
	}
	if (!rc && n == 1 && any)
		rc = !(t->classes = words_alone(&words[wanted[0]]));
	rc = rc     ? dataset_bad(message, d->path, "out of memory")
	     : !any ? 0
		    : renumber_file(d, &t->e, rows, n, place, message);
	free_places(place, n);
	return rc;
}

/* --- Others' lists --- */

/* Where the words of a list stand in another; NULL with a message. */
static int *places_in(const struct dataset *d, const char *column, const char *own,
	const char *theirs, char message[256])
{
	size_t n = 1;
	for (const char *p = own; (p = dataset_class_next(p, NULL, NULL)); n++)
		;
	int *place = malloc(n * sizeof *place);
	int rc = place ? 0 : dataset_bad(message, d->path, "out of memory");
	for (size_t i = 0; i < n && !rc; i++, own = dataset_class_next(own, NULL, NULL)) {
		char *word = name_list_at(own, 0);
		place[i] = word ? (int)name_list_place(theirs, word) : -1;
		if (place[i] < 0)
			rc = dataset_bad(message, d->path,
				"column '%.40s' has '%.40s', which is none of what is trained: "
				"%.60s",
				column, word ? word : "", theirs);
		free(word);
	}
	if (!rc)
		return place;
	free(place);
	return NULL;
}

/* The one of this name among `columns`, malloc's; NULL: there is none, or no memory. */
static char *column_named(const char *columns, const char *name)
{
	for (const char *rest = columns; rest; rest = dataset_class_next(rest, NULL, NULL)) {
		char *column = name_list_at(rest, 0),
		     *called = column ? name_list_at(column, 0) : NULL;
		const int is = called && !strcmp(called, name);
		free(called);
		if (is)
			return column;
		free(column);
	}
	return NULL;
}

/* Column k of ours against the one of its name in `columns`: *place: what its words become, NULL:
 * what they are; and the one whose words count from now on into `all`. */
static int compare_column(const struct dataset *d, int64_t k, const char *columns, int **place,
	struct name_list *all, char message[256])
{
	const struct csv_table *t = d->state;
	char *own = name_list_at(t->columns.text, k), *name = own ? name_list_at(own, 0) : NULL,
	     *trained = name ? column_named(columns, name) : NULL;
	const char *ours = name ? dataset_class_next(own, NULL, NULL) : NULL,
		   *theirs = trained ? dataset_class_next(trained, NULL, NULL) : NULL;
	int rc = name ? 0 : dataset_bad(message, d->path, "out of memory");
	if (trained && !theirs != !ours)
		rc = dataset_bad(message, d->path, "column '%.60s' holds %s, and %s were trained",
			name, ours ? "words" : "numbers", ours ? "numbers" : "words");
	else if (theirs)
		rc = !(*place = places_in(d, name, ours, theirs, message));
	if (!rc && name_list_add(all, trained ? trained : own))
		rc = dataset_bad(message, d->path, "out of memory");
	free(trained);
	free(name);
	free(own);
	return rc;
}

int csv_take_columns(struct dataset *d, const char *columns, char message[256])
{
	struct csv_table *t = d->state;
	struct name_list all = {0};
	const int64_t n = t->columns.n;
	int **place = calloc((size_t)n + 1, sizeof *place);
	int rc = place ? 0 : dataset_bad(message, d->path, "out of memory");
	for (int64_t k = 0; k < n && !rc; k++)
		rc = compare_column(d, k, columns, &place[k], &all, message);
	rc = rc || renumber_file(d, &t->e, d->dim[0], n, place, message);
	free_places(place, n);
	name_list_free(rc ? &all : &t->columns);
	if (!rc)
		t->columns = all;
	return rc;
}

int csv_take_classes(struct dataset *d, const char *classes, char message[256])
{
	const struct csv_table *t = d->state;
	if (!t->classes)
		return 0;
	struct name_list column = {0}, all = {0};
	char *own = name_list_at(t->columns.text, 0), *name = own ? name_list_at(own, 0) : NULL;
	int rc = !name || name_list_add(&column, name);
	char *with = rc ? NULL : malloc(column.used + strlen(classes) + 2);
	if (with)
		sprintf(with, "%s/%s", column.text, classes);
	rc = !with || name_list_add(&all, with) ? dataset_bad(message, d->path, "out of memory")
						: csv_take_columns(d, all.text, message);
	free(with);
	free(name);
	free(own);
	name_list_free(&column);
	name_list_free(&all);
	return rc;
}

void csv_table_free(struct dataset *d)
{
	struct csv_table *t = d->state;
	if (t) {
		name_list_free(&t->columns);
		free(t->classes);
	}
	elements_free(d);
}
