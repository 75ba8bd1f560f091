/* How sources of data are written: what --help lists, and what may have been meant. */
#ifndef STINT_CLI_DATA_FORMS_H
#define STINT_CLI_DATA_FORMS_H

struct arena;

#define INPUT_FORMS                                                                                \
	".npy, IDX(.gz), FILE.npz:NAME, FILE.safetensors:NAME, csv:FILE, csv:COLUMN,...:FILE, "    \
	"tokens:T:FILE, images:SIZE:FOLDER, a picture, a folder or a list (.txt) of them, "        \
	"cmd:PROGRAM"
#define TARGET_FORMS                                                                               \
	".npy and the like, csv:COLUMN:FILE, tokens:T+1:FILE, labels:FOLDER, masks:SIZE:FOLDER"

/* What helps where a source cannot be opened, by its ending, its beginning and what lies there;
 * NULL: nothing that is known, or no memory. */
const char *data_form_hint(struct arena *a, const char *source);

#endif
