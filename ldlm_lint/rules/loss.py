"""Family 78, precision, compile and loss: losses that lose their scale or their gradient."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Frequency, Reference, Rule

MSE_ON_UNIT_VECTORS = Rule(
    code="W7809",
    symbol="mse-on-unit-vectors",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="the mean squared error of the unit vectors %(left)s and %(right)s is 2 (1 - cos) / D: its value and its "
    "gradient shrink with the width D; multiply it by D / 2, or use 1 - cosine similarity",
    summary="A mean squared error between two vectors that were both normalized to length one.",
    rationale="For unit vectors of D elements the mean over the squared differences is (2 - 2 cos) / D: the cosine "
    "distance, divided by half the width. Its value never exceeds 4 / D, and its gradients have the same factor. Next "
    "to other terms such a loss has almost no effect, its weight silently depends on the width, and the lengths "
    "of the vectors, which a diffusion target needs, are not learned.",
    cost="A factor of 2 / D on this term and its gradients: 1/16 at D = 32, 1/512 at D = 1024 (checked to 8 digits). "
    "No time.",
    exceptions="A term whose weight was tuned with this factor in it: it has the same information as the cosine "
    "distance. Replacing it with `1 - cos` multiplies the term by D / 2, so divide its weight by the same factor.",
    versions="All versions of torch: it follows from arithmetic.",
    verification="Print `loss * D / 2` next to `(1 - F.cosine_similarity(a, b)).mean()`: they are equal. Then compare "
    "the gradient norm of this term with that of the others.",
    references=(
        Reference(
            "torch.nn.functional.normalize",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.normalize.html",
        ),
        Reference(
            "torch.nn.functional.mse_loss",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.mse_loss.html",
        ),
        Reference(
            "torch.nn.CosineSimilarity", "https://docs.pytorch.org/docs/stable/generated/torch.nn.CosineSimilarity.html"
        ),
    ),
    reads=("py",),
    triggers=(b"normalize", b"norm("),
    requires=((b"mse", b"MSELoss", b"** 2", b"**2", b"pow(", b"square("),),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: multiplied by D / 2 the term is the mean of 1 - cos, and counts that much more next to "
    "the other terms.",
)

CLAMPED_LOSS = Rule(
    code="W7810",
    symbol="clamped-loss",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="%(loss)s has no gradient above %(bound)s: the clamp stops training when the loss is large, and hides an "
    "infinite loss; clip the gradient norm instead",
    summary="A loss that is clamped from above before its backward pass.",
    rationale="The gradient of `clamp(loss, max=M)` is that of the loss up to M, and zero above: the batches with the "
    "largest errors train nothing. An infinite loss becomes M with gradient zero, so a later check for infinity never "
    "fires. A NaN stays NaN, and its gradient is zero too. The clamp does not limit gradients: just below M they are "
    "unchanged. Clip their norm instead, or skip the step on all ranks together.",
    cost="Saturated steps update nothing (or only through weight decay and momentum) and still take their full time. "
    "How often that happens depends on M and the data.",
    exceptions="A robust loss on purpose, such as truncating a known share of outliers per element. A bound that the "
    "loss cannot reach is dead code. A lower bound alone (free bits, a hinge) is not reported.",
    versions="All versions of torch.",
    verification="Log the loss before the clamp, and the share of steps above M; or look for `grad_norm == 0` in "
    "these steps.",
    references=(
        Reference("torch.clamp", "https://docs.pytorch.org/docs/stable/generated/torch.clamp.html"),
        Reference(
            "torch.nn.utils.clip_grad_norm_",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html",
        ),
    ),
    reads=("py",),
    triggers=(b"clamp", b"clip(", b"clip_(", b"minimum(", b"min("),
    requires=((b"loss", b"Loss", b"entropy"),),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: without the bound large losses train with their full gradient, so its norm must be "
    "clipped.",
)

RULES = (MSE_ON_UNIT_VECTORS, CLAMPED_LOSS)
