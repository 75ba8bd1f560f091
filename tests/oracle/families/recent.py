"""Architectures of 2024 to 2026, as transformers and timm have them, only narrower."""
import functools

import timm
import transformers as hf
from transformers.models.qwen3_5 import modeling_qwen3_5

from .family import Family, Take, image, labels, normal
from .language import NO_DIFF, TOKENS, VOCABULARY, WIDTH, tokens

# exporters unroll a chunk's steps: 4, not 64
modeling_qwen3_5.torch_chunk_gated_delta_rule = functools.partial(
    modeling_qwen3_5.torch_chunk_gated_delta_rule, chunk_size=4)

SMALL = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=4, max_position_embeddings=32, pad_token_id=None, bos_token_id=1,
             eos_token_id=2, initializer_range=0.2)  # of 0.02, slopes would be lost in rounding
MIXED = dict(layer_types=["sliding_attention", "full_attention"], sliding_window=4)
LINEAR = dict(layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2, linear_num_value_heads=4,
              linear_key_head_dim=4, linear_value_head_dim=4)
EXPERTS = dict(num_experts=4, num_local_experts=4, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=8,
               experts_implementation="batched_mm")
LATENT = dict(num_key_value_heads=4, q_lora_rank=8, kv_lora_rank=6, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=4)
COMPRESSED = dict(num_key_value_heads=1, head_dim=8, partial_rotary_factor=0.5, q_lora_rank=8, o_groups=2, o_lora_rank=4,
                  index_n_heads=2, index_head_dim=8, index_topk=2, sliding_window=4, hc_mult=2, hc_sinkhorn_iters=3)


def causal(name, config="Config", **kw):
    """A causal language model of the transformers library. Without a mask, which the older exporter cannot export."""
    settings = lambda: getattr(hf, name + config)(**SMALL | kw)
    return tokens(lambda: Take(getattr(hf, name + "ForCausalLM")(settings()), "logits", use_cache=False), cannot=NO_DIFF)


def masked(name, cannot=(), **kw):
    settings = lambda: getattr(hf, name + "Config")(**SMALL | kw)
    return tokens(lambda: Take(getattr(hf, name + "ForMaskedLM")(settings()), "logits"), cannot=cannot)


def mamba2():
    return hf.Mamba2ForCausalLM(hf.Mamba2Config(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2, num_heads=4, head_dim=8, state_size=4, n_groups=2,
        expand=2, chunk_size=4, initializer_range=0.2))


def dinov3():
    """Register tokens, rotary angles in two directions, scaled layers; angles are not jittered."""
    return hf.DINOv3ViTModel(hf.DINOv3ViTConfig(
        image_size=16, patch_size=4, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_register_tokens=2, pos_embed_rescale=None, initializer_range=0.2))


def picture(name, n, size, cannot=(), **kw):
    return Family(lambda: timm.create_model(name, num_classes=10, **kw), image(n, size), labels(10, n), cannot=cannot)


TABLE = {
    "qwen3": causal("Qwen3"),
    "qwen3_5": causal("Qwen3_5", "TextConfig", **LINEAR),
    "gemma4": causal("Gemma4", "TextConfig", final_logit_softcapping=5.0, vocab_size_per_layer_input=VOCABULARY,
                     hidden_size_per_layer_input=4, global_head_dim=4, **MIXED),
    "gpt_oss": causal("GptOss", **MIXED | EXPERTS),
    "mistral4": causal("Mistral4", **LATENT | EXPERTS),
    "deepseek_v4": causal("DeepseekV4", **COMPRESSED | EXPERTS),
    "lfm3": causal("Lfm3", layer_types=["conv", "full_attention"]),
    "kolibri1": causal("Kolibri1", sliding_window=4, shared_expert_intermediate_size=8, **EXPERTS),
    # the low cycle's first state is a parameter that is never trained, which no file says
    "hrm_text": causal("HrmText", prefix_lm=False, num_layers_per_stack=1, H_cycles=1, L_cycles=2),
    "zaya": causal("Zaya", router_hidden_size=6, **EXPERTS | dict(num_experts_per_tok=1)),
    "mamba2": tokens(lambda: Take(mamba2(), "logits", use_cache=False)),
    "modernbert": masked("ModernBert", num_hidden_layers=3, local_attention=6, pad_token_id=0,
                         cls_token_id=1, sep_token_id=2),
    "ultrabert": masked("Ultrabert", cannot=("old",), prediction_head_size=12, **MIXED),
    "dinov3_vit": Family(lambda: Take(dinov3(), "pooler_output"), normal(2, 3, 16, 16), labels(WIDTH, 2)),
    "gemma4_vit": picture("gemma4_vit_167m", 2, 48, cannot=("new", "old"), img_size=48, embed_dim=16, depth=2,
                          num_heads=2, head_dim=8, intermediate_size=24, position_embedding_size=8),
    "cpubone": picture("cpubone_nano", 3, 32, width_list=[4, 8, 8, 16, 16], head_widths=(24, 16)),
    "efficientvim": picture("efficientvim_m1", 3, 64, embed_dim=(8, 12, 16), depths=(1, 1, 1), state_dim=(9, 4, 4)),
}
