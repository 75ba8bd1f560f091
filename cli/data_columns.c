#include "cli/data_columns.h"

#include <stdlib.h>
#include <string.h>

#include "cli/class_names.h"
#include "cli/training_note.h"
#include "data/name_list.h"

/* --- The note --- */

void columns_note(struct text *note, const struct feed *f)
{
	int n = 0;
	for (int i = 0; i < f->n; i++) {
		const char *columns = dataset_columns(&f->bound[i].data);
		struct name_list name = {0};
		struct text value = {0};
		char key[32];
		if (!columns)
			continue;
		value.failed = name_list_add(&name, feed_tensor(f, i)->name) != 0;
		text_add(&value, "%s/%s", name.text ? name.text : "", columns);
		snprintf(key, sizeof key, "columns.%d", n++);
		note_put(note, key, value.failed ? "" : value.s);
		note->failed |= value.failed;
		text_free(&value);
		name_list_free(&name);
	}
}

/* Line `n` of these: *tensor, *columns; NULL: there is none. */
static enum status line_of(struct arena *a, const char *note, int n, const char **tensor,
	const char **columns, struct diag *d)
{
	char key[32];
	snprintf(key, sizeof key, "columns.%d", n);
	bool nomem = false;
	const char *value = note ? note_value(a, note, key, &nomem) : NULL;
	size_t bytes = 0;
	*tensor = *columns = NULL;
	if (nomem)
		return diag_nomem(d);
	if (!value)
		return ST_OK;
	(void)dataset_class_next(value, NULL, &bytes);
	char *name = ARENA_ARRAY(a, char, bytes + 1);
	if (!name)
		return diag_nomem(d);
	*columns = dataset_class_next(value, name, NULL);
	*tensor = name;
	return ST_OK;
}

static enum status columns_of(
	struct arena *a, const char *note, const char *tensor, const char **columns, struct diag *d)
{
	const char *name;
	int n = 0;
	do
		TRY(line_of(a, note, n++, &name, columns, d));
	while (name && strcmp(name, tensor) != 0);
	return ST_OK;
}

/* --- Columns' names --- */

/* "a, b" of a list of columns. */
static enum status spelled(struct arena *a, const char *columns, const char **out, struct diag *d)
{
	struct class_names column, item;
	*out = "";
	TRY(class_names_split(a, columns, &column, d));
	for (int64_t i = 0; i < column.n; i++) {
		TRY(class_names_split(a, column.name[i], &item, d));
		*out = arena_printf(a, "%s%s%s", *out, i ? ", " : "", item.name[0]);
		if (!*out)
			return diag_nomem(d);
	}
	return ST_OK;
}

/* What is asked for by name, and is not what was trained. */
static enum status compare(struct arena *a, const struct data_options *o, const char *was,
	const char *is, struct diag *d)
{
	const char *have, *had;
	TRY(spelled(a, was, &had, d));
	TRY(spelled(a, is, &have, d));
	if (strcmp(have, had) != 0)
		diag_warn(d, &(struct where){.file = o->trained}, NULL,
			"was trained with the columns %s, and is asked with %s", had, have);
	return ST_OK;
}

/* Words have numbers by the order of their names: good for labels, and to look up rows by. */
static enum status check_words(
	struct arena *a, const struct stint_tensor *t, const struct dataset *data, struct diag *d)
{
	const char *columns = dataset_columns(data);
	struct class_names column, item;
	if (!columns || (t->dtype != STINT_F32 && t->dtype != STINT_F64))
		return ST_OK;
	TRY(class_names_split(a, columns, &column, d));
	for (int64_t i = 0; i < column.n; i++) {
		TRY(class_names_split(a, column.name[i], &item, d));
		if (item.n > 1)
			return diag_fail(d, ST_INVALID, &(struct where){.file = data->path},
				"csv:COLUMN,COLUMN:FILE leaves it out; labels and inputs of whole "
				"numbers (of an embedding) take words",
				"column '%s' holds words ('%s'); '%s' wants real numbers",
				item.name[0], item.name[1], t->name);
	}
	return ST_OK;
}

/* --- Data --- */

enum status columns_source(struct arena *a, const struct data_options *o,
	const struct stint_tensor *t, const char **path, const char **trained, struct diag *d)
{
	const char *names;
	TRY(columns_of(a, o->note, t->name, trained, d));
	char *with = *trained ? dataset_with_columns(*path, *trained) : NULL;
	if (!with)
		return ST_OK;
	const char *kept = arena_strdup(a, with);
	free(with);
	TRY(spelled(a, *trained, &names, d));
	diag_note(d, &(struct where){.file = *path}, NULL, "columns %s, as in training", names);
	*path = kept;
	return kept ? ST_OK : diag_nomem(d);
}

enum status columns_take(struct arena *a, const struct data_options *o,
	const struct stint_tensor *t, const char *trained, struct dataset *data, struct diag *d)
{
	char message[256];
	const char *columns = dataset_columns(data);
	TRY(check_words(a, t, data, d));
	if (!columns || !trained)
		return ST_OK;
	TRY(compare(a, o, trained, columns, d));
	return dataset_take_columns(data, trained, message)
		       ? diag_fail(d, ST_INVALID, NULL, NULL, "%s", message)
		       : ST_OK;
}
