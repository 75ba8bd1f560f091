/* Which initializers are trained: the file does not say it outright. In this order: the command
 * line, how nodes read it, what the exporter noted of the module, the values, the name. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "import/import_parts.h"

/* --- The decision --- */

static bool is_number(const char *s)
{
	while (isdigit((unsigned char)*s))
		s++;
	return !*s;
}

bool name_generated(const char *name)
{
	static const char *const prefix[] = {"val_", "_val_", "onnx::", "const_fold_opt__",
		"Const_", "Constant_", "lifted_tensor_", "_tensor_constant", "new_shape__"};
	for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
		if (!strncmp(name, prefix[i], strlen(prefix[i])))
			return true;
	const char *out = strstr(name, "_output_");
	if (!out)
		return is_number(name);
	/* a copy's name goes on: "/Sqrt_output_0@/Mul.1" */
	out += strlen("_output_");
	const size_t digits = strspn(out, "0123456789");
	return digits && (!out[digits] || out[digits] == '@');
}

bool name_numbered(const char *name, const char *const word[])
{
	for (; *word; word++) {
		const size_t n = strlen(*word);
		if (!strncmp(name, *word, n) &&
			(!name[n] || (name[n] == '_' && name[n + 1] && is_number(name + n + 1))))
			return true;
	}
	return false;
}

/* Called as what PyTorch's factories give: "zeros", "zeros_like_3". A dynamo file keeps that name
 * for a state that the model begins with; a weight is never made in the forward pass. */
static bool is_from_factory(const char *name)
{
	static const char *const made[] = {"zeros", "ones", "full", "empty", "eye", "arange",
		"linspace", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros",
		"new_ones", "new_full", "new_empty", "scalar_tensor", NULL};
	return name_numbered(name, made);
}

/* Attention masks and the like: no weight is infinite, or near it. */
static bool is_mask(const struct tensor *t)
{
	const float *v = t->dtype == DT_F32 ? t->data : NULL; /* there may be very many */
	for (int64_t i = 0; i < t->numel; i++)
		if (!(fabs(v ? (double)v[i] : tensor_real(t, i)) < 1e30))
			return true;
	return false;
}

/* A table of which rows are looked up, some of them infinite: who is not to be attended to is so by
 * what the table adds. A mask has such numbers beside others in a row, or nothing else. */
static bool has_infinite_rows(const struct tensor *t)
{
	int64_t finite = 0;
	const int64_t row = t->rank >= 2 && t->dim[0] > 0 ? t->numel / t->dim[0] : 0;
	for (int64_t i = 0; row && i < t->dim[0]; i++) {
		int64_t far = 0;
		for (int64_t k = 0; k < row; k++) {
			const double v = tensor_real(t, i * row + k);
			if (isnan(v))
				return false;
			far += !(fabs(v) < 1e30);
		}
		if (far && far < row)
			return false;
		finite += !far;
	}
	return finite > 0;
}

/* One axis holds all elements, as of a layer scale or a bias in whatever shape: in what PyTorch's
 * older exporter made of parameters, where it does not meet the data themselves, as their mean
 * does. */
static bool is_by_axis(const struct importer *im, const struct tensor *t, const struct use *u)
{
	int longer = 0;
	for (int i = 0; i < t->rank; i++)
		longer += t->dim[i] > 1;
	return longer == 1 && !u->data && !im->module_first && !looks_computed(t) &&
	       !strncmp(t->name, "onnx::", strlen("onnx::"));
}

/* [C, 1, 1]: what folding makes of the scale and bias of a group norm. tf2onnx writes a batch-norm
 * or bias of Keras as [1, C, 1, 1]; elsewhere that is as likely the mean of the images. */
static bool is_by_channel(const struct tensor *t)
{
	bool keras = !strncmp(t->name, "const_fold_opt__", strlen("const_fold_opt__"));
	int axis = keras && t->rank >= 3 && t->dim[0] == 1;
	return t->rank >= 2 && t->dim[axis] > 1 && t->numel == t->dim[axis];
}

/* Copies along the first axis: what a folded broadcast leaves of a row of an embedding. Trained,
 * each sample of the batch would have one of its own. */
static bool is_broadcast(const struct tensor *t)
{
	int64_t row = t->rank >= 2 && t->dim[0] > 1 ? t->numel / t->dim[0] : t->numel;
	for (int64_t i = row; i < t->numel; i++)
		if (tensor_real(t, i) != tensor_real(t, i - row))
			return false;
	return row < t->numel;
}

/* A matrix that was repeated for each of a batch, as PyTorch expands one; equal numbers say
 * nothing, nor do equal matrices by another name. */
static bool is_repeated_matrix(const struct tensor *t)
{
	static const char *const expanded[] = {"expand", "view", "_unsafe_view", "repeat", NULL};
	if (t->rank < 3 || !name_numbered(t->name, expanded) || !is_broadcast(t))
		return false;
	for (int64_t i = 1; i < t->numel / t->dim[0]; i++)
		if (tensor_real(t, i) != tensor_real(t, 0))
			return true;
	return false;
}

/* The values of a Constant node that is only added, multiplied by or looked up: of weights all may
 * be zeros or ones, before training. */
static bool is_given(const struct tensor *t, const struct use *u)
{
	if (u && u->weight)
		return false;
	const double first = t->numel > 0 ? tensor_real(t, 0) : 0;
	return looks_uniform(t) ? t->numel > 1 && first != 0 && first != 1 : looks_computed(t);
}

static const char *why_parameter(const struct importer *im, const struct tensor *t)
{
	const char *of = names_get(&im->turned, t->name), *why = NULL;
	if (of)
		why = arena_printf(im->m.arena, "parameter of the module, turned: %s", of);
	return why ? why : "parameter of the module";
}

static struct decision by_origin_alone(const struct importer *im, const struct tensor *t)
{
	const struct use *u = names_get(&im->use, t->name);
	const struct module_tensor *origin = names_get(&im->module, t->name);
	if (origin && origin->kind == ORIGIN_PARAMETER)
		return (struct decision){true, why_parameter(im, t)};
	if (origin && origin->kind == ORIGIN_BUFFER)
		return (struct decision){false, "buffer of the module"};
	if (origin)
		return (struct decision){false, "constant of the module"};
	if (is_mask(t) && !(u && u->table && has_infinite_rows(t)))
		return (struct decision){false, "a mask"};
	if (im->module_first && is_from_factory(t->name))
		return (struct decision){false, "what torch.zeros and its like give"};
	if (names_get(&im->spelled, t->name) && is_given(t, u))
		return (struct decision){false, "a Constant whose values are no weight's"};
	bool made = im->module_first || name_generated(t->name);
	if (!made)
		return (struct decision){true, "by its name"};
	if (u && u->weight && im->module_first && is_repeated_matrix(t))
		return (struct decision){false, "one weight, which the exporter repeated"};
	if (u && u->weight && (u->expected || !im->module_first))
		return (struct decision){true, "where weights stand"};
	if (u && u->affine && is_by_channel(t) && strncmp(t->name, "exp", 3) != 0 &&
		(u->expected || !im->module_first))
		return (struct decision){true, "a value for each channel"};
	if (u && u->affine && is_by_axis(im, t, u))
		return (struct decision){true, "a value for each channel"};
	if (!strncmp(t->name, "embedding", 9) && im->module_first && !is_broadcast(t))
		return (struct decision){true, "a folded embedding"};
	return (struct decision){false, "made by the exporter"};
}

/* A copy that says nothing of itself is what its original is. */
static struct decision by_origin(const struct importer *im, const struct tensor *t)
{
	const struct copied *c = names_get(&im->copied, t->name);
	struct decision own = by_origin_alone(im, t);
	struct tensor of = *t;
	if (own.trained || !c || !c->trained)
		return own;
	of.name = c->of;
	return by_origin_alone(im, &of).trained ? (struct decision){true, "as what it is a copy of"}
						: own;
}

/* Scalars are settings and constants, but where PyTorch wrote a parameter's name (a temperature, a
 * global bias). */
static bool is_scalar_constant(const struct importer *im, const struct tensor *t)
{
	const struct module_tensor *origin = names_get(&im->module, t->name);
	if (t->rank > 0 || (origin && origin->kind == ORIGIN_PARAMETER))
		return false;
	bool pytorch = !strcmp(text_of(im->m.proto->producer_name), "pytorch");
	return im->module_first || !pytorch || name_generated(t->name);
}

bool weight_by_origin(const struct importer *im, const struct tensor *t)
{
	const struct use *u = names_get(&im->use, t->name);
	return dtype_is_real(t->dtype) && !is_scalar_constant(im, t) && !(u && u->known) &&
	       by_origin(im, t).trained;
}

static bool is_asked_for(const struct import_options *o, const char *name)
{
	return name_matches(o->train_pattern, name) || name_listed(o->train_name, name);
}

struct decision role_of(const struct importer *im, const struct tensor *t)
{
	const struct import_options *o = im->o;
	const struct use *u = names_get(&im->use, t->name);
	if (!dtype_is_real(t->dtype))
		return (struct decision){false, "no real numbers"};
	if (is_scalar_constant(im, t) && !is_asked_for(o, t->name))
		return (struct decision){false, "a scalar"};
	if (u && u->known)
		return (struct decision){false, "a setting of its operator"};
	if (names_get(&im->head, t->name))
		return (struct decision){true, "--replace-head"};
	if (name_matches(o->freeze_pattern, t->name) && !o->adapted)
		return (struct decision){false, "--freeze"};
	if (is_asked_for(o, t->name))
		return (struct decision){true, "--train"};
	if (o->train_pattern && !o->adapted)
		return (struct decision){false, "not in --train"};
	return by_origin(im, t);
}

/* --- Traces of folding --- */

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);
	return n >= m && !strcmp(s + n - m, end);
}

/* Keras's batch-norm in tf2onnx's files: gamma / sqrt(variance + epsilon), and what remains to be
 * added. */
static bool is_keras_trace(const char *name)
{
	static const char *const end[] = {"/batchnorm/mul:0", "/batchnorm/sub:0"};
	return ends_with(name, end[0]) || ends_with(name, end[1]);
}

/* What folded batch-norms leave behind. */
struct traces {
	struct text list;
	int n;
	bool keras;
};

static void add_trace(struct traces *x, const char *name)
{
	enum { TOLD = 4 };
	if (x->n++ < TOLD)
		text_add(&x->list, "%s'%s'", x->n > 1 ? ", " : "", name);
	else if (x->n == TOLD + 1)
		text_puts(&x->list, ", ...");
}

static bool is_by_pytorch(const struct importer *im)
{
	return !strcmp(text_of(im->m.proto->producer_name), "pytorch");
}

/* Running statistics that the module had and the file has not; or else a bias named after a weight;
 * layers whose weights and bias the exporter made. */
static void find_traces(struct importer *im, struct traces *x)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	const bool pytorch = is_by_pytorch(im);
	for (const struct module_tensor *t = im->module_first; t; t = t->next)
		if (t->kind == ORIGIN_BUFFER && ends_with(t->name, ".running_mean") &&
			!names_get(&im->use, t->name))
			add_trace(x, t->name);
	for (size_t i = 0, n = x->n ? 0 : g->n_initializer; i < n; i++) {
		const char *name = text_of(g->initializer[i]->name);
		const struct use *u = names_get(&im->use, name);
		const bool keras = is_keras_trace(name);
		if (!keras && !ends_with(name, ".weight_bias") && !(pytorch && u && u->renamed))
			continue;
		x->keras |= keras;
		add_trace(x, name);
	}
}

/* Constants named after operations on parameters; and weights that are the result of one, where a
 * module has lost its parameters (weight_norm, spectral_norm, normalized class vectors). */
static void warn_of_computed(struct importer *im)
{
	static const char *const operation[] = {"linear", "addmm", "matmul", "bmm", "mm", "conv2d",
		"conv1d", "layer_norm", "expand", "clone", NULL};
	static const char *const function[] = {"einsum", "dot", "mv", "softmax", "log_softmax",
		"sigmoid", "tanh", "relu", "softplus", "linalg_vector_norm", NULL};
	static const char *const arithmetic[] = {"mul", "div", "add", "sub", "pow", NULL};
	const Onnx__GraphProto *g = im->m.proto->graph;
	const bool known = im->module_first; /* the newer exporter's */
	for (size_t i = 0; (known || is_by_pytorch(im)) && i < g->n_initializer; i++) {
		const char *name = text_of(g->initializer[i]->name);
		const struct use *u = names_get(&im->use, name);
		bool scalar = g->initializer[i]->n_dims == 0;
		if (names_get(&im->module, name))
			continue;
		bool instead = known ? u && u->weight && u->expected &&
					       name_numbered(name, arithmetic)
				     : u && u->computed;
		bool beside = known && (name_numbered(name, function) ||
					       (!scalar && name_numbered(name, operation)));
		if (!instead && !beside)
			continue;
		diag_warn(im->d, &(struct where){im->m.path, name, "initializer"},
			known ? "export with optimize=False"
			      : "export with dynamo=True, optimize=False, or with "
				"do_constant_folding=False, which keep parameters",
			"seems to be computed from parameters by the exporter: %s",
			instead ? "it is trained in their place"
				: "their gradients lack what goes through it");
		return;
	}
}

/* onnxslim multiplies a layer's weights by a scale behind it, and says so in their names. */
static void warn_of_fused(struct importer *im)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++) {
		const char *name = text_of(g->initializer[i]->name);
		if (!ends_with(name, "_weight_fused"))
			continue;
		diag_warn(im->d, &(struct where){im->m.path, name, "initializer"},
			"take the model as it was before onnxslim",
			"is made of a layer's weights and what its outputs were multiplied by: "
			"trained as one");
		return;
	}
}

void warn_of_folding(struct importer *im)
{
	warn_of_fused(im);
	struct traces x = {0};
	warn_of_computed(im);
	find_traces(im, &x);
	if (x.n && !x.list.failed)
		diag_warn(im->d, &(struct where){.file = im->m.path},
			x.keras ? "docs/howto/export-from-keras.md tells how to keep them"
				: "export with dynamo=True, optimize=False, or with dynamo=False, "
				  "training=TrainingMode.TRAINING, do_constant_folding=False; "
				  "docs/howto/export-from-pytorch.md",
			"its batch-norms seem to be folded into other layers (%s tell%s): what "
			"is trained is a model without them",
			x.list.s, x.n == 1 ? "s" : "");
	text_free(&x.list);
}
