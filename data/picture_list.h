/* Inside data/: the pictures of a folder. */
#ifndef STINT_DATA_PICTURE_LIST_H
#define STINT_DATA_PICTURE_LIST_H

#include <stddef.h>
#include <stdint.h>

/* Folders of a folder are classes, in the order of their names, and the pictures in each (.png,
 * .jpg, .jpeg) in the order of theirs: torchvision's ImageFolder. Without folders all are of one.
 */
struct folder {
	char *text; /* names, a NUL behind each */
	size_t room, used;
	int64_t n, roomy, nclass;
	struct folder_item {
		size_t name; /* in text, from the folder on: "cat/1.png" */
		int64_t class;
	} * item;
};

int folder_read(struct folder *out, const char *path, char message[256]);
void folder_free(struct folder *f);

#endif
