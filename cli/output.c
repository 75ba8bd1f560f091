/* DIR: everything a product needs to build and link the step without stint. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/pipeline.h"
#include "codegen/embedded.h"
#include "runtime/safetensors.h"
#include "runtime/stint_lib.h"

static enum status make_folder(const char *dir, struct diag *d)
{
	struct stat st;
	if (mkdir(dir, 0777) == 0)
		return ST_OK;
	if (errno == EEXIST && stat(dir, &st) == 0 && S_ISDIR(st.st_mode))
		return ST_OK;
	return diag_fail(d, ST_IO, &(struct where){.file = dir}, NULL,
		"cannot create the folder: %s", strerror(errno));
}

static enum status save(struct pipeline *p, const char *dir, const char *name, struct text *t)
{
	char *path = arena_printf(p->arena, "%s/%s", dir, name);
	enum status st = path ? text_save(t, path, p->diag) : diag_nomem(p->diag);
	text_free(t);
	return st;
}

/* Initial values by name: parameters and buffers under the model's names, constants under theirs.
 */
static enum status save_weights(struct pipeline *p, const char *dir)
{
	const struct graph_problem *gp = p->train ? &p->train_problem : &p->eval_problem;
	int n = 0;
	struct safetensors_entry *entry = ARENA_ARRAY(
		p->arena, struct safetensors_entry, gp->problem->ntensor);
	char *path = arena_printf(p->arena, "%s/weights.safetensors", dir);
	if (!entry || !path)
		return diag_nomem(p->diag);
	for (int i = 0; i < gp->problem->ntensor; i++) {
		const struct tensor *t = gp->tensor[i];
		static const int type[] = {STINT_F32, STINT_F64, STINT_I64, STINT_BOOL};
		if (!t->data || t->maker)
			continue;
		entry[n++] = (struct safetensors_entry){.name = gp->problem->tensor[i].name,
			.dtype = type[t->dtype],
			.rank = t->rank,
			.dim = t->dim,
			.data = t->data};
	}
	char message[256];
	if (safetensors_write(path, entry, n, NULL, 0, message) != 0)
		return diag_fail(
			p->diag, ST_IO, &(struct where){.file = path}, NULL, "%s", message);
	return ST_OK;
}

static enum status save_kernels(
	struct pipeline *p, const char *dir, const struct source_files *kernels)
{
	const char *folder = arena_printf(p->arena, "%s/kernels", dir);
	if (!folder)
		return diag_nomem(p->diag);
	TRY(make_folder(folder, p->diag));
	for (int i = 0; i < kernels->n; i++) {
		struct text t = {0};
		text_write(&t, kernels->file[i]->text, kernels->file[i]->len);
		TRY(save(p, folder, kernels->file[i]->name, &t));
	}
	return ST_OK;
}

static enum status save_texts(struct pipeline *p, const char *dir)
{
	struct codegen_input in = {.name = p->name,
		.model_file = strrchr(p->o->model, '/'),
		.train = p->train_problem,
		.eval = p->eval_problem,
		.train_plan = p->train_plan,
		.eval_plan = p->eval_plan,
		.lr = p->optimizer.lr,
		.debug_arena = p->o->debug_arena != 0};
	char identity[96];
	in.model_file = in.model_file ? in.model_file + 1 : p->o->model;
	if (!p->target.portable && !p->target.cuda)
		in.library_identity = stint_lib_identity(p->target.threads, identity);
	in.isa_flags = p->o->isa ? arena_printf(p->arena, "-march=%s", p->o->isa)
		       : p->target.portable || p->target.cuda ? ""
							      : "-march=native";
	in.loss_name = p->loss.op ? p->loss.op->loss : NULL;
	in.loss_options = p->o->loss;
	if (!in.isa_flags)
		return diag_nomem(p->diag);
	struct source_files kernels;
	struct text c = {0}, h = {0}, make = {0}, plan = {0}, graph = {0}, cu = {0}, string = {0};
	enum status st = codegen_step(&in, &c, &h, &make, &kernels, p->diag);
	if (st == ST_OK && p->target.cuda)
		st = codegen_kernels(&in, &cu, &string, p->diag);
	const struct graph_problem *gp = p->train ? &p->train_problem : &p->eval_problem;
	plan_print(gp->problem, p->train ? p->train_plan : p->eval_plan, &plan);
	problem_print(gp->problem, &graph);
	if (st == ST_OK)
		st = make_folder(dir, p->diag);
	struct {
		const char *name;
		struct text *text;
	} file[] = {{"step.c", &c}, {"stint_step.h", &h}, {"Makefile", &make}, {"plan.json", &plan},
		{"graph.json", &graph}, {"kernels.cu", &cu}, {"kernels.c", &string}};
	const size_t nfile = sizeof file / sizeof *file - (p->target.cuda ? 0 : 2);
	for (size_t i = 0; i < nfile; i++) {
		if (st == ST_OK)
			st = save(p, dir, file[i].name, file[i].text);
		else
			text_free(file[i].text);
	}
	if (st == ST_OK)
		st = save_kernels(p, dir, &kernels);
	if (st == ST_OK && p->train) {
		plan_print(p->eval_problem.problem, p->eval_plan, &plan);
		st = save(p, dir, "eval-plan.json", &plan);
	}
	return st;
}

/* A GPU's step takes of the library's files what says how calls are numbered. */
static bool wanted(const struct pipeline *p, const char *name)
{
	const bool gpu = !strncmp(name, "stint_gpu", 9) || !strncmp(name, "stint_rt_gpu", 12);
	if (p->target.cuda)
		return strncmp(name, "stint_lib", 9) != 0 || !strcmp(name, "stint_lib.h");
	return !gpu && (!p->target.portable || strncmp(name, "stint_lib", 9) != 0);
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

/* `make -C DIR`, its output shown only when it fails. */
static enum status build(struct pipeline *p, const char *dir)
{
	char *log = arena_printf(p->arena, "%s/build.log", dir);
	if (!log)
		return diag_nomem(p->diag);
	pid_t pid = fork();
	if (pid == 0) {
		if (freopen(log, "w", stdout) && dup2(STDOUT_FILENO, STDERR_FILENO) >= 0)
			execlp("make", "make", "-s", "-C", dir, "step.so", (char *)NULL);
		_exit(127);
	}
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return diag_fail(
			p->diag, ST_IO, NULL, NULL, "cannot start make: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		unlink(log);
		return ST_OK;
	}
	return diag_fail(p->diag, ST_IO, &(struct where){.file = dir},
		"install make and a C compiler, or pass --no-build",
		"the step did not compile; see %s", log);
}

enum status output_write(struct pipeline *p, const char *dir)
{
	TRY(save_texts(p, dir));
	TRY(save_runtime(p, dir));
	TRY(save_weights(p, dir));
	char *model = arena_printf(p->arena, "%s/model.onnx", dir);
	if (!model)
		return diag_nomem(p->diag);
	TRY(import_copy_model(p->o->model, model, &p->o->import, p->imported->table, p->diag));
	return p->o->no_build ? ST_OK : build(p, dir);
}
