"""Names of functions and classes that evaluate."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily

if TYPE_CHECKING:
    from astroid import nodes

EVALUATION = lazily(
    r"^_*(maybe_)?(eval\w*|valid(?!ate_(tensor|loss|grad|input|batch|output|shape|value))\w*|val(_\w+)?|test(_\w+)?|infer\w*"
    r"|predict\w*|generate\w*|sample|benchmark\w*|(\w+_)?visuali[sz]e\w*|plot\w*|export\w*|save\w*|dump\w*|load\w*|(?!train)\w+_test)$"
)
# A cache of keys and values exists during generation.
EVALUATOR = lazily(r"Evaluator|PostProcess|Predictor$|Metric|Visuali[sz]er|K[Vv]_?Cache$")
# Runtimes for exported models: training through them is impossible.
RUNTIMES = {"onnxruntime", "tensorrt", "openvino", "coremltools", "tflite_runtime"}
_EVALUATED = lazily(r"(?i)(^|_)(eval|evaluation|evaluator|metrics?)(_|$)")
RUNTIME_CALLS = {"InferenceSession", "deserialize_cuda_engine", "readNetFromONNX"}


@functools.lru_cache(4096)
def names_evaluation(scope: str) -> bool:
    """Whether a dotted name of functions and classes indicates evaluating, predicting, plotting or saving."""
    return any(EVALUATION.search(part) or EVALUATOR.search(part) for part in scope.split("."))


def loads_for_evaluation(call: nodes.Call) -> bool:
    """Whether the path that a model is loaded from belongs to evaluation:
    ``from_pretrained(config.eval.checkpoint)``.
    """
    path = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "pretrained_model_name_or_path"), None)
    parts = path.as_string().split(".") if path is not None else []
    return all(map(str.isidentifier, parts)) and any(map(_EVALUATED.search, parts))
