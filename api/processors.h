/* How many processors this machine has. */
#ifndef STINT_API_PROCESSORS_H
#define STINT_API_PROCESSORS_H

/* Those that are online: from 1 to `most`. */
int processors(int most);

#endif
