/* Branches that data decide: nodes that run only when their branch does, and sums of gradients
 * over them.
 *
 * A ROLE_BRANCH always runs. It makes two numbers, true where the nodes of a branch run, which
 * these have as `when`: of a branch inside another, only where that one runs too. What such a node
 * makes is read by nodes of the branch, and by ROLE_CHOOSE outside, which reads what was made and
 * leaves what was not. Autodiff gives a gradient's nodes the `when` of the node they are of, so
 * that the gradient of what a branch reads from outside is there where the branch ran, and 0
 * elsewhere: a sum of such gradients is kept as what it is where its nodes ran, together with when
 * that is, and made whole when somebody asks for it outside. */
#include "graph/graph_parts.h"

static bool is_branch(const struct tensor *when)
{
	return when->maker && when->maker->op->role == ROLE_BRANCH;
}

/* The branch around; NULL: none. */
static struct tensor *around(const struct tensor *when)
{
	return is_branch(when) ? node_input(when->maker, 1) : NULL;
}

bool branch_within(const struct tensor *inner, const struct tensor *outer)
{
	while (inner && inner != outer)
		inner = around(inner);
	return inner == outer;
}

/* The innermost branch that both are in. */
static struct tensor *common(struct tensor *a, const struct tensor *b)
{
	while (!branch_within(b, a))
		a = around(a);
	return a;
}

/* The branch directly inside `outer` that `inner` is in, or is. */
static struct tensor *inside(struct tensor *inner, const struct tensor *outer)
{
	while (around(inner) != outer)
		inner = around(inner);
	return inner;
}

struct tensor *branch_of_choice(const struct node *n, int k)
{
	struct tensor *when = n->in[0];
	if ((n->op->role != ROLE_CHOOSE && n->op->role != ROLE_EITHER) || k == 0 ||
		!is_branch(when))
		return n->when;
	const int side = when == when->maker->out[1];
	return when->maker->out[k == 1 ? side : 1 - side];
}

bool branch_reads(const struct node *n, int k)
{
	const struct node *maker = tensor_storage(n->in[k])->maker; /* views make nothing */
	const struct tensor *made = maker ? maker->when : NULL;
	if (n->op->role == ROLE_BRANCH && k == 0)
		return branch_within(node_input(n, 1), made);
	if (n->op->role == ROLE_EITHER && k > 0) /* where it was not made, nobody reads it */
		return branch_within(made, branch_of_choice(n, k));
	return branch_within(branch_of_choice(n, k), made) ||
	       (n->op->role == ROLE_ADD_WHEN && k == 2 && branch_within(n->in[0], made));
}

/* A node of this role that runs when `when` does. */
static struct tensor *add(
	struct graph *g, enum op_role role, struct tensor *when, int nin, struct tensor *const *in)
{
	struct tensor *const before = g->when;
	g->when = when;
	struct tensor *y = graph_op(g, op_by_role(g->table, role)->name, nin, in, 0, NULL);
	g->when = before;
	return y;
}

struct tensor *branch_leave(struct graph *g, struct branch_sum x, struct tensor *to)
{
	return !x.value || branch_within(to, x.when)
		       ? x.value
		       : add(g, ROLE_CHOOSE, to, 2, (struct tensor *[]){x.when, x.value});
}

/* Of two branches, one of which may be the other's or the way around. */
static enum status add_apart(struct graph *g, struct branch_sum *sum, struct branch_sum x)
{
	struct tensor *const outer = common(sum->when, x.when);
	if (sum->when == outer || x.when == outer) {
		const bool first = sum->when == outer;
		struct tensor *in[] = {first ? x.when : sum->when, first ? sum->value : x.value,
			first ? x.value : sum->value};
		*sum = (struct branch_sum){add(g, ROLE_ADD_WHEN, outer, 3, in), outer};
		return g->failed;
	}
	struct tensor *const a = inside(sum->when, outer), *const b = inside(x.when, outer);
	struct tensor *in[] = {a, branch_leave(g, *sum, a), branch_leave(g, x, b)};
	if (a->maker == b->maker) { /* either branch of one condition */
		*sum = (struct branch_sum){add(g, ROLE_CHOOSE, outer, 3, in), outer};
		return g->failed;
	}
	in[0] = b;
	in[1] = branch_leave(g, (struct branch_sum){in[1], a}, outer);
	*sum = (struct branch_sum){add(g, ROLE_ADD_WHEN, outer, 3, in), outer};
	return g->failed;
}

enum status branch_add(struct graph *g, struct branch_sum *sum, struct branch_sum x)
{
	if (!sum->value)
		*sum = x;
	else if (sum->when != x.when)
		return add_apart(g, sum, x);
	else
		sum->value = add(g, ROLE_ADD, x.when, 2, (struct tensor *[]){sum->value, x.value});
	return g->failed;
}
