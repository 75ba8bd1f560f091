#!/usr/bin/env python3
"""microsoft_nodes.py FOLDER: tests as runtime_nodes.py's, of ONNX Runtime's own operators: a node each, and what ONNX Runtime 1.32.0
makes of it. Of those that it has for GPUs alone, what PyTorch 2.15.0 makes of the definition (marked `torch`)."""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

from runtime_nodes import save

rng = np.random.default_rng(36)
CASES = {}


def real(*shape, by=1.0):
    return (rng.standard_normal(shape) * by).astype(np.float32)


def case(name, op, inputs, outputs=1, given=None, domain="com.microsoft", known=(), **attributes):
    """inputs: arrays, None where absent; initializers those that are `known`. given: what the outputs are; None: as ONNX Runtime says."""
    CASES[name] = (op, inputs, outputs, given, domain, known, attributes)


def model_of(name, op, inputs, outputs, domain, attributes, shapes, known=()):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    values = [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for i, x in read_by(inputs, known)]
    results = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    made = [helper.make_tensor_value_info(y, *k) for y, k in zip(results, shapes)] if shapes else [
        # the scores' type is not inferred
        helper.make_tensor_value_info(y, 1, None) if k == 3 else helper.make_empty_tensor_value_info(y) for k, y in enumerate(results)]
    graph = helper.make_graph([node], name, values, made, [numpy_helper.from_array(inputs[i], f"x{i}") for i in known])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def read_by(inputs, known):
    return [(i, x) for i, x in enumerate(inputs) if x is not None and i not in known]


def run(model, inputs, known=()):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {f"x{i}": x for i, x in read_by(inputs, known)})


def torch_case(name, op, inputs, by, **attributes):
    case(name, op, inputs, 1, [by(*[torch.from_numpy(x) for x in inputs if x is not None]).numpy()], **attributes)


# --- Activations ---

case("ms_gelu", "Gelu", [real(3, 5, by=3)])
case("ms_biasgelu", "BiasGelu", [real(2, 3, 8), real(8)])
case("ms_fastgelu", "FastGelu", [real(2, 3, 8, by=3)])
case("ms_fastgelu_bias", "FastGelu", [real(2, 3, 8), real(8)])
case("ms_quickgelu", "QuickGelu", [real(2, 7, by=3)])
case("ms_quickgelu_alpha", "QuickGelu", [real(2, 7, by=3)], alpha=0.7)


def split_gelu(x, bias):
    left, right = torch.chunk(x + bias, 2, dim=-1)
    return left * F.gelu(right)


torch_case("ms_biassplitgelu", "BiasSplitGelu", [real(2, 3, 12), real(12)], split_gelu)

# --- Normalisations ---

x, gamma, beta, bias = real(2, 3, 8), real(8), real(8), real(8)
case("ms_skipln", "SkipLayerNormalization", [x, real(2, 3, 8), gamma, beta], epsilon=1e-5)
case("ms_skipln_all", "SkipLayerNormalization", [x, real(3, 8), gamma, beta, bias], 4)
case("ms_skipln_row", "SkipLayerNormalization", [x, real(1, 3, 8), gamma], epsilon=0.1)
case("ms_skiprms", "SkipSimplifiedLayerNormalization", [x, real(2, 3, 8), gamma], epsilon=1e-6)
case("ms_skiprms_bias", "SkipSimplifiedLayerNormalization", [real(4, 8), real(4, 8), gamma, bias])
case("ms_simplified", "SimplifiedLayerNormalization", [x, gamma], 2, domain="", epsilon=1e-6)
case("ms_simplified_axis", "SimplifiedLayerNormalization", [x, real(3, 8)], 2, domain="", axis=1, stash_type=1)

words, segments = rng.integers(0, 9, (2, 5)).astype(np.int32), rng.integers(0, 2, (2, 5)).astype(np.int32)
mask = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], np.int32)
tables = real(9, 8), real(7, 8), real(2, 8)
backwards = np.arange(5, dtype=np.int32)[None, ::-1].copy()
case("ms_embed", "EmbedLayerNormalization", [words, segments, *tables, gamma, beta, mask], 3)
case("ms_embed_places", "EmbedLayerNormalization", [words, None, *tables[:2], None, gamma, beta, None, backwards], 2, epsilon=0.1)


def group_norm(activation, groups):
    def norm(x, gamma, beta, skip=None, bias=None):
        x = torch.movedim(x + (0 if skip is None else skip) + (0 if bias is None else bias), -1, 1)
        y = F.group_norm(x, groups, gamma, beta)
        return torch.movedim(F.silu(y) if activation else y, 1, -1)
    return norm


image, gamma, beta = real(2, 3, 4, 6), real(6), real(6)
torch_case("ms_groupnorm", "GroupNorm", [image, gamma, beta], group_norm(0, 3), groups=3, activation=0)
torch_case("ms_groupnorm_silu", "GroupNorm", [image, gamma, beta], group_norm(1, 2), groups=2, activation=1)
torch_case("ms_groupnorm_first", "GroupNorm", [real(2, 6, 3, 4), gamma, beta], lambda x, w, b: F.group_norm(x, 3, w, b, 0.1),
    groups=3, activation=0, channels_last=0, epsilon=0.1)
torch_case("ms_skipgroupnorm", "SkipGroupNorm", [image, gamma, beta, real(2, 3, 4, 6), real(6)], group_norm(1, 2),
    groups=2, activation=1)
torch_case("ms_skipgroupnorm_row", "SkipGroupNorm", [image, gamma, beta, real(2, 1, 1, 6)], group_norm(0, 3),
    groups=3, activation=0)
torch_case("ms_biasadd", "BiasAdd", [real(2, 3, 4), real(4), real(2, 3, 4)], lambda x, b, s: x + b + s)

# --- Products ---

case("ms_matmul", "FusedMatMul", [real(2, 3, 4), real(5, 4)], alpha=0.5, transB=1)
case("ms_matmul_vectors", "FusedMatMul", [real(4), real(4)], transA=1, transB=1)
case("ms_matmul_batch_a", "FusedMatMul", [real(4, 2, 3, 5), real(2, 3, 5, 6)], transBatchA=1)
case("ms_matmul_batch_both", "FusedMatMul", [real(5, 2, 3, 4), real(6, 2, 3, 5)], transA=1, transBatchA=1, transB=1, transBatchB=1)
case("ms_transposematmul", "TransposeMatMul", [real(3, 4), real(5, 4)], transB=1, alpha=2.0)

a, b, c = real(3, 4), real(4, 5), real(5)
for name, numbers in dict(Relu={}, Tanh={}, Sigmoid={}, Softplus={}, Softsign={}, LeakyRelu=dict(alpha=0.3), Elu=dict(alpha=0.3),
        Celu=dict(alpha=0.3), ThresholdedRelu=dict(alpha=0.3), HardSigmoid=dict(alpha=0.3, beta=0.4),
        Selu=dict(alpha=0.3, gamma=1.4)).items():
    case(f"ms_gemm_{name.lower()}", "FusedGemm", [a, b, c], activation=name, **{f"activation_{k}": v for k, v in numbers.items()})
case("ms_gemm_turned", "FusedGemm", [real(4, 3), real(5, 4), real(1, 5)], activation="Relu", alpha=0.5, beta=2.0, transA=1, transB=1)

a, b = real(1, 2, 5, 5), real(3, 2, 3, 3)
for name, numbers in dict(Relu=[], Tanh=[], Sigmoid=[], HardSwish=[], LeakyRelu=[0.3], Clip=[-0.5, 0.7], HardSigmoid=[0.3, 0.4]).items():
    case(f"ms_conv_{name.lower()}", "FusedConv", [a, b, real(3)], activation=name, pads=[1, 1, 1, 1],
        **(dict(activation_params=numbers) if numbers else {}))
case("ms_conv_sum", "FusedConv", [a, b, None, real(1, 3, 3, 3)], activation="Relu")
case("ms_conv_line", "FusedConv", [real(2, 4, 7), real(6, 2, 3)], auto_pad="SAME_UPPER", strides=[2], group=2, kernel_shape=[3])


def nhwc(x, w, b=None, **more):
    return torch.movedim(F.conv2d(torch.movedim(x, -1, 1), torch.movedim(w, -1, 1), b, **more), 1, -1)


torch_case("ms_nhwcconv", "NhwcConv", [real(2, 5, 6, 3), real(4, 3, 2, 3), real(4)], lambda x, w, b: nhwc(x, w, b, stride=(2, 1), padding=1),
    pads=[1, 1, 1, 1], strides=[2, 1])
torch_case("ms_nhwcconv_groups", "NhwcConv", [real(1, 5, 5, 4), real(6, 2, 2, 2)], lambda x, w: nhwc(x, w, groups=2, dilation=2),
    group=2, dilations=[2, 2])

# --- Attention ---


def numbers(*values):
    return np.array(values, np.int32)


def zeros_and_ones(*shape):
    return rng.integers(0, 2, shape).astype(np.int32)


x, w, b, past = real(2, 3, 8), real(8, 24), real(24), real(2, 2, 2, 5, 4)
case("ms_attention", "Attention", [x, w, b], num_heads=2)
case("ms_attention_one_way", "Attention", [x, w], num_heads=2, unidirectional=1, scale=0.3)
case("ms_attention_widths", "Attention", [x, real(8, 28), real(28)], num_heads=2, qkv_hidden_sizes=[8, 8, 12])
for name, given in dict(ends=numbers(2, 3), ranges=numbers(3, 2, 1, 0), sums=numbers(2, 3, 0, 3, 6, 0, 2, 5),
        keys=numbers(1, 2, 0, -1, 1, 1).reshape(2, 3), pairs=zeros_and_ones(2, 3, 3), place=numbers(0).reshape(1, 1)).items():
    case(f"ms_attention_{name}", "Attention", [x, w, b, given], num_heads=2)
case("ms_attention_filter", "Attention", [x, w, b, numbers(1, 2)], num_heads=2, mask_filter_value=-3.0, unidirectional=1)
case("ms_attention_addend", "Attention", [x, w, b, numbers(2, 3), None, real(2, 1, 3, 3)], num_heads=2)
case("ms_attention_past", "Attention", [x, w, b, zeros_and_ones(2, 8), past], 2, num_heads=2, unidirectional=1)
case("ms_attention_past_ends", "Attention", [x, w, b, numbers(4, 7), past], 2, num_heads=2)

q, k, v = real(2, 3, 8), real(2, 5, 8), real(2, 5, 12)
heads = real(2, 2, 5, 4), real(2, 2, 5, 4)
before = real(2, 2, 4, 4), real(2, 2, 4, 4)
multi = "MultiHeadAttention"
case("ms_multi", multi, [q, k, v, real(28)], num_heads=2, scale=0.4)
case("ms_multi_one_way", multi, [k, k[:, :3].copy(), v[:, :3].copy()], num_heads=2, unidirectional=1)
case("ms_multi_heads", multi, [q, *heads, real(24)], num_heads=2)
case("ms_multi_present", multi, [q, k, k], 3, num_heads=2)
for name, given in dict(ends=numbers(2, 5), sums=numbers(2, 5, 0, 3, 6, 0, 2, 7), keys=zeros_and_ones(2, 5),
        pairs=zeros_and_ones(2, 3, 5)).items():
    case(f"ms_multi_{name}", multi, [q, k, v, None, given], num_heads=2, mask_filter_value=-4.0)
case("ms_multi_addend", multi, [q, k, v, None, numbers(2, 5), real(1, 2, 3, 5)], num_heads=2)
case("ms_multi_past", multi, [q, q, q, real(24), None, None, *before], 3, num_heads=2, unidirectional=1)
case("ms_multi_past_keys", multi, [q, q, q, None, zeros_and_ones(2, 7), real(2, 1, 3, 7), *before], 3, num_heads=2)
case("ms_multi_scores", multi, [q, k, k, None, numbers(2, 5)], 4, num_heads=2, mask_filter_value=-4.0)


def packed(x, bias):
    q, k, v = [t.transpose(1, 2) + b.reshape(1, 2, 1, 4) for t, b in zip(x.unbind(3), bias.split(8))]
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def packed_keys(q, kv):
    k, v = [t.transpose(1, 2) for t in kv.unbind(3)]
    return F.scaled_dot_product_attention(q.unflatten(2, (2, 4)).transpose(1, 2), k, v).transpose(1, 2).flatten(2)


torch_case("ms_multi_packed", multi, [real(2, 3, 2, 3, 4), None, None, real(24)], packed, num_heads=2)
torch_case("ms_multi_packed_keys", multi, [q, real(2, 5, 2, 2, 4)], packed_keys, num_heads=2)

cos, sin, place = real(9, 2), real(9, 2), rng.integers(0, 9, (2, 3))
case("ms_rotary", "RotaryEmbedding", [real(2, 2, 3, 4), place, cos, sin])
case("ms_rotary_from", "RotaryEmbedding", [real(2, 2, 3, 4), np.array([2]), cos, sin], interleaved=1)
case("ms_rotary_flat", "RotaryEmbedding", [real(2, 3, 8), place, cos, sin], scale=0.5)
case("ms_rotary_some", "RotaryEmbedding", [real(2, 3, 12), place, cos, sin], num_heads=2, rotary_embedding_dim=4)


# Without the outputs for what is present ONNX Runtime forgets the past: all three are asked for, of which rows beyond a sample's
# length are anything; `outputs` are compared.


def grouped(name, more=(), outputs=1, past=(None, None), lengths=(4, 4), total=4, parts=None, given=None, **attributes):
    """more: the inputs from the angles on."""
    q, k, v = parts or (real(2, 4, 64), real(2, 4, 32), real(2, 4, 32))
    inputs = [q, k, v, *past, np.array(lengths, np.int32) - 1, np.array([total], np.int32), *more]
    attributes |= dict(num_heads=4, kv_num_heads=2)
    model = model_of(name, "GroupQueryAttention", inputs, max(outputs, 3), "com.microsoft", attributes, None, (6,))
    y = given(inputs) if given else run(model, inputs, (6,))[:outputs]
    case(name, "GroupQueryAttention", inputs, outputs, y, known=(6,), **attributes)


cos, sin = real(9, 8), real(9, 8)
grouped("ms_group", outputs=3)
grouped("ms_group_lengths", lengths=(2, 4), scale=0.2)
grouped("ms_group_both_ways", lengths=(2, 4), causal=0)
grouped("ms_group_window", local_window_size=2)
grouped("ms_group_softcap", [None, None, None, real(1, 4, 4, 4)], softcap=0.5)
grouped("ms_group_smooth", lengths=(3, 4), smooth_softmax=1)
grouped("ms_group_sinks", [None, None, None, real(2, 1, 4, 4), real(4)], softcap=0.5, local_window_size=3)
grouped("ms_group_rotary", [cos, sin], 3, do_rotary=1, lengths=(3, 4))
grouped("ms_group_rotary_from", [cos, sin, np.array([[3, 0, 0, 0], [1, 0, 2, 5]])], do_rotary=1, rotary_interleaved=1)
grouped("ms_group_packed", [cos, sin], 3, parts=(real(2, 4, 128), None, None), do_rotary=1)
grouped("ms_group_scores", outputs=4, softcap=0.5, qk_output=1)
grouped("ms_group_probabilities", outputs=4, qk_output=2)
grouped("ms_group_none_before", outputs=3, past=(real(2, 2, 0, 16), real(2, 2, 0, 16)))
past, one = (real(2, 2, 5, 16), real(2, 2, 5, 16)), (real(2, 1, 64), real(2, 1, 32), real(2, 1, 32))
three = real(1, 3, 64), real(1, 3, 32), real(1, 3, 32)
grouped("ms_group_next", [cos, sin], 3, past, (6, 6), 6, one, do_rotary=1)
grouped("ms_group_next_lengths", [cos, sin], 1, past, (6, 4), 6, one, do_rotary=1, local_window_size=3)
grouped("ms_group_next_at", [cos, sin, np.array([[3], [2]])], 1, past, (6, 5), 6, one, do_rotary=1)
grouped("ms_group_next_room", [], 1, past, (4, 3), 4, one)
grouped("ms_group_next_three", [None, None, None, real(1, 1, 3, 8)], 3, [p[:1].copy() for p in past], (8,), 8, three)
grouped("ms_group_again", [], 1, past, (4, 4), 4)


def heads_normed(inputs):
    q, k, v = [torch.from_numpy(t).unflatten(2, (-1, 16)).transpose(1, 2) for t in inputs[:3]]
    q, k = [F.rms_norm(t, (16,), torch.from_numpy(w), e) for t, w, e in ((q, inputs[14], 1e-6), (k, inputs[15], 0.1))]
    return [F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2).numpy()]


grouped("ms_group_normed", [None] * 7 + [real(16), real(16)], given=heads_normed, k_norm_epsilon=0.1)


# --- Writing ---


def main(folder):
    for name, (op, inputs, outputs, given, domain, known, attributes) in CASES.items():
        y = given or run(model_of(name, op, inputs, outputs, domain, attributes, None, known), inputs, known)
        shapes = [(helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for v in y]
        model = model_of(f"test_{name}", op, inputs, outputs, domain, attributes, shapes, known)
        read = [numpy_helper.from_array(x, f"x{i}") for i, x in read_by(inputs, known)]
        save(folder / f"test_{name}", model, read, *y)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
