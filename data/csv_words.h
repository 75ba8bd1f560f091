/* Inside data/: words in the columns of a table, by numbers. */
#ifndef STINT_DATA_CSV_WORDS_H
#define STINT_DATA_CSV_WORDS_H

#include "data/kind.h"
#include "data/name_list.h"

/* More would be names of samples, not of kinds of them. */
enum { CSV_WORDS = 4096 };

/* The different words of one column in the order of their bytes, each with the number that it had
 * when it was met first. */
struct csv_words {
	int n, room; /* n 0: a column of numbers */
	struct csv_word {
		char *text;
		int number;
	} * word;
};

/* Whether a cell that is no number is a word: what begins as a number does is a mistake. */
int csv_is_word(const char *cell);
/* The number of a word; -1: out of memory, -2: more than CSV_WORDS. */
int csv_word_number(struct csv_words *w, const char *cell);
void csv_words_free(struct csv_words *w);

/* Of "COLUMN,COLUMN:FILE" the colon, NULL: no columns are named. A backslash in a column's name
 * takes the character behind it. */
const char *csv_columns_end(const char *text);

/* A table that has been read: rows of doubles in a file, a word's place in its column's list among
 * them. */
struct csv_table {
	struct elements e;        /* first: what elements_read takes */
	struct name_list columns; /* as dataset_columns */
	char *classes;            /* of a column of words that is alone; NULL */
};

/* For each of `n` columns (wanted[i] of `words`, called name[wanted[i]]) the list, and in all
 * `rows` the words' places in it. 1 with a message. */
int csv_sort_words(const struct dataset *d, struct csv_table *t, int64_t rows, int n,
	const int *wanted, char *const *name, const struct csv_words *words, char message[256]);
/* Other lists in the place of the table's own, whose words must be among them. */
int csv_take_columns(struct dataset *d, const char *columns, char message[256]);
int csv_take_classes(struct dataset *d, const char *classes, char message[256]);
void csv_table_free(struct dataset *d);

#endif
