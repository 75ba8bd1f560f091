/* In which order `--help` lists what compile, plan, frontier and show take. */
#ifndef STINT_CLI_OPTION_GROUPS_H
#define STINT_CLI_OPTION_GROUPS_H

enum { OPTION_GROUPS = 7 };
extern const char *const option_group_title[OPTION_GROUPS];
/* Of an option; one that no group lists is in the last. */
int option_group(const char *name);

#endif
