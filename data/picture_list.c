#include "data/picture_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "data/kind.h"

static int is_picture(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && dot != name &&
	       (!strcasecmp(dot, ".png") || !strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"));
}

/* strcmp, whatever the locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int grow(struct folder *f, size_t bytes)
{
	if (f->used + bytes > f->room) {
		const size_t room = 2 * (f->used + bytes);
		char *text = realloc(f->text, room);
		if (!text)
			return 1;
		f->text = text;
		f->room = room;
	}
	if (f->n == f->roomy) {
		const int64_t roomy = 2 * f->n + 64;
		struct folder_item *item = realloc(f->item, (size_t)roomy * sizeof *item);
		if (!item)
			return 1;
		f->item = item;
		f->roomy = roomy;
	}
	return 0;
}

/* "FOLDER/NAME", or "NAME" where the folder is "". */
static int add(struct folder *f, const char *in, const char *name)
{
	const size_t a = strlen(in), b = strlen(name);
	if (grow(f, a + b + 2))
		return 1;
	f->item[f->n++] = (struct folder_item){f->used, f->nclass};
	memcpy(f->text + f->used, in, a);
	f->used += a;
	if (a)
		f->text[f->used++] = '/';
	memcpy(f->text + f->used, name, b + 1);
	f->used += b + 1;
	return 0;
}

static char *joined(const char *path, const char *name)
{
	char *all = malloc(strlen(path) + strlen(name) + 2);
	if (all) {
		strcpy(all, path);
		strcat(all, "/");
		strcat(all, name);
	}
	return all;
}

static int is_folder(const char *path, const char *name)
{
	struct stat st;
	char *all = joined(path, name);
	const int is = all && stat(all, &st) == 0 && S_ISDIR(st.st_mode);
	free(all);
	return is;
}

static void list_free(struct dirent **list, int n)
{
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

/* The pictures of one folder; -1: cannot be read. */
static int add_pictures(struct folder *f, const char *path, const char *class)
{
	struct dirent **list;
	char *all = *class ? joined(path, class) : strdup(path);
	const int n = all ? scandir(all, &list, visible, by_bytes) : -1;
	free(all);
	int rc = n < 0;
	for (int i = 0; i < n && !rc; i++)
		if (is_picture(list[i]->d_name))
			rc = add(f, class, list[i]->d_name);
	if (n >= 0)
		list_free(list, n);
	f->nclass++;
	return rc;
}

int folder_read(struct folder *out, const char *path, char message[256])
{
	struct dirent **list;
	*out = (struct folder){.text = NULL};
	const int n = scandir(path, &list, visible, by_bytes);
	if (n < 0)
		return dataset_bad(message, path, "cannot read the folder: %s", strerror(errno));
	int rc = 0;
	for (int i = 0; i < n && !rc; i++)
		if (is_folder(path, list[i]->d_name))
			rc = add_pictures(out, path, list[i]->d_name);
	list_free(list, n);
	if (!rc && out->nclass == 0)
		rc = add_pictures(out, path, "");
	if (rc)
		return dataset_bad(message, path, "cannot read its folders: %s", strerror(errno));
	return out->n ? 0 : dataset_bad(message, path, "holds no pictures (.png, .jpg)");
}

void folder_free(struct folder *f)
{
	free(f->text);
	free(f->item);
}
