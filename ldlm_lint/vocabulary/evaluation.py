"""Names of functions and classes that evaluate."""

from __future__ import annotations

import functools

from ldlm_lint.patterns import lazily

EVALUATION = lazily(
    r"^_*(maybe_)?(eval\w*|valid(?!ate_(tensor|loss|grad|input|batch|output|shape|value))\w*|val(_\w+)?|test(_\w+)?|infer\w*"
    r"|predict\w*|generate\w*|sample|benchmark\w*|(\w+_)?visuali[sz]e\w*|plot\w*|export\w*|save\w*|dump\w*|load\w*|(?!train)\w+_test)$"
)
# A cache of keys and values exists during generation.
EVALUATOR = lazily(r"Evaluator|PostProcess|Predictor$|Metric|Visuali[sz]er|K[Vv]_?Cache$")
# Runtimes for exported models: training through them is impossible.
RUNTIMES = {"onnxruntime", "tensorrt", "openvino", "coremltools", "tflite_runtime"}
RUNTIME_CALLS = {"InferenceSession", "deserialize_cuda_engine", "readNetFromONNX"}


@functools.lru_cache(4096)
def names_evaluation(scope: str) -> bool:
    """Whether a dotted name of functions and classes indicates evaluating, predicting, plotting or saving."""
    return any(EVALUATION.search(part) or EVALUATOR.search(part) for part in scope.split("."))
