#include "cli/option_groups.h"

#include <string.h>

enum { GROUP_MOST = 16 };

const char *const option_group_title[OPTION_GROUPS] = {"The model:", "Training:",
	"Memory, and planning:", "The step:", "For a GPU:", "To look at:", "More:"};

static const char *const member[OPTION_GROUPS][GROUP_MOST] = {
	{"batch", "dim", "train", "freeze", "tie", "untie", "stop-gradient", "fix", "replace-head",
		"padding-idx", "restore-biases", "qat", "ops", "lora", "adapter"},
	{"loss", "optimizer", "precision", "frozen-precision", "state-precision", "math", "group",
		"no-decay-1d", "clip-value", "clip-norm", "ema", "dropout", "bn", "bn-variance",
		"no-outputs", "input-gradient"},
	{"budget", "micro-batch", "ranks", "shard", "split", "keep-all", "segments", "recompute",
		"no-recompute", "unroll", "effort", "gap", "time", "costs", "fuse"},
	{"output", "force", "link-weights", "threads", "portable", "bare", "isa", "cross",
		"debug-arena", "no-build", "no-cache"},
	{"target", "arch", "offload"},
	{"compare", "link", "points", "svg", "html", "trace", "onnx", "steps", "json", "graph",
		"dump-graph", "dump-after"},
};

int option_group(const char *name)
{
	for (int g = 0; g < OPTION_GROUPS - 1; g++)
		for (int i = 0; i < GROUP_MOST && member[g][i]; i++)
			if (!strcmp(member[g][i], name))
				return g;
	return OPTION_GROUPS - 1;
}
