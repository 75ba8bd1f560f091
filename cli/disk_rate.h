/* `stint bench --disk FOLDER`: what a disk gives and takes, for `--offload disk:FOLDER:RATE`. */
#ifndef STINT_CLI_DISK_RATE_H
#define STINT_CLI_DISK_RATE_H

#include "base/base.h"

/* Bytes a second, through a file without a name in `folder` that is gone afterwards. */
struct disk_rate {
	double reads, writes;
};
enum status disk_rate_measure(const char *folder, struct disk_rate *out, struct diag *d);

#endif
