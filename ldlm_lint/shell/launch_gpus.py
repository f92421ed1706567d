"""The number of GPUs of a launch without an explicit number: all of them, or those of a host file."""

from __future__ import annotations

import re
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_entries import invocation_of
from ldlm_lint.shell.launch_options import Option
from ldlm_lint.shell.script import Launch
from ldlm_lint.wording import quoted

# Launchers that start a process on each visible GPU.
_TAKE_ALL = frozenset({"deepspeed", "composer"})
_COUNTED = {"deepspeed": ("--num-gpus", "--num-accelerators", "--include", "-i", "--elastic-training"), "composer": ("-n", "--nproc", "--world-size")}
_HOST_FILE = ("--hostfile", "-H")
_NODES = ("--num-nodes", "--include", "-i")
_GIVEN_GPUS = re.compile(rb"^#SBATCH[ \t]+(?:-G|--gpus[\w-]*|--gres|--tres\w*)[= \t]?[ \t]*\S*\d", re.M)
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_DEVICES = lazily(r"[\"']?[\d,]+[\"']?")


class Taken(NamedTuple):
    """The source of a launch's number of processes: ``text`` for a message, and its place."""

    text: str
    span: Span


def taken_by_launcher(script: Code, launch: Launch) -> Taken | None:
    """The launcher's default if the number of its processes is not fixed; None if it is, or unknown.

    ``deepspeed train.py`` and ``composer train.py`` start a process on every GPU, ``deepspeed --hostfile`` those that a
    file lists.
    """
    invocation = invocation_of(launch)
    if invocation is None or invocation.launcher not in _TAKE_ALL:
        return None
    hosts = invocation.option(*_HOST_FILE)
    if hosts is not None:
        return None if invocation.option(*_NODES) is not None else Taken(quoted(f"{hosts.word.text.partition('=')[0]} {hosts.text or ''}".strip()), _place(hosts))
    if invocation.option(*_COUNTED[invocation.launcher]) is not None or _are_chosen(script, launch):
        return None
    word = next((one for one in launch.words if invocation.launcher in one.text), launch.words[0])
    return Taken(f"{quoted(invocation.launcher)} takes every GPU of a machine", word.span)


def gpus_are_given(script: Code) -> bool:
    """Whether the scheduler's directives of a script set the number of its GPUs."""
    return _GIVEN_GPUS.search(script.text.data) is not None


def _are_chosen(script: Code, launch: Launch) -> bool:
    """Whether the script itself sets the visible GPUs, or the number from the scheduler."""
    before = [one for one in script.assigned(_VISIBLE) if one.span.start < launch.span.end]
    raw = (script.source.slice(one.value_span) for one in before)
    return gpus_are_given(script) or any(map(_DEVICES.fullmatch, raw))


def _place(option: Option) -> Span:
    last = option.values[-1].span if option.values else option.word.span
    inside = last.path == option.word.span.path and last.end > option.word.span.start
    return Span(last.path, option.word.span.start, last.end, last.cell) if inside else option.word.span


__all__ = ["Taken", "gpus_are_given", "taken_by_launcher"]
