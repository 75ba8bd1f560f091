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

/* The data that values are asked about are read as those that they were trained on, but where the
 * command line says otherwise, which is told: --scale, --shift, sizes of pictures, names of
 * classes. `path`: the file of the values, which need not be a checkpoint; NULL: nothing is known.
 */
enum status note_take_data(
	struct arena *a, const char *path, struct data_options *o, struct diag *d);
/* What a model that has values of the file should tell of them: their classes as
 * "stint.classes", a "/" between two names, --scale, --shift, --resize and --crop; and a NULL key.
 */
enum { MODEL_NOTES = 6 };
enum status note_of_model(
	struct arena *a, const char *path, struct export_note note[MODEL_NOTES], struct diag *d);
/* Of a folder of checkpoints the names of classes, NULL: none; to go on training. */
enum status note_classes(struct arena *a, const char *folder, const char **classes, struct diag *d);

#endif
