/* Random models: blocks drawn and chained into ONNX bytes, and the proof that each of them trains
 * as it should.
 *
 * A model goes through the importer and the whole pipeline in several variants (run.c) and must
 *	get the same bits from every plan, whatever the budget and the number of threads, fused or
 *	not;
 *	get the same when written as PyTorch's exporter writes modules;
 *	get gradients in double precision that agree with finite differences of the loss;
 *	get gradients in single precision, with and without library calls, that agree with those.
 * With a NaN or an infinity among the data there is no slope; it must go the same way in all
 * variants, and into the loss where all that stands between passes it on. */
#ifndef STINT_TESTS_RANDOM_H
#define STINT_TESTS_RANDOM_H

#include "tests/import/model.h"

/* A real tensor of a model in the making. */
struct wire {
	const char *name;
	int rank;
	int64_t dim[RANK_MAX];
};

/* A data input and what to feed it with. */
struct feed {
	const char *name;
	int64_t range; /* 0: real numbers; else whole ones below this */
};

enum { FEEDS = 16, WEIGHTS = 256, ELEMENTS_MAX = 2500, OPTIONS = 64, STATIONS = 8 };

/* The weights that a block drew, for another application of the same block to read them again. */
struct tape {
	enum { TAPE_OFF, TAPE_RECORDS, TAPE_PLAYS } mode;
	int n, at;
	struct taped {
		struct wire v;
		uint64_t after; /* the generator's state when the weight was drawn */
	} weight[WEIGHTS];
};

struct generator {
	struct model_test *t;
	uint64_t state; /* of the random numbers */
	int opset, nnode, ntensor;
	Onnx__NodeProto *node; /* the last one made: attributes go there */
	int nfeed, nweight;
	struct feed feed[FEEDS];
	struct weight {
		struct wire v;
		double scale;
	} weight[WEIGHTS]; /* which may be used again */
	struct tape tape;
	char loss[OPTIONS];
	const char *loss_output; /* what the loss is of */
	struct poison {
		const char *input; /* NULL: none */
		double value;      /* that one of its elements has */
		bool arrives;      /* and must be a NaN in the loss */
		int nstation;      /* outputs that it must be in on the way */
		const char *station[STATIONS];
	} poison;
};

/* --- generate.c: drawing and adding --- */

int64_t draw_below(struct generator *g, int64_t n); /* 0 .. n - 1 */
int64_t draw_range(struct generator *g, int64_t low, int64_t high);
bool draw_chance(struct generator *g, double p);
double draw_uniform(struct generator *g); /* [0, 1) */
double draw_normal(struct generator *g);
const char *draw_name(struct generator *g, const char *const *names, size_t n);
#define DRAW_NAME(g, names) draw_name((g), (names), sizeof(names) / sizeof *(names))

int64_t wire_count(const struct wire *v);
struct wire wire_of(const char *name, int rank, const int64_t *dim);
#define SHAPE(...)                                                                                 \
	wire_of("", (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
		(const int64_t[]){__VA_ARGS__})
bool wire_same_shape(const struct wire *a, const struct wire *b);

/* A node with one output of this shape; `inputs` is written "a,b". */
struct wire add_node(
	struct generator *g, const char *op, const struct wire *shape, const char *inputs);
/* One input, the same shape. */
struct wire add_same(struct generator *g, const char *op, struct wire x);
/* Two inputs that NumPy's rules broadcast. */
struct wire add_two(struct generator *g, const char *op, struct wire a, struct wire b);
/* Attributes of the last node. */
void add_int(struct generator *g, const char *name, int64_t v);
void add_float(struct generator *g, const char *name, double v);
void add_text(struct generator *g, const char *name, const char *v);
void add_ints(struct generator *g, const char *name, int n, const int64_t *v);
/* One more output of the last node. */
struct wire add_output(struct generator *g, const struct wire *shape);
/* Initializers. A weight is trained as a rule, sometimes frozen, sometimes an earlier one. */
struct wire add_weight(struct generator *g, double mean, double scale, const struct wire *shape);
/* What layers begin as when they are made: often all zeros (a bias) or all ones (a gain), so that
 * several are equal. `scale` is how far others are from that. */
struct wire add_bias(struct generator *g, double scale, const struct wire *shape);
struct wire add_gain(struct generator *g, double scale, const struct wire *shape);
struct wire add_constant(struct generator *g, double mean, double scale, const struct wire *shape);
struct wire add_scalar(struct generator *g, double v);
const char *add_numbers(struct generator *g, int n, const int64_t *v);
/* Indices below `range`: a constant, or (of shape) a data input. */
const char *add_indices(struct generator *g, const struct wire *shape, int64_t range, bool fed);
/* A data input of real numbers. */
struct wire add_input(struct generator *g, const struct wire *shape);
/* A reduction that keeps its axes. */
struct wire add_reduce(
	struct generator *g, const char *op, struct wire x, int n, const int64_t *axes);
struct wire add_reshape(struct generator *g, struct wire x, const struct wire *shape);
const char *format(struct generator *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- Blocks: from a value to another; the same value where they do not fit. --- */

typedef struct wire block_fn(struct generator *g, struct wire x);
struct block_def {
	block_fn *make;
	int rank_least, rank_most, chance;
};
/* Ended by NULL. */
extern const struct block_def blocks_simple[], blocks_layers[], blocks_index[], blocks_nested[],
	blocks_shared[], blocks_whole[];
/* A block drawn. */
struct wire add_block(struct generator *g, struct wire x);
/* The same, its result reduced until it can be added to x. */
struct wire add_branch(struct generator *g, struct wire x);
struct wire add_activation(struct generator *g, struct wire x);
/* [..., d] to [..., m], of weights [d, m]. */
struct wire add_projection(struct generator *g, struct wire x, int64_t m);
/* Of moderate size. */
struct wire add_tamed(struct generator *g, struct wire x);

/* --- losses.c, poison.c --- */

/* The end of a model: x's loss, by its name or written out; then of other values too. Makes outputs
 * of what it needs. */
void add_loss(struct generator *g, struct wire x, int nother, const struct wire *other);
/* Sometimes: a data input that has a NaN or an infinity, and whether the loss must be NaN. */
void add_poison(struct generator *g);

/* --- modules.c --- */

/* Writes the model as PyTorch would: how many parameters have lost their initializer, or -1. */
int random_as_modules(struct generator *g, const char *path);

/* A whole model from a seed: into t->model, with t->options. */
void generate_model(struct generator *g, struct model_test *t, uint64_t seed);

/* --- run.c --- */

enum { VARIANTS = 9 };

struct random_model {
	uint64_t seed;
	struct model_test *t;
	struct generator g;
	char name[32], path[4096], modules_path[4096], error[1500];
	int lost; /* parameters without initializer in modules_path */
	struct random_variant *variant;
	bool ill; /* too sensitive to tell errors of single precision from bugs */
};

/* Draw it, write it to `folder` and its variants' sources below. False with an error. */
bool random_build(struct random_model *m, const char *folder);
/* The sources, to the compiler's command. */
void random_sources(const struct random_model *m, const char *folder, struct text *command);
/* Run and compare. */
bool random_check(struct random_model *m, void *object);
void random_free(struct random_model *m);

#endif
