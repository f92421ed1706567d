"""Loss functions by name: functions and classes of torch, and usual names of loss classes in projects.

Source: the pages of `torch.nn` and `torch.nn.functional` of PyTorch 2.13 (docs.pytorch.org/docs/stable), read in
November 2026. For a class without visible callers only the name shows its purpose; in 80 repositories it never matched
a metric.
"""

from __future__ import annotations

FUNCTIONS = "torch.nn.functional."
ENDS = ("_loss", "cross_entropy", "cross_entropy_with_logits", "kl_div")
"""How the names of the functions end that compute a loss."""
OPERATIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
"""The base classes of operations that define their own gradient."""
STEPPERS = frozenset(f"timm.utils.{name}" for name in ("NativeScaler", "ApexScaler", "cuda.NativeScaler", "cuda.ApexScaler"))
"""Classes whose objects are called with a loss and an optimizer, and do the rest (timm 1.0, `timm/utils/cuda.py`)."""
CLASS_WORDS = ("Loss", "Criterion", "Objective")
"""Parts of the names of classes that compute one."""
