"""The Trainers of Lightning that a project makes, and whether they may clip gradients in mixed precision, by
their texts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.text import call_alone
from ldlm_lint.project.traits import Trait

_TRAINER = lazily(rb"(?:^|[^\w])(Trainer(?:\.from_argparse_args)?\()", re.M)
_LIGHTNING = lazily(rb"lightning")
_CLIPS = Trait(lazily(rb"gradient_clip_val"), (b"gradient_clip_val",))
_MIXED = {"16", "16-mixed", "bf16", "bf16-mixed"}


def lightning_trainers(project: Project, path: str) -> Iterator[tuple[str, int, str]]:
    """The Trainers that clip in files that reach a file: file, line, and the text of the call."""
    for one in sorted(project.showing(_CLIPS) & project.plain):
        if path in project.reach(one):
            yield from ((one, line, call) for line, call in trainers_in(project.data(one)))


def trainers_in(data: bytes) -> Iterator[tuple[int, str]]:
    """The Trainers that a file with Lightning makes: the line and the text of each call."""
    for match in _TRAINER.finditer(data) if _LIGHTNING.search(data) else ():
        yield data.count(b"\n", 0, match.start(1)) + 1, call_alone(data, match.start(1)).decode(errors="replace")


def may_clip_mixed_precision(call: str) -> bool:
    """Whether a Trainer may use both: non-literal settings may be anything."""
    given = _keywords(call)
    precision, limit = given.get("precision"), given.get("gradient_clip_val")
    if limit is None or (precision is None and "from_argparse_args" not in call.partition("(")[0]):
        return False
    mixed = precision is None or not isinstance(precision, ast.Constant) or str(precision.value) in _MIXED
    return mixed and not (isinstance(limit, ast.Constant) and not limit.value)


def is_written_out(call: str) -> bool:
    """Whether a Trainer gets all its settings by name, and does not pass its model to an engine with its own
    optimizers."""
    given = _keywords(call)
    return bool(given) and None not in given and "deepspeed" not in call.lower()


def _keywords(call: str) -> dict[str | None, ast.expr]:
    try:
        tree = ast.parse(call, mode="eval").body
    except SyntaxError:
        return {}
    return {one.arg: one.value for one in getattr(tree, "keywords", ())}
