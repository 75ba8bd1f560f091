"""Every family, by name."""
from . import basics, dense, language, structured, vision

# The export ways whose files are committed, where these are not two of the usual ones: together they are to be no
# more than 12 MB, with every family, exporter and opset (11, 13, 17, 18, 23) among them.
COMMITTED = {
    "attention_pooling": ("raw", "old"),
    "attention_twice": ("new",),
    "cnn_fresh": ("new",),
    "padding": ("raw",),
    "padding_asked": ("old",),
    "padding_tied": ("new",),
    "convnext": ("new",),
    "deeplab_v3": ("old",),
    "densenet121": ("old",),
    "diffusion_unet": ("raw",),
    "efficientnet_b0": ("raw",),
    "fcn_resnet50": ("old",),
    "googlenet": ("old",),
    "gpt2": ("new", "raw", "old11"),
    "gpt2_flash": ("raw", "new23"),
    "gpt2_untied": (),
    "heads": ("raw",),
    "hf_bert": ("new", "raw"),
    "hf_gpt2": ("new",),
    "hf_gpt2_eager": ("new",),
    "hf_llama_eager": (),
    "hf_llama_mask": ("old",),
    "hf_t5": ("new",),
    "llama": ("new", "raw", "old"),
    "mixer": ("new",),
    "mobilenet_v2": ("old",),
    "mobilenet_v3_small": ("old",),
    "norm_free": ("raw", "old"),
    "norms": (),
    "pointnet": ("raw", "old"),
    "resnet18": ("new", "raw", "old11"),
    "resnet50": ("old",),
    "segnet": ("raw",),
    "shufflenet_v2": ("raw",),
    "squeezenet": ("new", "old11"),
    "swin": ("new",),
    "swin_v2": ("raw",),
    "transformer": ("new",),
    "transformer_encoder_fresh": ("new",),
    "unet_bilinear": ("raw", "old11"),
    "unet_transposed": ("raw",),
    "vae": ("raw", "old"),
    "vae_random": ("raw",),
    "vgg16": ("new", "old13"),
    "vit": ("new",),
    "vit_fresh": (),
}

FAMILIES = {}
for module in (basics, vision, dense, language, structured):
    for name, family in module.TABLE.items():
        assert name not in FAMILIES, name
        FAMILIES[name] = family
        if name in COMMITTED:
            family.commit = COMMITTED[name]
        else:  # `new` loses batch-norm
            first = ("raw", "old") if module in (basics, vision, dense) else ("new", "old", "raw")
            family.commit = () if family.large else tuple(w for w in first if w not in family.cannot)[:2]
