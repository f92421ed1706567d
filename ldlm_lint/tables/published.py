"""Published packages that repositories copy in as a folder of the same name, with modules that identify their code.

As of 2026-11-26: modules and folders that the repositories of these packages have had over several releases. A folder
counts as the package's code only if at least two of them exist: many projects have a folder ``clip`` or
``transformers``. Packages that projects fork to train with (``ldm``, ``guided_diffusion``, ``megatron``) are left out:
the changes of such a fork are its own work.
"""

from __future__ import annotations

from collections.abc import Mapping

NEEDED = 2
PUBLISHED: Mapping[str, tuple[str, ...]] = {
    "accelerate": ("accelerator", "data_loader", "big_modeling", "state"),
    "apex": ("amp", "fp16_utils", "multi_tensor_apply", "normalization"),
    "clip": ("simple_tokenizer", "clip"),
    "deepspeed": ("runtime", "ops", "launcher", "comm"),
    "detectron2": ("modeling", "engine", "structures", "config", "checkpoint"),
    "diffusers": ("pipelines", "schedulers", "configuration_utils", "modeling_utils", "pipeline_utils"),
    "dinov2": ("hub", "layers", "fsdp", "eval"),
    "fairseq": ("criterions", "tasks", "checkpoint_utils", "sequence_generator"),
    "flash_attn": ("flash_attn_interface", "bert_padding", "modules", "ops"),
    "fvcore": ("common", "nn", "transforms"),
    "groundingdino": ("models", "config", "util", "datasets"),
    "k_diffusion": ("sampling", "external", "gns", "evaluation", "layers"),
    "lavis": ("processors", "runners", "tasks", "models"),
    "lpips": ("pretrained_networks", "trainer"),
    "midas": ("dpt_depth", "midas_net", "midas_net_custom", "vit"),
    "mmaction": ("apis", "core", "datasets", "localization"),
    "mmcls": ("apis", "core", "datasets", "models"),
    "mmcv": ("cnn", "runner", "fileio", "parallel", "ops", "image", "video"),
    "mmdet": ("apis", "core", "datasets", "models"),
    "mmdet3d": ("apis", "core", "datasets", "models", "ops"),
    "mmengine": ("runner", "fileio", "hooks", "registry", "dist"),
    "mmpose": ("apis", "core", "datasets", "models"),
    "mmseg": ("apis", "core", "datasets", "models", "ops"),
    "open_clip": ("factory", "tokenizer", "transformer", "pretrained"),
    "peft": ("tuners", "peft_model", "mapping"),
    "pycocotools": ("coco", "cocoeval", "mask"),
    "pytorch_pretrained_bert": ("modeling", "tokenization", "optimization", "file_utils"),
    "pytorch_transformers": ("modeling_utils", "tokenization_utils", "optimization", "file_utils"),
    "sam2": ("build_sam", "sam2_image_predictor", "modeling"),
    "segment_anything": ("build_sam", "predictor", "automatic_mask_generator", "modeling"),
    "timm": ("models", "data", "layers", "optim", "scheduler"),
    "torchvision": ("transforms", "models", "datasets", "ops"),
    "transformers": ("modeling_utils", "configuration_utils", "tokenization_utils", "trainer"),
    "trl": ("trainer", "core", "models"),
    "xformers": ("components", "ops", "factory", "triton"),
    "zoedepth": ("models", "trainers", "data"),
}
