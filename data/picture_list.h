/* Inside data/: the pictures of a folder. */
#ifndef STINT_DATA_PICTURE_LIST_H
#define STINT_DATA_PICTURE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "data/name_list.h"

/* Folders of a folder are classes, in the order of their names, and the pictures in each (.png,
 * .jpg, .jpeg) in the order of theirs: torchvision's ImageFolder. Without folders all are of one.
 */
struct folder {
	char *text;               /* names, a NUL behind each */
	struct name_list classes; /* none: there are no folders */
	size_t room, used;
	int64_t n, roomy;
	struct folder_item {
		size_t name; /* in text, from the folder on: "cat/1.png" */
		int64_t class;
	} * item;
};

/* A class that has no pictures is a mistake, and refused. */
int folder_read(struct folder *out, const char *path, char message[256]);
/* All that are in it and below it, in the order of their names, classes or not. */
int folder_read_all(struct folder *out, const char *path, char message[256]);
/* The pictures whose paths stand in a file, one a line, or "-", standard input. */
int folder_read_list(struct folder *out, const char *path, char message[256]);
/* One picture. */
int folder_read_one(struct folder *out, const char *path, char message[256]);
/* The classes count by the place of their names in `classes`, of which some may have no folder; a
 * folder that is none of them is a mistake. */
int folder_take_classes(struct folder *f, const char *path, const char *classes, char message[256]);
void folder_free(struct folder *f);

#endif
