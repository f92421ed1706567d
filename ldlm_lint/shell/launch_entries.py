"""The program of a launch command: its entry, whether it is a training, and whether it starts one process per GPU."""

from __future__ import annotations

import functools
import re

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import launch_grammar
from ldlm_lint.shell.launch_grammar import Form, Invocation
from ldlm_lint.shell.script import Launch

_DISTRIBUTED = frozenset(
    {"torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed", "composer"}
)
_TRAINS = lazily(r"train|fine_?-?tun|distill?|(?<![a-z])(?:sft|dpo|ppo|grpo|rlhf|lora)(?![a-z])", re.I)
_MAY_TRAIN = lazily(r"(?:^|/)(?:main|run)(?:_\w+)?(?:\.py)?$", re.I)
_OTHER_FIRST = lazily(
    r"(?:eval|test|infer|sampl|generat|predict|preproc|process|prepar|convert|export|bench|profil|download|demo|serve|plot|visual"
    r"|extract|tokeni|encode|score|merge|check|report|analy|average|measure|dump|server|count|split|build|make|get)",
    re.I,
)
_OTHER = lazily(rf"(?:^|[_.-]){_OTHER_FIRST.pattern}", re.I)
_OTHER_FLAGS = lazily(
    r"--(?:do[_-])?(?:eval|evaluate|test|inference|predict)(?:[_-]only)?|--mode=(?:eval|test|infer)\w*"
)
_TRAIN_FLAGS = lazily(r"--do[_-]train")


@functools.lru_cache(maxsize=512)
def invocation_of(launch: Launch) -> Invocation | None:
    """A parsed launch; None if the text before the program is unknown."""
    return launch_grammar.read(launch.words)


def entry_of(launch: Launch) -> str:
    """The Python file or module that a launch runs, as written; empty if unknown.

    A command installed by a library is its own entry.
    """
    invocation = invocation_of(launch)
    if invocation is None or invocation.form not in (Form.FILE, Form.MODULE, Form.CONSOLE):
        return ""
    text = invocation.entry_text
    return "" if "$" in text.rpartition("/")[2] else text


def is_distributed(launch: Launch) -> bool:
    """Whether a launch starts one process per GPU."""
    if launch.launcher in _DISTRIBUTED:
        return True
    invocation = invocation_of(launch)
    return invocation is not None and not _DISTRIBUTED.isdisjoint(invocation.launchers)


def is_training(launch: Launch) -> bool:
    """Whether a launch runs a training: by the name of its entry, by its flags, or by a launcher of ranks."""
    invocation = invocation_of(launch)
    if invocation is not None and invocation.form is Form.CONSOLE:
        return True
    texts = [word.text for word in (launch.words if invocation is None else invocation.arguments)]
    if any(_OTHER_FLAGS.fullmatch(text) for text in texts) and not any(_TRAIN_FLAGS.fullmatch(text) for text in texts):
        return False
    name = entry_of(launch).removesuffix(".py").rpartition("/")[2].rpartition(".")[2]
    if _OTHER_FIRST.match(name):
        return False
    if _TRAINS.search(name):
        return True
    if _OTHER.search(name):
        return False
    return is_distributed(launch) or _MAY_TRAIN.search(name) is not None
