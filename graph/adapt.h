/* Adapters beside the weights of an imported model: what --lora says, and the pass. */
#ifndef STINT_GRAPH_ADAPT_H
#define STINT_GRAPH_ADAPT_H

#include "graph/op.h"
#include "graph/op_adapter.h"

/* One --lora. */
struct adapter_spec {
	const char *text; /* as it was written */
	/* For a shell; NULL: all weights of products that no other node reads. */
	const char *pattern;
	const char *module; /* in its place: the one weight of this module; NULL */
	int64_t rank;
	double alpha, dropout; /* dropout: the probability, 0: none */
	bool rslora;           /* the factor is alpha / sqrt(rank), not alpha / rank */
	bool dora;             /* each output's row of weights has a trained length */
};

/* "r=8,alpha=16[,dropout=0.05][,rslora][,dora][:PATTERN]" */
enum status adapter_parse(
	struct arena *a, const char *text, struct adapter_spec *out, struct diag *d);
double adapter_scale(const struct adapter_spec *s);

/* An adapter that the pass has made. */
struct adapter {
	const struct tensor *weight; /* whose, of the graph before */
	const char *module;          /* its name without ".weight" at its end */
	enum adapter_kind kind;
	const struct adapter_spec *spec;
	bool turned; /* a product's weight whose first axis is its outputs */
	bool read;   /* `turned` is known */
};

struct adapter_options {
	int nspec; /* the first that fits a weight holds */
	const struct adapter_spec *spec;
	/* Shell patterns of what is trained besides, and of what of that is not; ended by NULL;
	 * NULL: none. */
	const char *const *train_pattern, *const *freeze_pattern;
	const char *const *train_name; /* trained as well, by name; NULL: none */
	/* Sets a new parameter's first values, t->data, or refuses its shape. */
	enum status (*start)(void *user, struct tensor *t, enum adapter_start how, int64_t fan_in);
	void *user;
};

/* Requires an imported graph in which all that may have an adapter is a parameter. Produces a new
 * one in which adapters are parameters, named as PEFT names them, and parameters that no train
 * pattern matches are constants; *adapter are the n adapters. ST_USAGE where a spec fits no weight,
 * telling names near it. */
enum status graph_adapt(const struct graph *in, const struct adapter_options *o, struct graph **out,
	int *n, struct adapter **adapter);

#endif
