"""Names by which code shows what its training computes: matrix products, convolutions, the sizes of images, and in which precision
(November 2026).

Models and settings come from packages, registries and configurations, so that for much of this only the name is in the code.
"""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

CHOOSES_TF32 = lazily(r"allow_tf32|float32_matmul_precision|fp32_precision|NVIDIA_TF32_OVERRIDE|^-{0,2}tf32$")
REDUCES = lazily(
    r"GradScaler|bfloat16|float16|mixed_precision|MixedPrecision|^Accelerator$|deepspeed|^apex$|^precision$|^-{0,2}(?:use[-_])?(?:bf16|fp16|amp|half)$"
    r"|torch_dtype|set_default_dtype|set_default_tensor_type|TrainingArguments|HfArgumentParser|LightningCLI|^Fabric$|colossalai|fp8"
)
"""Settings, and what may read them from outside, that make products in fewer bits than float32 has."""
HALVES = "half"
"""The method of models and tensors; a variable may be called so, too."""
ATTENDS = lazily(r"attn|attention|transformer(?!_?net)|^LSTM$|^GRU$|from_pretrained", re.I)
MULTIPLIES = lazily(r"^Linear$|matmul|einsum|^bmm$|^mm$")
CONVOLUTIONS = frozenset(f"torch.nn.Conv{kind}{size}d" for kind in ("", "Transpose") for size in (2, 3))
CONVOLUTIONAL = lazily(
    r"^torchvision\.models\.(?!.*(?:vit|swin|vision_transformer|detection|segmentation|video))|^diffusers\..*(?:AutoencoderKL|UNet2D|VQModel)"
)
"""Convolutional networks of other packages, by their dotted names."""
ONE_SIZE = lazily(
    r"RandomResizedCrop|CenterCrop|center_crop|RandomCrop|CIFAR|MNIST|ImageFolder|(?:image|img|crop)[-_]?(?:size|res)|resolution"
)
MANY_SIZES = lazily(r"nested_?tensor|multi_?scale|pad_sequence|ShortestSize|aspect_?ratio_?bucket|CocoDetection", re.I)
