/* How much the cache's folder of objects may hold. */
#ifndef STINT_API_OBJECTS_ROOM_H
#define STINT_API_OBJECTS_ROOM_H

/* Best effort, at most every ten minutes: once the folder holds more than 512 MiB, what was not
 * used for the longest time goes, until a quarter of that is free. */
void objects_room(const char *folder);

#endif
