#include "api/folder.h"

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
static const char *const own[] = {"step.so", "step.c", "step_arena.h", "step_train.h",
	"step_eval.h", "step_tables.h", "stint_step.h", "Makefile", "plan.json", "eval-plan.json",
	"graph.json", "kernels.cu", "kernels.c", "weights.safetensors", "weights.c", "weights.h",
	"adapter.json", "model.onnx", "model.onnx.data", "build.log", LENGTHS_FILE};
enum { OWN = sizeof own / sizeof *own };

/* In what words a file says that stint wrote it. */
static const struct mark {
	const char *name, *words;
} marks[] = {{"step.c", "written by stint."}, {"stint_step.h", "How to use it: stint_"},
	{"Makefile", "# make libstep.a   for a program of your own"}, {"plan.json", "stint-plan-1"},
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

/* A file that stint may have written or has written now (`fresh`), also within a folder of DIR; and
 * how far the change of files got. `made`: its folder was not there. */
struct part {
	const char *name;
	bool fresh, made, out, in;
};

struct parts {
	struct part *item;
	int n, cap;
};

static bool add_part(const struct folder *f, struct parts *p, const char *name, bool fresh)
{
	for (int i = 0; i < p->n; i++)
		if (!strcmp(p->item[i].name, name)) {
			p->item[i].fresh |= fresh;
			return true;
		}
	if (p->n == p->cap) {
		const int wider = p->cap ? 2 * p->cap : 64;
		struct part *item = ARENA_ARRAY(f->arena, struct part, wider);
		if (!item)
			return false;
		if (p->n)
			memcpy(item, p->item, (size_t)p->n * sizeof *item);
		*p = (struct parts){item, p->n, wider};
	}
	p->item[p->n++] = (struct part){.name = name, .fresh = fresh};
	return true;
}

/* What is in `work`, or in its folder `sub`. */
static bool add_fresh(const struct folder *f, struct parts *p, const char *sub)
{
	const struct dirent *e;
	struct stat st;
	const char *where = sub ? path_in(f, f->work, sub) : f->work;
	DIR *dir = where ? opendir(where) : NULL;
	bool ok = dir != NULL;
	while (ok && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		const char *name = sub ? path_in(f, sub, e->d_name)
				       : arena_strdup(f->arena, e->d_name);
		const char *path = name ? path_in(f, f->work, name) : NULL;
		ok = path && stat(path, &st) == 0 &&
		     (!sub && S_ISDIR(st.st_mode) ? add_fresh(f, p, name)
						  : add_part(f, p, name, true));
	}
	if (dir)
		closedir(dir);
	return ok;
}

/* "length-64", or something in it. */
static bool is_length(const char *name)
{
	const char *length = name + sizeof LENGTH_FOLDER - 1;
	if (strncmp(name, LENGTH_FOLDER, sizeof LENGTH_FOLDER - 1) != 0)
		return false;
	const size_t digits = strspn(length, "0123456789");
	return digits > 0 && (!length[digits] || length[digits] == '/');
}

/* What stint writes, in the folders of lengths that DIR has: they may not be those that it will
 * have. */
static bool add_lengths(const struct folder *f, struct parts *p)
{
	const struct dirent *e;
	DIR *dir = opendir(f->dir);
	bool ok = dir != NULL;
	while (ok && f->ours && (e = readdir(dir))) {
		if (!is_length(e->d_name))
			continue;
		const char *sub = arena_strdup(f->arena, e->d_name);
		for (int i = 0; ok && i < OWN; i++) {
			const char *name = sub ? path_in(f, sub, own[i]) : NULL;
			ok = name && add_part(f, p, name, false);
		}
	}
	if (dir)
		closedir(dir);
	return ok;
}

/* Folders of lengths that are gone. */
static void remove_empty(const struct folder *f, const struct parts *p)
{
	for (int i = 0; i < p->n; i++) {
		char *path = path_in(f, f->dir, p->item[i].name);
		if (!is_length(p->item[i].name) || !path)
			continue;
		*strrchr(path, '/') = '\0';
		(void)rmdir(path);
	}
}

static bool list_parts(const struct folder *f, struct parts *p)
{
	const char *name;
	*p = (struct parts){0};
	for (int i = 0; (name = own_name(i)); i++)
		if (!add_part(f, p, name, false))
			return false;
	return add_lengths(f, p) && add_fresh(f, p, NULL);
}

/* 0, or -1 and errno. */
static int move(const struct folder *f, const char *name, const char *from, const char *to)
{
	struct stat st;
	char *x = path_in(f, from, name), *y = path_in(f, to, name);
	if (!x || !y) {
		errno = ENOMEM;
		return -1;
	}
	if (lstat(x, &st) == 0 && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return -1;
	}
	return rename(x, y);
}

/* The folder in `dir` that `name` is to be in: 1: made; 0: it was there; -1 and errno. */
static int make_parent(const struct folder *f, const char *dir, const char *name)
{
	const char *slash = strchr(name, '/');
	if (!slash)
		return 0;
	char *path = path_in(f, dir, name);
	if (!path) {
		errno = ENOMEM;
		return -1;
	}
	*strrchr(path, '/') = '\0';
	return mkdir(path, 0777) == 0 ? 1 : errno == EEXIST ? 0 : -1;
}

/* Out of DIR: all that stint wrote; from among others' files what is written again, and a step that
 * was compiled of it. Then the new files into it, step.so last. */
static int change(const struct folder *f, struct parts *p, const char *old)
{
	for (int i = 0; i < p->n; i++) {
		struct part *x = &p->item[i];
		if (i > 0 && !f->ours && !x->fresh)
			continue;
		const int made = make_parent(f, f->dir, x->name);
		x->made = made > 0;
		if (made < 0 || make_parent(f, old, x->name) < 0)
			return -1;
		x->out = !move(f, x->name, f->dir, old);
		if (!x->out && errno != ENOENT)
			return -1;
	}
	for (int i = p->n; i-- > 0;) {
		struct part *x = &p->item[i];
		x->in = x->fresh && !move(f, x->name, f->work, f->dir);
		if (x->fresh && !x->in)
			return -1;
	}
	return 0;
}

static void undo(const struct folder *f, const struct parts *p, const char *old)
{
	const int why = errno;
	for (int i = 0; i < p->n; i++)
		if (p->item[i].in)
			(void)move(f, p->item[i].name, f->dir, f->work);
	for (int i = p->n; i-- > 0;) {
		const struct part *x = &p->item[i];
		char *path = path_in(f, f->dir, x->name);
		if (x->out)
			(void)move(f, x->name, old, f->dir);
		if (x->made && path) {
			*strrchr(path, '/') = '\0';
			(void)rmdir(path);
		}
	}
	errno = why;
}

static enum status replace(const struct folder *f, struct diag *d)
{
	struct parts p;
	const char *old = path_in(f, f->work, "replaced");
	if (!old || !list_parts(f, &p))
		return failed(f, d, "cannot replace what is in the folder");
	if (mkdir(old, 0777) == 0 && change(f, &p, old) == 0) {
		remove_empty(f, &p);
		return ST_OK;
	}
	undo(f, &p, old);
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
