/* What the files of codegen/ share; private to the folder. */
#ifndef STINT_CODEGEN_PARTS_H
#define STINT_CODEGEN_PARTS_H

#include "codegen/emit.h"
#include "codegen/sources.h"
#include "codegen/step.h"
#include "graph/cost.h"

/* --- harmless.c: text of the model's, made harmless --- */

/* As part of a block comment: nothing in it can end the comment, warn, or hide. At most ~100
 * characters are printed. */
void text_comment(struct text *t, const char *s);
/* As a C string literal with its quotes: ASCII, no trigraphs. "NULL" for NULL. */
void text_literal(struct text *t, const char *s);
/* An element type's name in the runtime: "STINT_F32"; a resident's kind: "STINT_INPUT". */
const char *dtype_text(enum dtype t);
const char *kind_text(enum tensor_role r);
/* "STINT_MODEL_suffix" from the model's name, the end of a C identifier. */
void text_macro(struct text *t, const char *model, const char *suffix);

/* --- kernels.c: functions that steps call; equal ones exist once --- */

struct helper {
	const char *name, *text;
	struct helper *next;
};
struct emit_helpers {
	struct arena *arena;
	struct helper *first;
	struct sources sources;
};

/* A number in a body that kernels of one form may differ in (sizes.c). */
enum { WORD_STATIC = 's' }; /* no number: left out where the function has parameters */
struct number {
	size_t at, len;
	char kind;     /* 'i' whole, 'f' float, 'd' double; or WORD_STATIC */
	int parameter; /* from 1; 0: stays */
};

/* What the text of one node has used, told by whoever writes it. */
enum { CALL_STRUCTS = 8 };
struct body_uses {
	int nstruct; /* that calls have declared, by name */
	const char *name[CALL_STRUCTS];
	bool told;    /* some of the following has been */
	bool checked; /* the node is OP_CHECKED: its text returns a status */
	bool threads; /* it shares turns among threads */
	bool runtime; /* it is a call of the runtime's */
	bool *x, *y;  /* by position */
	bool ws;
	int nnumber, cap;
	struct number *number;
};
void use_output(struct emit *e, int k);
void use_scratch(struct emit *e);
/* What stands at `at` and is such a number, as struct number has it. */
void note_number(struct emit *e, size_t at, char kind);
/* Print a number that kernels of one form may differ in. */
void emit_size(struct emit *e, int64_t v);
void emit_number(struct emit *e, double v); /* of type real */
/* "x3", or "y0" where input 3 has the bytes of output 0 in this run; and use it. */
void emit_input(struct emit *e, int k);

/* Whether this much work is shared among threads. */
bool emit_is_shared(const struct emit *e, double work);
/* On a GPU: blocks for so many tasks; the launch of independent turns, whose workers have scratch
 * of their own or not. */
enum { BLOCK_THREADS = 256 };
int launch_blocks(int64_t tasks);
struct launch_shape launch_of_turns(int64_t turns, bool own_scratch, int threads);

struct kernel_arg {
	char kind; /* 'y' or 'x' with the output's or input's position; 'w', scratch */
	int k;
	const char *type; /* of an element */
};

struct kernel {
	const char *name;   /* "k001_softmax"; of the function that does it */
	const char *caller; /* "k001_softmax", "k001_softmax_2": what rows call it */
	const char *body;   /* with the arguments and `checked`, what makes two kernels equal */
	const char *about;  /* the comment above it */
	const struct op_def *op;
	bool checked;     /* returns a status, takes `bad` */
	bool library;     /* returns the library's code, takes `s` */
	bool runtime;     /* returns the runtime's status, takes `s` */
	bool launched;    /* a GPU's: returns the launch's code, takes `s` */
	bool threads;     /* shares turns among threads */
	const char *then; /* a GPU's: the runtime's call behind its launches; NULL: none */
	int nnumber;
	const struct number *number;
	const struct loop_code *loop; /* whose turns it runs; NULL: none */
	int nstage;                   /* its launches */
	struct launch_shape stage[STAGES_MAX];
	int narg; /* the parameters, in order */
	struct kernel_arg *arg;
	/* --- sizes.c --- */
	int function; /* the kernel whose function does this one too, given its numbers; its own */
	int nsize;
	const char **size; /* the numbers, as text: arguments behind the others */
	int members;       /* kernels that share this one's function; 0: it is not shared */
	const char
		*size_kind; /* "iif": of each, as in struct number; they are called n1, n2, ... */
	const char *shared_body; /* its text then, and where its stages end */
	size_t shared_end[STAGES_MAX];
};

/* A parameter of a kernel's function, number 0, 1, ...; false: there are no more. */
struct parameter {
	char type[40]; /* "const real *restrict " */
	char name[16];
	bool pointer; /* to an operand's elements */
};
bool kernel_parameter(const struct kernel *k, int i, struct parameter *p);
/* The text of a stage: where it begins, and *len. */
const char *kernel_stage(const struct kernel *k, int stage, size_t *len);

struct kernels {
	struct arena *arena;
	const struct graph *graph; /* any of the two: real, target */
	struct diag *diag;
	int n, cap;
	struct kernel *kernel;
	int nlib, caplib;
	struct lib_call *lib;
	int64_t *lib_workspace;
	struct loop_code *loop; /* the last one; NULL: there are none */
	struct emit_helpers helpers;
	bool fp16, bf16_states; /* some values, or states, are stored so */
	/* --- updates.c --- */
	int ngroup, nupdate_text;
	struct update_group *group;
	int *group_of; /* by step of training: the group, -1: none; NULL: not for CUDA */
	struct update_text *update_text;
};

/* The kernel of node `n` of graph `g`; in_place[j] is the output whose bytes input j has in this
 * run, -1 for none. *index out. */
enum status kernel_find(struct kernels *ks, const struct graph *g, const struct node *n,
	const int *in_place, int *index);
/* Lets kernels that differ in numbers only share a function. */
enum status kernels_share(struct kernels *ks);
/* Gives functions their names, numbered in the order of their text. */
enum status kernels_name(struct kernels *ks);
/* "k001_softmax", or "k001_softmax(8, 3136)" for one of those that share it: what this kernel is
 * called in tables. */
void kernel_print_title(const struct kernels *ks, int index, struct text *t);
/* Returns a code: the library's, or a launch's. */
bool kernel_fails(const struct kernel *k);
/* "KERNEL int name(a, b, c)" with lines broken at commas. */
void print_signature(const struct kernel *k, struct text *t);
void print_prelude(const struct kernels *ks, const struct codegen_input *in, struct text *t);
/* What all kernels are written with. False when out of memory. */
bool kernels_begin(struct kernels *ks);
/* The step's types, for kernels/words.h. */
void print_types(const struct kernels *ks, struct text *t);
void print_helpers(const struct kernels *ks, struct text *t);
void print_kernels(const struct kernels *ks, struct text *t);

/* --- cuda.c --- */

/* kernels.cu, and kernels.c, which holds it */
void print_cuda_kernels(const struct kernels *ks, struct text *t);
void print_cuda_string(const char *model, const struct text *kernels_cu, struct text *t);
/* In step.c: functions of the same names that launch them, and the table of launches. */
void print_launches(const struct kernels *ks, struct text *t);

/* --- schedule.c: a plan, resolved: which kernel each step calls on which bytes --- */

struct place {
	const char *name; /* "T031", "T031_2", "W017"; a resident's "R003" */
	bool define;      /* has a #define of its own */
};

struct call {
	struct node node;   /* with the inputs of the chosen way */
	int op, run, first; /* first: the step of this op's run 0 */
	int kernel;         /* -1: none, the step is a copy's */
	int *in, *out;      /* buffer index by position, -1: absent */
	int workspace;      /* buffer index, -1: none */
	int when;           /* buffer index of what says whether it runs; -1: it does */
	int updates;        /* resident whose gradient input 1 is, -1: none */
};

/* One tensor's way to the host's memory or back, from a file and there, or from other processes.
 * Copies run beside the kernels: one starts before step `start`, and nothing waits for it before
 * step `wait`. */
struct copy {
	enum { COPY_HOST, COPY_FILE, COPY_PIECES } kind;
	int step;            /* the plan's */
	bool away;           /* to the host, or the file */
	int buffer;          /* on the device, or in memory */
	int64_t bytes, host; /* how many, and where in the host's memory */
	int resident;        /* that is in the file, or in pieces; -1: none */
	int64_t from;        /* the byte of it where it begins */
	int start, wait;
};

enum { OUTPUT_NEVER = -2 };

struct schedule {
	const struct graph_problem *gp;
	const struct plan *plan;
	const char *title, *function; /* "training", "step_train" */
	char letter;                  /* of its places: 'T' or 'E' */
	int nresident;
	struct place *place; /* by buffer */
	struct call *call;   /* by step */
	/* By model output: after which step it is shown, -1: at the start; or OUTPUT_NEVER. */
	int *output_step;
	int *head, *next; /* by tensor, by buffer: the tensor's lifetimes, in order; -1 ends */
	int *workspace;   /* by step: its workspace; -1: none */
	int ncopy;
	struct copy *copy;  /* by step */
	int64_t host_bytes; /* that copies use on the host */
	int64_t *file;      /* by resident: where it begins in the file; -1: it is in the arena */
	int64_t file_bytes;
	bool *trained;              /* by resident: a step updates it */
	const struct call **keeper; /* by resident: what keeps its gradient; NULL: nothing */
	int nkept;
	bool *by_shards; /* all that reads it in a training step takes a shard's rows of it */
	bool at_once;    /* nothing runs beside a copy: --debug-arena tells who reads too early */
};

enum status schedule_make(struct kernels *ks, const struct graph_problem *gp,
	const struct plan *plan, bool train, bool debug, struct schedule *out);
/* The buffer of problem tensor `t` that is live at `step`; -1: none. */
int buffer_at(const struct schedule *s, int t, int step);
/* The buffer in which tensor `t` (of the graph) is found after the last step. */
int buffer_at_end(const struct schedule *s, const struct tensor *t);
/* A node of the update that makes nothing: what was updated goes where it belongs. */
bool hands_on(const struct node *n);

/* --- loop_code.c: loops that are one node --- */

/* The body of the node's function, which runs turns; *loop: these. */
enum status loop_body(
	struct kernels *ks, struct emit *e, const struct node *n, const struct loop_code **loop);
/* A function for each body, which calls what its plan says. */
void print_loop_turns(const struct kernels *ks, const struct loop_code *loop, struct text *t);

/* --- few_threads.c --- */

/* A warning that names kernels of a thread or a block over many elements. `train` may be NULL. */
enum status few_threads_warn(
	struct kernels *ks, const struct schedule *train, const struct schedule *eval);

/* --- copies.c: copies to the host and back --- */

/* Fills in s->copy, all else of s being there. */
enum status copies_find(struct arena *a, struct schedule *s, struct diag *d);
/* Which there are, and before which step each begins and is waited for; under s->at_once all of it
 * in the step's place. */
void print_copies(const struct schedule *s, struct text *t);
/* What its tables and its file are called after: "train", "eval". */
const char *schedule_word(const struct schedule *s);

/* --- updates.c: updates in one launch (CUDA) --- */

/* Steps of training, launched in the place of the last. */
struct update_group {
	int n, *step, text;
};

/* What groups of the same kernels share. */
struct update_text {
	const char *name; /* "u01_updates" */
	int n, blocks, nargs;
	const int *kernel;
};

enum status kernels_group(struct kernels *ks, const struct schedule *train);
/* The group that launches this step, unless somebody looks on; NULL: none. */
const struct update_group *group_at(const struct schedule *s, const struct kernels *ks, int step);
/* In kernels.cu; in the table of launches, behind the others; in step.c, who calls them. */
void print_group_kernels(const struct kernels *ks, struct text *t);
void print_group_launches(const struct kernels *ks, struct text *t);
void print_group_callers(const struct kernels *ks, struct text *t);

/* --- the parts of step.c, in its order --- */

void print_arena_map(const struct schedule *s, struct text *t);
void print_places(const struct schedule *s, bool residents, struct text *t);
/* callers.c: the functions that call kernels for rows, and the table of them. `train` may be NULL,
 * here and below. */
void print_callers(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, const struct codegen_input *in, struct text *t);
/* How many places a row of it has. */
int kernel_places(const struct kernel *k);
/* step_rows.c: a file of its own */
void print_rows(const struct schedule *s, const struct kernels *ks, struct text *t);
/* steps.c: both files, as data; what happens between rows, and the function */
void print_schedules(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, struct text *t);
void print_schedule(const struct schedule *s, const struct kernels *ks,
	const struct codegen_input *in, struct text *t);
/* The first comment. `eval` always; `train` NULL for forward only. */
void print_title(const struct schedule *train, const struct schedule *eval,
	const struct codegen_input *in, struct text *t);
/* The resident that is x, -1: none. */
int resident_of(const struct schedule *s, const struct tensor *x);
void print_tables(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, const struct codegen_input *in, struct text *t);
void print_header(const struct schedule *train, const struct schedule *eval,
	const struct codegen_input *in, struct text *t);
void print_makefile(const struct kernels *ks, const struct codegen_input *in, struct text *t);

/* --- bare.c: a step for a microcontroller --- */

/* Whether a resident has no place in the arena: it is read where its value is, an array of this
 * name. */
bool resident_in_value(const struct schedule *s, int resident);
/* Of those, how many come before it. */
int value_number(const struct schedule *s, int resident);
void print_value_name(const struct codegen_input *in, int resident, struct text *t);
/* Whether sizes and whole numbers fit 32 bits. */
enum status bare_fits(const struct schedule *s, struct diag *d);
/* weights.h and weights.c */
void print_bare_weights(const struct schedule *s, const struct codegen_input *in,
	struct text *header, struct text *source);
void print_bare_tables(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, const struct codegen_input *in, struct text *t);
void print_bare_makefile(struct text *t);
/* What stands in t from `from` on, in a microcontroller's words. */
void text_bare_words(struct text *t, size_t from);

#endif
