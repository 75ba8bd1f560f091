/* The list of operator families. A new family adds its line to FAMILIES. */
#include "ops/ops.h"

/* clang-format off */
#define FAMILIES(F) \
	F(ops_activation) \
	F(ops_adafactor) \
	F(ops_adammini) \
	F(ops_attention) \
	F(ops_binary) \
	F(ops_bitwise) \
	F(ops_branch) \
	F(ops_buffer) \
	F(ops_cast) \
	F(ops_clip) \
	F(ops_colim) \
	F(ops_compare) \
	F(ops_control) \
	F(ops_conv) \
	F(ops_convtranspose) \
	F(ops_countedlabels) \
	F(ops_crossentropy) \
	F(ops_ctc) \
	F(ops_cumsum) \
	F(ops_depthspace) \
	F(ops_disk) \
	F(ops_dropout) \
	F(ops_eightbit) \
	F(ops_einsum) \
	F(ops_gather) \
	F(ops_gathernd) \
	F(ops_gelu) \
	F(ops_gradients) \
	F(ops_gridsample) \
	F(ops_groupnorm) \
	F(ops_hardmax) \
	F(ops_joinslice) \
	F(ops_kept_loop) \
	F(ops_layernorm) \
	F(ops_batchnorm) \
	F(ops_batchnormsync) \
	F(ops_fakequant) \
	F(ops_fused) \
	F(ops_gru) \
	F(ops_loss) \
	F(ops_lppool) \
	F(ops_lpnorm) \
	F(ops_lrn) \
	F(ops_lstm) \
	F(ops_matmul) \
	F(ops_move) \
	F(ops_ms_attention) \
	F(ops_ms_gelu) \
	F(ops_ms_group) \
	F(ops_ms_nchwc) \
	F(ops_ms_norm) \
	F(ops_ms_product) \
	F(ops_ms_quantised) \
	F(ops_muon) \
	F(ops_nll) \
	F(ops_none) \
	F(ops_onehot) \
	F(ops_outside) \
	F(ops_rules) \
	F(ops_pad) \
	F(ops_pairs) \
	F(ops_pool) \
	F(ops_quantised) \
	F(ops_random) \
	F(ops_reduce) \
	F(ops_repeat) \
	F(ops_resample) \
	F(ops_resize) \
	F(ops_rnn) \
	F(ops_roialign) \
	F(ops_roll) \
	F(ops_rotary) \
	F(ops_rounding) \
	F(ops_reverse) \
	F(ops_scatter) \
	F(ops_select) \
	F(ops_sequence) \
	F(ops_shape) \
	F(ops_shard) \
	F(ops_silu) \
	F(ops_slice) \
	F(ops_softmax) \
	F(ops_stored) \
	F(ops_topk) \
	F(ops_training) \
	F(ops_transpose) \
	F(ops_trigonometry) \
	F(ops_unpool) \
	F(ops_variadic) \
	F(ops_view)
/* clang-format on */

#define DECLARE(name) extern const struct op_def name[];
FAMILIES(DECLARE)

#define LIST(name) name,
static const struct op_def *const families[] = {FAMILIES(LIST)};

const struct op_table *ops_table(void)
{
	static const struct op_table table = {sizeof families / sizeof *families, families};
	return &table;
}
