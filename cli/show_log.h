/* stint show LOG ... */
#ifndef STINT_CLI_SHOW_LOG_H
#define STINT_CLI_SHOW_LOG_H

#include "base/base.h"

/* Whether what is to be shown is a log of training. */
bool show_log_meant(int argc, const char **argv);
enum status show_log(int argc, const char **argv, struct diag *d);

#endif
