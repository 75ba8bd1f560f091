/* What a checkpoint's note "training" says of how its values were made: a line a setting, "NAME
 * VALUE". */
#ifndef STINT_CLI_TRAINING_NOTE_H
#define STINT_CLI_TRAINING_NOTE_H

#include "cli/data_options.h"
#include "import/import.h"

/* One line more; what would break it is spelled "%0a". */
void note_put(struct text *note, const char *name, const char *value);
/* The value of a line, *n bytes long, as it was spelled; NULL: there is none. */
const char *note_find(const char *note, const char *name, size_t len, size_t *n);

/* The value as it was put, in the arena; NULL: there is none, or (*nomem) no memory. */
char *note_value(struct arena *a, const char *note, const char *name, bool *nomem);

/* The data that values are asked about are read as those that they were trained on, but where the
 * command line says otherwise, which is told: --scale, --shift, sizes of pictures, names of
 * classes. `path`: the file of the values, which need not be a checkpoint; NULL: nothing is known.
 */
enum status note_take_data(
	struct arena *a, const char *path, struct data_options *o, struct diag *d);
/* What a model that has values of the file should tell of them: their classes as
 * "stint.classes", a "/" between two names, --scale, --shift, --resize, --crop and whether pictures
 * are gray or rgb; columns of tables as "stint.columns.TENSOR", and words in them, in the order of
 * their numbers, as "stint.words.COLUMN". *out: of the arena, a NULL key behind the last. */
enum status note_of_model(
	struct arena *a, const char *path, struct export_note **out, struct diag *d);
/* Of a folder of checkpoints what words mean: names of classes and columns (o->classes, o->note);
 * to go on training. */
enum status note_words(struct arena *a, const char *folder, struct data_options *o, struct diag *d);

#endif
