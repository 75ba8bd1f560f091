/* DIR: everything a product needs to build and link the step without stint. */
#include "api/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "api/adapter_text.h"
#include "api/cross.h"
#include "api/folder.h"
#include "api/length_folders.h"
#include "api/links.h"
#include "api/load.h"
#include "api/make.h"
#include "api/objects.h"
#include "api/report.h"
#include "api/weight_places.h"
#include "api/weights.h"
#include "codegen/embedded.h"
#include "compile/other_lengths.h"
#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"
#include "runtime/stint_cache.h"
#include "runtime/stint_rt.h"

static enum status save(struct pipeline *p, const char *dir, const char *name, struct text *t)
{
	char *path = arena_printf(p->arena, "%s/%s", dir, name);
	enum status st = path ? text_save(t, path, p->diag) : diag_nomem(p->diag);
	text_free(t);
	return st;
}

/* Links, and which weights are stored small. */
static enum status notes_of(struct pipeline *p, const struct weight_links *links,
	struct safetensors_note **note, int *n)
{
	const struct graph_problem *gp = pipeline_problem_shown(p);
	struct safetensors_note *linked;
	TRY(links_notes(p->arena, links, &linked, p->diag));
	*note = ARENA_ARRAY(p->arena, struct safetensors_note, links->n + gp->problem->ntensor);
	if (!*note)
		return diag_nomem(p->diag);
	for (*n = 0; *n < links->n; ++*n)
		(*note)[*n] = linked[*n];
	for (int i = 0; i < gp->problem->ntensor; i++) {
		const char *form = report_form(gp->tensor[i]),
			   *name = form ? report_weight(p, gp->tensor[i]) : NULL;
		if (!name)
			continue;
		struct safetensors_note *x = &(*note)[(*n)++];
		x->key = arena_printf(p->arena, REPORT_STORED "%s", gp->problem->tensor[i].name);
		x->value = arena_printf(p->arena, "%s %s", form, name);
		if (!x->key || !x->value)
			return diag_nomem(p->diag);
	}
	return ST_OK;
}

/* Initial values by name: parameters and buffers under the model's names, constants under theirs;
 * of a shorter length those that the longest one's step has not. The widest types first: between
 * tensors there is no gap, and each must lie where its numbers can be read. */
static enum status save_weights(struct pipeline *p, const char *dir,
	const struct weight_links *links, struct weight_places *places)
{
	const struct graph_problem *gp = pipeline_problem_shown(p);
	int n = 0;
	const int first = p->longest ? residents_of(pipeline_problem_shown(p->longest)) : 0;
	struct safetensors_entry *entry = ARENA_ARRAY(
		p->arena, struct safetensors_entry, gp->problem->ntensor);
	char *path = arena_printf(p->arena, "%s/" WEIGHTS_FILE, dir);
	if (!entry || !path)
		return diag_nomem(p->diag);
	for (int width = 8; width; width /= 2)
		for (int i = first; i < gp->problem->ntensor; i++) {
			const struct tensor *t = gp->tensor[i];
			const struct tensor *whole = t->piece_of ? t->piece_of : t;
			const char *name = gp->problem->tensor[i].name;
			static const int type[] = {STINT_F32, STINT_F64, STINT_I64, STINT_BOOL,
				STINT_BF16, STINT_F16, STINT_I8, STINT_U8};
			if (!t->data || t->maker || dtype_bytes(t->dtype) != width ||
				links_of(links, name))
				continue;
			entry[n++] = (struct safetensors_entry){.name = name,
				.dtype = type[t->dtype],
				.rank = whole->rank,
				.dim = whole->dim,
				.data = t->data};
		}
	char message[256];
	struct safetensors_note *note = NULL;
	int nnote = 0;
	if (!p->longest)
		TRY(notes_of(p, links, &note, &nnote));
	if (safetensors_write_soon(path, entry, n, note, nnote, message) != 0)
		return diag_fail(p->diag, ST_IO, NULL, NULL, "%s", message);
	return places ? weight_places_find(p, dir, entry, n, places) : ST_OK;
}

static enum status make_folder(struct pipeline *p, const char *folder)
{
	if (!folder)
		return diag_nomem(p->diag);
	return mkdir(folder, 0777) == 0 || errno == EEXIST
		       ? ST_OK
		       : diag_fail(p->diag, ST_IO, &(struct where){.file = folder}, NULL,
				 "cannot create the folder: %s", strerror(errno));
}

/* Steps for other lengths have theirs in the same folder, above their own. */
static enum status save_kernels(
	struct pipeline *p, const char *dir, const struct source_files *kernels)
{
	const char *folder = arena_printf(p->arena, "%s/%skernels", dir, p->longest ? "../" : "");
	TRY(make_folder(p, folder));
	for (int i = 0; i < kernels->n; i++) {
		struct text t = {0};
		print_kernel_file(kernels->file[i], &p->target, &t);
		TRY(save(p, folder, kernels->file[i]->name, &t));
	}
	return ST_OK;
}

static enum status save_texts(struct pipeline *p, const char *dir)
{
	struct source_files kernels;
	struct step_texts texts = {0};
	struct text plan = {0}, graph = {0};
	enum status st = pipeline_texts(p, &texts, &kernels);
	const struct graph_problem *gp = pipeline_problem_shown(p);
	plan_print(gp->problem, pipeline_plan_shown(p), &plan);
	problem_print(gp->problem, &graph);
	for (const struct step_file *f = step_files; f->name; f++)
		if (st == ST_OK && step_text(&texts, f)->len > 0)
			st = save(p, dir, f->name, step_text(&texts, f));
	if (st == ST_OK)
		st = save(p, dir, "plan.json", &plan);
	if (st == ST_OK)
		st = save(p, dir, "graph.json", &graph);
	if (st == ST_OK)
		st = save_kernels(p, dir, &kernels);
	if (st == ST_OK && p->train) {
		plan_print(p->eval_problem.problem, p->plans.eval_plan, &plan);
		st = save(p, dir, "eval-plan.json", &plan);
	}
	text_free(&plan);
	text_free(&graph);
	step_texts_free(&texts);
	return st;
}

/* A GPU's step takes of the library's files what says how calls are numbered. */
static bool wanted(const struct pipeline *p, const char *name)
{
	const bool bare = !strncmp(name, "stint_bare", 10);
	if (p->target.bare)
		return bare || !strcmp(name, "stint_kinds.h");
	if (bare)
		return false;
	const bool gpu = !strncmp(name, "stint_gpu", 9) || !strncmp(name, "stint_rt_gpu", 12) ||
			 !strncmp(name, "stint_cache", 11);
	const bool of_ranks = !strncmp(name, "stint_mpi", 9) || !strncmp(name, "stint_sums", 10);
	const bool ranks = p->target.ranks && p->parts.shards > 1;
	const bool library = !strncmp(name, "stint_lib", 9) || !strcmp(name, "stint_rt_library.c");
	if (p->target.cuda)
		return strcmp(name, "stint_rt_cpu.c") != 0 &&
		       strcmp(name, "stint_rt_disk.c") != 0 &&
		       (ranks || strncmp(name, "stint_mpi", 9) != 0) &&
		       (!library || !strcmp(name, "stint_lib.h"));
	if (!strcmp(name, "stint_rt_disk.c"))
		return p->o->disk.folder != NULL;
	if (of_ranks)
		return ranks;
	return !gpu && (!p->target.portable || !library);
}

static enum status save_runtime(struct pipeline *p, const char *dir)
{
	for (const struct embedded_file *f = embedded_files(); f->name; f++) {
		struct text t = {0};
		if (!wanted(p, f->name))
			continue;
		text_write(&t, f->text, f->len);
		TRY(save(p, dir, f->name, &t));
	}
	return ST_OK;
}

/* The weights, of which some may stay where they are, and the model without them. */
static enum status save_values(struct pipeline *p, const char *dir)
{
	struct weight_links links;
	struct weight_places places = {.links = &links};
	char *model = arena_printf(p->arena, "%s/model.onnx", dir);
	if (!model)
		return diag_nomem(p->diag);
	TRY(links_find(p, &links));
	TRY(save_weights(p, dir, &links, &places));
	if (onlooker_stops(p->o->onlooker))
		return ST_INTERRUPTED;
	return import_copy_model(p->o->model, model, &p->import, p->imported->table,
		weight_places_of, &places, p->diag);
}

/* What adapters the step trains, for `export`. */
static enum status save_adapters(struct pipeline *p, const char *dir)
{
	struct text t = {0};
	if (!p->nadapter)
		return ST_OK;
	adapters_print(p, &t);
	return save(p, dir, "adapter.json", &t);
}

/* Of a shorter length what is not as in the folder above. */
static enum status write_length(void *user, struct pipeline *p, int64_t length)
{
	static const struct weight_links none;
	const char *dir = length_folder(p->arena, user, length);
	TRY(make_folder(p, dir));
	TRY(save_weights(p, dir, &none, NULL));
	return save_texts(p, dir);
}

/* Before the longest one's own texts: all of them have a say in how large the arena is. */
static enum status save_lengths(struct pipeline *p, const char *dir)
{
	struct text t = {0};
	TRY(lengths_each(p, &(struct length_visitor){write_length, (void *)(uintptr_t)dir}));
	if (!p->nlength)
		return ST_OK;
	length_folders_print(p, &t);
	return save(p, dir, LENGTHS_FILE, &t);
}

/* Values first: the largest, and what may be refused. */
static enum status save_parts(struct pipeline *p, const char *dir)
{
	static enum status (*const part[])(struct pipeline *, const char *) = {
		save_values, save_adapters, save_lengths, save_texts, save_runtime};
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		TRY(part[i](p, dir));
		if (onlooker_stops(p->o->onlooker))
			return ST_INTERRUPTED;
	}
	return ST_OK;
}

/* What is in DIR/IN; "" for DIR itself. */
static enum status build(struct pipeline *p, const struct folder *f, const char *in)
{
	const char *work = arena_printf(p->arena, "%s%s", f->work, in);
	const char *path = arena_printf(p->arena, "%s%s", f->path, in);
	char cache[2048];
	struct objects_built built = {.made = false};
	if (!work || !path)
		return diag_nomem(p->diag);
	stint_cache_folder(cache, sizeof cache);
	const char *objects = arena_printf(p->arena, "%s%s", cache, *cache ? "/objects" : "");
	/* what a user's operators keep in variables of their files is one with the kernels' */
	if (!p->o->no_cache && !p->o->ops && !p->target.cuda)
		TRY(objects_make(p->arena, objects, work, path, p->o->onlooker, &built, p->diag));
	if (!built.made)
		return make_step(p->arena, work, path, p->o->onlooker, p->diag);
	p->kernels += built.kernels;
	p->kernels_kept += built.kept;
	return ST_OK;
}

static enum status build_all(struct pipeline *p, const struct folder *f)
{
	TRY(build(p, f, ""));
	for (int i = 0; i < p->nlength; i++) {
		const char *in = length_folder(p->arena, "", p->length[i].length);
		TRY(in ? build(p, f, in) : diag_nomem(p->diag));
	}
	return ST_OK;
}

enum status output_write(struct pipeline *p, const char *dir, bool force, bool make)
{
	struct folder f;
	TRY(folder_check(p->arena, dir, force, &f, p->diag));
	enum status st = folder_begin(&f, p->diag);
	if (st == ST_OK)
		st = save_parts(p, f.work);
	if (st == ST_OK && make)
		st = build_all(p, &f);
	if (st == ST_OK)
		st = folder_place(&f, p->diag);
	folder_drop(&f);
	const char *left = f.exists ? "nothing in it was changed" : "nothing of it was left";
	const struct where w = {.file = dir};
	if (st == ST_INTERRUPTED)
		diag_fail(p->diag, st, &w, NULL, "interrupted; %s", left);
	else if (st != ST_OK)
		diag_note(p->diag, &w, NULL, "%s", left);
	return st;
}

/* Where a GPU is, its kernels are compiled and the libraries' algorithms chosen now, and kept
 * (STINT_CACHE), not when the first step begins. */
static void prepare_device(struct pipeline *p, const char *dir)
{
	struct diag quiet = {.put = NULL};
	struct loaded l;
	const struct where w = {.file = dir};
	if (load_step(p->arena, dir, &l, &quiet) == ST_OK)
		diag_note(p->diag, &w, NULL, "opened on this machine's GPU: ready to run");
	else if (l.code != STINT_NO_DEVICE)
		diag_warn(p->diag, &w, NULL, "does not open on this machine's GPU: %s",
			l.step   ? l.message(l.step)
			: l.code ? "out of memory"
				 : "its step.so cannot be loaded");
	load_close(&l);
}

/* What an earlier step there has trained stays; whoever asks for values gets those. */
static enum status tell_trained(struct pipeline *p, const char *dir)
{
	char newest[512] = "", message[256];
	const char *folder = weights_folder(p->arena, dir);
	if (!folder)
		return diag_nomem(p->diag);
	if (p->o->bare || checkpoint_newest(folder, newest, message) || !*newest)
		return ST_OK;
	diag_note(p->diag, &(struct where){.file = newest},
		"`stint train` goes on from it with --resume, begins anew with --anew",
		"an earlier step's training: eval, predict and export take its values");
	return ST_OK;
}

enum status compile_folder(struct pipeline *p, const struct options *o,
	enum status (*write)(struct pipeline *p, const struct options *o))
{
	struct folder folder;
	if (!o->out || !*o->out)
		return diag_fail(
			p->diag, ST_USAGE, NULL, "for example -o build-dir", "no -o DIR given");
	/* what would be refused at the end is refused now */
	TRY(folder_check(p->arena, o->out, o->force, &folder, p->diag));
	if (p->o->cross && !o->no_build)
		TRY(cross_compiler(p->arena, p->o->cross, p->diag));
	TRY(pipeline_run(p));
	onlooker_now(p->o->onlooker, o->no_build ? "writing" : "writing, and compiling with make");
	TRY(write ? write(p, o) : output_write(p, o->out, o->force, !o->no_build));
	TRY(tell_trained(p, o->out));
	if (!p->target.cuda || o->no_build)
		return ST_OK;
	onlooker_now(p->o->onlooker, "opening on the GPU");
	prepare_device(p, o->out);
	return ST_OK;
}
