"""Lines of no known format: keys and values in any text, conservatively, since a wrong value is worse than none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ldlm_lint.monitor import headers
from ldlm_lint.monitor.names import EPOCH, STEP, Unit, plain
from ldlm_lint.monitor.numbers import MARK
from ldlm_lint.monitor.pairs import Pair, counter, item, pairs
from ldlm_lint.monitor.plans import Item, Part, assemble
from ldlm_lint.monitor.records import UNITS

# A line with none of these has no values; looked for one by one, which is faster than a pattern.
WORTH = (
    *("loss", "step", "iter", "epoch", "grad", "norm", "acc", "ppl", "perplex", "time", "flops", "mfu", "tps", "损失"),
    *("/s", "ms/", "per sec", "per_sec", "per-sec"),
)
# Settings, commands, code and the names of checkpoints hold numbers that no step measured.
_NOT = re.compile(
    r"\w(?:Namespace|Config|Arguments?|Args|Params|Settings)\(|^Namespace\(|(?:^|\s)--[a-zA-Z]|\.(?:ckpt|pth?|safetensors|bin|pkl)\b"
    # A line of a printed JSON or YAML file.
    r"|\s#[ \x00]|^\s*\"[\w.\-]+\": ?\x00,?$"
    r"|^\s*(?:def|class|return|import|if|for|while|print|self|assert|raise|parser|File|#|//)\b[\s.(]|\+=|\blambda\b|\bTraceback\b"
)
_PLACES = (STEP, EPOCH)
_PLAIN = frozenset(("loss", "perplexity", "accuracy", "grad_norm"))
_METRICS = frozenset(UNITS) - {"lr", "memory_bytes", "skipped_steps", "nan_iterations", "samples", "tokens"}
# The meters of PyTorch's imagenet example, `Time 0.4 (0.5) Data 0.1 (0.2)`, are seconds of a step wherever they are.
_METERS = {"time": "step_time_s", "batch": "step_time_s", "data": "data_time_s"}
_SECONDS = {"step_time_s": Unit("s"), "data_time_s": Unit("s")}
# Quantities without a canonical name: sufficient if the line has a step.
SCORES = (
    *("fid", "psnr", "ssim", "lpips", "miou", "iou", "map", "f1", "auc", "bleu", "rouge", "wer", "cer", "mae", "mse", "rmse"),
    *("reward", "rewards", "return", "kl", "entropy", "precision", "recall", "dice", "bpb", "bpc"),
)
_SCORE = re.compile(rf"(?:^|[_/ ])(?:{'|'.join(SCORES)})(?:$|[_/ ])")
_LOSS = re.compile(r"(?:^|[_/. ])loss(?:es)?(?:$|_|/|\.)")
# Of a loss, not one: `loss_weight`, `loss_scale_window`.
_SETTING = re.compile(
    r"weight|window|coef|lambda|alpha|factor|scale|smooth|thresh|ratio|margin|type|_fn|func|clip|every|freq"
)
_REPEATED = frozenset(("loss", "perplexity", "accuracy"))
_SPOKEN = re.compile(
    r"(?i)(?<![\w./-])(?:(?P<train>train(?:ing)?)|(?P<val>val(?:id(?:ation)?)?|eval(?:uation)?|test(?:ing)?|dev))(?![\w./-]*\.py|[\w/-])"
)
_DATE = re.compile(rf"^[\[(\s]*{MARK}(?:[-/.]?{MARK})+[T ]?(?::?{MARK})*[\])\s,:Z-]*")


def read(text: str, texts: Sequence[str]) -> list[Part] | None:
    """The records of a line from its skeleton; None if nothing in it is certain."""
    spoken = text.lower()
    if not any(word in spoken for word in WORTH):
        return None
    found = pairs(texts, frozenset((headers.rank(text),)))
    metered = {pair.key for pair in found if pair.mean}
    made = [(pair, one) for pair in found if (one := _item(pair, _METERS if pair.key in metered else {}))]
    shape = _shape(text)
    if not (_certain(made) or any(_alone(pair, one, shape) for pair, one in made)) or _NOT.search(text):
        return None
    items = [one for pair, one in made if one.key or pair.strong or pair.key.count(" ") < 3]
    if not any(one.key == STEP for one in items):
        items += [Item(pair.index, STEP, "step") for pair in found if _position(pair)][:1]
    return assemble("generic", _in_splits(items, texts), _spoken(texts, items), False, shape)


def _alone(pair: Pair, one: Item, shape: str) -> bool:
    """Whether a line is nothing but a measurement: ``val_loss 0.4628``."""
    return one.key in _PLAIN and shape == f"{pair.key}#"


def _item(pair: Pair, names: Mapping[str, str]) -> Item | None:
    made = item(pair, names, _SECONDS)
    if made and not made.key and not pair.mean and not made.unit and (place := counter(pair)):
        return made._replace(key=place)
    return made


def _position(pair: Pair) -> bool:
    """A number that counts up to a total and has no name: ``[100/3694]``."""
    return pair.of and not pair.key and not pair.unit


def _certain(made: Sequence[tuple[Pair, Item]]) -> bool:
    """Whether these are measurements of a training, and not words around numbers."""
    measured = [(pair, one) for pair, one in made if one.key in _METRICS or (one.key not in _PLACES and _is_loss(one))]
    placed = any(one.key in _PLACES for _, one in made)
    if placed and not measured:
        return any(_SCORE.search(plain(one.raw)) for _, one in made)
    return bool(measured) and (placed or len(measured) > 1 or any(pair.strong for pair, _ in measured))


def _is_loss(one: Item) -> bool:
    name = plain(one.raw)
    return bool(_LOSS.search(name)) and not _SETTING.search(name)


def _in_splits(items: Sequence[Item], texts: Sequence[str]) -> list[Item]:
    """Items in the split that the words right before them name; repeated keys belong to the last named one."""
    keys = [one.key for one in items]
    made, last = [], ""
    for one in sorted(items):
        said = _said(texts[one.index])
        last = one.split or said or last
        again = one.key in _REPEATED and keys.count(one.key) > 1
        split = one.split or (said if one.key in _REPEATED else "") or (last if again else "")
        made.append(one._replace(split=split))
    return made


def _spoken(texts: Sequence[str], items: Sequence[Item]) -> str:
    """The split of a whole line: named before its first measurement."""
    first = min((one.index for one in items if one.key in _METRICS or _is_loss(one)), default=0)
    return _said(" ".join(texts[: first + 1]))


def _said(text: str) -> str:
    found = list(_SPOKEN.finditer(text))
    return "" if not found else "val" if found[-1]["val"] else "train"


def _shape(text: str) -> str:
    return re.sub(r"\s+", " ", _DATE.sub("", text)).replace(MARK, "#").strip()[:200]
