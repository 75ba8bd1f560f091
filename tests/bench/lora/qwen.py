"""qwen.py OUT.onnx SIZE [LAYERS]: Qwen2.5's architecture with random weights, as PyTorch exports it; SIZE 0.5B or 1.5B.

Wants torch, transformers and onnxscript. A sequence of 256 tokens, batch 1; weights lie in OUT.onnx.data.
"""
import sys

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

LENGTH = 256
SIZES = {  # as the published configurations have them
    "0.5B": {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
             "num_key_value_heads": 2},
    "1.5B": {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
             "num_key_value_heads": 2},
}


class Logits(Qwen2ForCausalLM):
    """The model itself, so that its parameters keep their names."""

    def forward(self, tokens):  # pylint: disable=arguments-differ
        return super().forward(input_ids=tokens, use_cache=False).logits


def main(out, size, layers=None):
    size = dict(SIZES[size])
    if layers:
        size["num_hidden_layers"] = int(layers)
    torch.manual_seed(0)
    config = Qwen2Config(vocab_size=151936, max_position_embeddings=32768, rope_theta=1e6, rms_norm_eps=1e-6,
                         tie_word_embeddings=True, **size)
    tokens = torch.zeros((1, LENGTH), dtype=torch.int64)
    torch.onnx.export(Logits(config).eval(), (tokens,), out, dynamo=True, optimize=False, opset_version=18,
                      input_names=["tokens"], output_names=["logits"], external_data=True)


main(*sys.argv[1:])
