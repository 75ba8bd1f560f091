"""Every family, by name."""
from . import basics, branches, dense, language, recent, structured, vision

# The export ways whose files are committed, where these are not two of the usual ones: together they are to be no
# more than 16 MB, with every family, exporter and opset (11, 13, 17, 18, 23) among them.
COMMITTED = {
    "attention_pooling": ("raw", "old"),
    "attention_twice": ("new",),
    "cnn_fresh": ("new",),
    "padding": ("raw",),
    "padding_asked": ("old",),
    "padding_tied": ("new",),
    "convnext": ("new",),
    "cpubone": ("old",),
    "deeplab_v3": ("old",),
    "deepseek_v4": (),
    "densenet121": ("old",),
    "diffusion_unet": ("raw",),
    "dinov3_vit": ("new", "old"),
    "efficientnet_b0": ("raw",),
    "efficientvim": ("old",),
    "fcn_resnet50": ("old",),
    "gates": ("new",),
    "gemma4": ("raw",),
    "gemma4_vit": (),
    "googlenet": ("old",),
    "gpt2": ("new", "raw", "old11"),
    "gpt2_flash": ("raw", "new23"),
    "gpt2_untied": (),
    "gpt_oss": ("raw",),
    "heads": ("raw",),
    "hf_bert": ("new", "raw"),
    "hf_bert_eager": ("ort",),
    "hf_gpt2": ("new",),
    "hf_gpt2_eager": ("new",),
    "hf_llama_eager": (),
    "hf_llama_mask": ("old",),
    "hf_t5": ("new",),
    "hrm_text": ("new",),
    "kolibri1": (),
    "lfm3": ("raw",),
    "lines": ("raw", "old"),
    "llama": ("new", "raw", "old"),
    "mamba2": ("old",),
    "mistral4": ("raw",),
    "mixer": ("new",),
    "mlp_focal": ("raw",),
    "mlp_weighted": ("old",),
    "mobilenet_v2": ("old",),
    "mobilenet_v3_small": ("old",),
    "norm_free": ("raw", "old"),
    "modernbert": ("new", "old"),
    "norms": (),
    "pointnet": ("raw", "old"),
    "quantised": ("new", "old13"),
    "qwen3": ("new",),
    "qwen3_5": ("raw",),
    "resnet18": ("new", "raw", "old11"),
    "resnet50": ("old",),
    "segnet": ("raw",),
    "shufflenet_v2": ("raw",),
    "spectral": (),
    "squeezenet": ("new", "old11"),
    "swin": ("new",),
    "swin_v2": ("raw",),
    "towers": (),
    "transformer": ("new",),
    "transformer_encoder_fresh": ("new",),
    "ultrabert": ("new",),
    "unet_bilinear": ("raw", "old11"),
    "unet_transposed": ("raw",),
    "vae": ("raw", "old"),
    "vae_random": ("raw",),
    "vgg16": ("new", "old13"),
    "vit": ("new",),
    "vit_fresh": (),
    "zaya": ("raw",),
}

FAMILIES = {}
for module in (basics, vision, dense, language, structured, recent, branches):
    for name, family in module.TABLE.items():
        assert name not in FAMILIES, name
        FAMILIES[name] = family
        if name in COMMITTED:
            family.commit = COMMITTED[name]
        else:  # `new` loses batch-norm
            first = ("raw", "old") if module in (basics, vision, dense) else ("new", "old", "raw")
            family.commit = () if family.large else tuple(w for w in first if w not in family.cannot)[:2]
