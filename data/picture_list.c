#include "data/picture_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "data/kind.h"

int dataset_is_picture(const char *name)
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
	f->item[f->n++] = (struct folder_item){f->used, f->classes.n};
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

/* The pictures of one folder; not 0: it cannot be read. */
static int add_pictures(struct folder *f, const char *path, const char *class)
{
	struct dirent **list;
	char *all = *class ? joined(path, class) : strdup(path);
	const int n = all ? scandir(all, &list, visible, by_bytes) : -1;
	free(all);
	int rc = n < 0;
	for (int i = 0; i < n && !rc; i++)
		if (dataset_is_picture(list[i]->d_name))
			rc = add(f, class, list[i]->d_name);
	if (n >= 0)
		list_free(list, n);
	return rc;
}

/* The pictures of one class. */
static int add_folder(struct folder *f, const char *path, const char *class, char message[256])
{
	const int64_t before = f->n;
	if (add_pictures(f, path, class) || name_list_add(&f->classes, class))
		return dataset_bad(message, path, "cannot read its folders: %s", strerror(errno));
	return f->n > before ? 0
			     : dataset_bad(message, path,
				       "its folder '%.100s' holds no pictures (.png, .jpg); each "
				       "folder is a class",
				       class);
}

static int any(const struct folder *f, const char *path, char message[256])
{
	return f->n ? 0 : dataset_bad(message, path, "holds no pictures (.png, .jpg)");
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
			rc = add_folder(out, path, list[i]->d_name, message);
	list_free(list, n);
	if (rc)
		return rc;
	if (out->classes.n == 0 && add_pictures(out, path, ""))
		return dataset_bad(message, path, "cannot read the folder: %s", strerror(errno));
	return any(out, path, message);
}

static int add_below(struct folder *f, const char *path, const char *below, int depth)
{
	enum { DEEPEST = 64 }; /* a link may lead back */
	struct dirent **list;
	char *all = *below ? joined(path, below) : strdup(path);
	const int n = all && depth < DEEPEST ? scandir(all, &list, visible, by_bytes) : -1;
	int rc = n < 0;
	for (int i = 0; i < n && !rc; i++) {
		char *name = *below ? joined(below, list[i]->d_name) : strdup(list[i]->d_name);
		rc = !name;
		if (name && is_folder(path, name))
			rc = add_below(f, path, name, depth + 1);
		else if (name && dataset_is_picture(name))
			rc = add(f, "", name);
		free(name);
	}
	if (n >= 0)
		list_free(list, n);
	free(all);
	return rc;
}

int folder_read_all(struct folder *out, const char *path, char message[256])
{
	*out = (struct folder){.text = NULL};
	if (add_below(out, path, "", 0))
		return errno == ENOENT
			       ? dataset_bad(message, path, "cannot open: %s", strerror(errno))
			       : dataset_bad(message, path, "cannot read its folders: %s",
					 strerror(errno));
	return any(out, path, message);
}

int folder_read_list(struct folder *out, const char *path, char message[256])
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int rc = 0;
	*out = (struct folder){.text = NULL};
	FILE *f = strcmp(path, "-") != 0 ? fopen(path, "r") : stdin;
	if (!f)
		return dataset_bad(message, path, "cannot open: %s", strerror(errno));
	while (!rc && (n = getline(&line, &room, f)) > 0) {
		if (strlen(line) < (size_t)n)
			rc = dataset_bad(message, path,
				"is neither a picture (.png, .jpg) nor a list of pictures' paths");
		line[strcspn(line, "\r\n")] = '\0';
		if (!rc && *line && add(out, "", line))
			rc = dataset_bad(message, path, "out of memory");
	}
	if (!rc && ferror(f))
		rc = dataset_bad(message, path, "cannot read: %s", strerror(errno));
	free(line);
	if (f != stdin)
		(void)fclose(f);
	return rc ? rc : any(out, path, message);
}

int folder_read_one(struct folder *out, const char *path, char message[256])
{
	*out = (struct folder){.text = NULL};
	return add(out, "", path) ? dataset_bad(message, path, "out of memory") : 0;
}

int folder_take_classes(struct folder *f, const char *path, const char *classes, char message[256])
{
	int64_t *place = malloc(((size_t)f->classes.n + 1) * sizeof *place);
	const char *rest = f->classes.text;
	int rc = place ? 0 : dataset_bad(message, path, "out of memory");
	for (int64_t i = 0; i < f->classes.n && !rc; i++) {
		char *name = name_list_at(rest, 0);
		rest = dataset_class_next(rest, NULL, NULL);
		place[i] = name ? name_list_place(classes, name) : -1;
		if (place[i] < 0)
			rc = dataset_bad(message, path,
				"its folder '%.60s' is none of the classes that are trained: "
				"%.100s",
				name ? name : "", classes);
		free(name);
	}
	for (int64_t i = 0; f->classes.n && i < f->n && !rc; i++)
		f->item[i].class = place[f->item[i].class];
	free(place);
	return rc;
}

void folder_free(struct folder *f)
{
	free(f->text);
	name_list_free(&f->classes);
	free(f->item);
}
