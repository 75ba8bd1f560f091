/* Lists of names as one text, as dataset_classes has them. */
#ifndef STINT_DATA_NAME_LIST_H
#define STINT_DATA_NAME_LIST_H

#include <stddef.h>
#include <stdint.h>

/* malloc's; begins as zeros. */
struct name_list {
	char *text; /* NULL: none */
	size_t used, room;
	int64_t n;
};

/* One more; 1: out of memory. */
int name_list_add(struct name_list *l, const char *name);
void name_list_free(struct name_list *l);
/* The place of a name among those of a text; -1: it is none of them. */
int64_t name_list_place(const char *text, const char *name);
/* The name at this place, malloc's; NULL: there is none, or no memory. */
char *name_list_at(const char *text, int64_t place);

#endif
