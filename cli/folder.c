#include "cli/folder.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/embedded.h"

/* What stint may write besides the runtime's files; what the compiler made of a step comes first:
 * it goes first and comes last, so that there is never one of another step. */
static const char *const own[] = {"step.so", "step.c", "stint_step.h", "Makefile", "plan.json",
	"eval-plan.json", "graph.json", "kernels.cu", "kernels.c", "weights.safetensors",
	"model.onnx", "build.log"};
enum { OWN = sizeof own / sizeof *own };

/* In what words a file says that stint wrote it. */
static const struct mark {
	const char *name, *words;
} marks[] = {{"step.c", "written by stint."}, {"stint_step.h", "How to use it: stint_rt.h."},
	{"Makefile", "step.so, which stint opens"}, {"plan.json", "stint-plan-1"},
	{"graph.json", "stint-graph-1"}};

static const char prefix[] = ".stint-"; /* of temporary folders */

static enum status in_the_way(
	const struct folder *f, struct diag *d, const char *name, const char *why, bool final)
{
	return diag_fail(d, ST_USAGE, &(struct where){.file = f->dir},
		final ? "choose another DIR"
		      : "choose another DIR, or pass --force: files of the names that stint writes "
			"are replaced, others stay",
		"'%s' is in the way: %s", name, why);
}

static enum status failed(const struct folder *f, struct diag *d, const char *what)
{
	return diag_fail(
		d, ST_IO, &(struct where){.file = f->dir}, NULL, "%s: %s", what, strerror(errno));
}

/* The i-th name that stint may write, or NULL. */
static const char *own_name(int i)
{
	return i < OWN ? own[i] : embedded_files()[i - OWN].name;
}

/* --- Who made it --- */

static char *path_in(const struct folder *f, const char *dir, const char *name)
{
	return arena_printf(f->arena, "%s/%s", dir, name);
}

/* 1: DIR/name begins with the mark's words, or soon; 0: it does not; -1: it is not there. */
static int has_mark(const struct folder *f, const struct mark *m)
{
	char start[2048];
	char *path = path_in(f, f->dir, m->name);
	FILE *file = path ? fopen(path, "rb") : NULL;
	if (!file)
		return errno == ENOENT ? -1 : 0;
	start[fread(start, 1, sizeof start - 1, file)] = '\0';
	fclose(file);
	return strstr(start, m->words) != NULL;
}

/* Its first file by name, besides what an end by force left of ours; NULL: it is empty. */
static enum status first_file(const struct folder *f, const char **first, struct diag *d)
{
	const struct dirent *e;
	DIR *dir = opendir(f->dir);
	*first = NULL;
	if (!dir)
		return failed(f, d, "cannot look into the folder");
	while ((e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			!strncmp(e->d_name, prefix, sizeof prefix - 1) ||
			(*first && strcmp(e->d_name, *first) > 0))
			continue;
		*first = arena_strdup(f->arena, e->d_name);
		if (!*first) {
			closedir(dir);
			return diag_nomem(d);
		}
	}
	closedir(dir);
	return ST_OK;
}

/* A folder under a name of ours cannot be replaced; a file may be by force. */
static enum status check_names(const struct folder *f, bool force, struct diag *d)
{
	struct stat st;
	const char *name;
	for (int i = 0; (name = own_name(i)); i++) {
		const char *path = path_in(f, f->dir, name);
		if (!path)
			return diag_nomem(d);
		if (lstat(path, &st) != 0)
			continue;
		if (S_ISDIR(st.st_mode))
			return in_the_way(
				f, d, name, "it is a folder, which is never replaced", true);
		if (!f->ours && !force)
			return in_the_way(f, d, name, "stint did not write it", false);
	}
	return ST_OK;
}

static enum status check_content(struct folder *f, bool force, struct diag *d)
{
	const char *first;
	f->ours = has_mark(f, &marks[0]) == 1;
	for (size_t i = 1; i < sizeof marks / sizeof *marks && f->ours; i++)
		if (!has_mark(f, &marks[i])) {
			f->ours = false;
			if (!force)
				return in_the_way(
					f, d, marks[i].name, "stint did not write it", false);
		}
	TRY(check_names(f, force, d));
	TRY(first_file(f, &first, d));
	if (!first || f->ours || force)
		return ST_OK;
	return in_the_way(f, d, first, "the folder is not empty, and stint did not make it", false);
}

/* The folder that DIR is to be made in. */
static const char *parent_of(const struct folder *f)
{
	const char *slash = strrchr(f->dir, '/');
	return !slash            ? "."
	       : slash == f->dir ? "/"
				 : arena_strndup(f->arena, f->dir, (size_t)(slash - f->dir));
}

enum status folder_check(
	struct arena *a, const char *dir, bool force, struct folder *f, struct diag *d)
{
	struct stat st;
	size_t n = strlen(dir);
	while (n > 1 && dir[n - 1] == '/')
		n--;
	*f = (struct folder){.arena = a, .dir = arena_strndup(a, dir, n)};
	const char *parent = f->dir ? parent_of(f) : NULL;
	if (!parent)
		return diag_nomem(d);
	f->exists = lstat(f->dir, &st) == 0;
	if (!f->exists && errno != ENOENT)
		return failed(f, d, "cannot create the folder");
	if (f->exists && stat(f->dir, &st) != 0)
		return failed(f, d, "leads nowhere");
	if (f->exists && !S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return failed(f, d, "cannot create the folder");
	}
	if (access(f->exists ? f->dir : parent, W_OK | X_OK) != 0)
		return failed(f, d,
			f->exists ? "cannot write into the folder" : "cannot create the folder");
	return f->exists ? check_content(f, force, d) : ST_OK;
}

/* --- Written beside --- */

/* From where `work` is, free of links. */
static enum status find_path(struct folder *f, struct diag *d)
{
	char *work = realpath(f->work, NULL);
	if (!work)
		return failed(f, d, "cannot create the folder");
	const char *slash = strrchr(f->dir, '/');
	*strrchr(work, '/') = '\0';
	f->path = f->exists ? arena_strdup(f->arena, work)
			    : path_in(f, work, slash ? slash + 1 : f->dir);
	free(work);
	return f->path ? ST_OK : diag_nomem(d);
}

enum status folder_begin(struct folder *f, struct diag *d)
{
	enum { TRIES = 100 }; /* folders that processes of this number left */
	for (int i = 0; i < TRIES; i++) {
		char *work = arena_printf(f->arena, "%s/%s%ld-%d",
			f->exists ? f->dir : parent_of(f), prefix, (long)getpid(), i);
		if (!work)
			return diag_nomem(d);
		if (mkdir(work, 0777) == 0) {
			f->work = work;
			return find_path(f, d);
		}
		if (errno != EEXIST)
			break;
	}
	return failed(
		f, d, f->exists ? "cannot write into the folder" : "cannot create the folder");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

void folder_drop(struct folder *f)
{
	if (f->work)
		(void)nftw(f->work, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	f->work = NULL;
}

/* --- Put in its place --- */

/* A name that stint may write: whether it wrote it now, and how far the change of files got. */
struct part {
	const char *name;
	bool fresh, out, in;
};

/* 0, or -1 and errno. */
static int move(const struct folder *f, const char *name, const char *from, const char *to)
{
	char *x = path_in(f, from, name), *y = path_in(f, to, name);
	if (x && y)
		return rename(x, y);
	errno = ENOMEM;
	return -1;
}

/* All own names; NULL when out of memory. */
static struct part *list_parts(const struct folder *f, int *n)
{
	*n = 0;
	while (own_name(*n))
		++*n;
	struct part *part = ARENA_ARRAY(f->arena, struct part, *n);
	for (int i = 0; part && i < *n; i++) {
		const char *path = path_in(f, f->work, own_name(i));
		if (!path)
			return NULL;
		part[i] = (struct part){.name = own_name(i), .fresh = access(path, F_OK) == 0};
	}
	return part;
}

/* Out of DIR: all that stint wrote; from among others' files what is written again, and a step that
 * was compiled of it. Then the new files into it, step.so last. */
static int change(const struct folder *f, struct part *part, int n, const char *old)
{
	for (int i = 0; i < n; i++) {
		if (i > 0 && !f->ours && !part[i].fresh)
			continue;
		part[i].out = !move(f, part[i].name, f->dir, old);
		if (!part[i].out && errno != ENOENT)
			return -1;
	}
	for (int i = n; i-- > 0;) {
		part[i].in = part[i].fresh && !move(f, part[i].name, f->work, f->dir);
		if (part[i].fresh && !part[i].in)
			return -1;
	}
	return 0;
}

static void undo(const struct folder *f, const struct part *part, int n, const char *old)
{
	const int why = errno;
	for (int i = 0; i < n; i++)
		if (part[i].in)
			(void)move(f, part[i].name, f->dir, f->work);
	for (int i = n; i-- > 0;)
		if (part[i].out)
			(void)move(f, part[i].name, old, f->dir);
	errno = why;
}

static enum status replace(const struct folder *f, struct diag *d)
{
	int n;
	struct part *part = list_parts(f, &n);
	const char *old = path_in(f, f->work, "replaced");
	if (!part || !old)
		return diag_nomem(d);
	if (mkdir(old, 0777) == 0 && change(f, part, n, old) == 0)
		return ST_OK;
	undo(f, part, n, old);
	return failed(f, d, "cannot replace what is in the folder");
}

enum status folder_place(struct folder *f, struct diag *d)
{
	if (f->exists)
		return replace(f, d);
	if (rename(f->work, f->dir) != 0)
		return failed(f, d, "cannot create the folder");
	f->work = NULL;
	return ST_OK;
}
