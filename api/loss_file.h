/* Lists of numbers in a loss's options that stand in files. */
#ifndef STINT_API_LOSS_FILE_H
#define STINT_API_LOSS_FILE_H

#include "base/base.h"

/* A copy of "LOSS:OPTION=FILE.npy,..." in `a`, with the numbers of each file, .npy or .txt, in
 * place of its name: "LOSS:OPTION=1;2;0.5,...". Such a text says all that a step is compiled from.
 * An .npy is flattened; a .txt has numbers between blanks, commas or semicolons.
 * "weight=balanced:LABELS" is the weights of the classes of such labels, as train's --target takes
 * them. `output=NAME`, `name=NAME`, `target=NAME` and `output:NAME` are names, and stay. Reports a
 * file that cannot be read, and what in it is no number. */
enum status loss_files_read(struct arena *a, const char *loss, const char **out, struct diag *d);

#endif
