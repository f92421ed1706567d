"""The processes that get a script's variables, from its launches."""

from __future__ import annotations

import itertools
import re

from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_view import Scene
from ldlm_lint.rules.roles import is_diagnostic, measures_collectives
from ldlm_lint.shell.launch_entries import entry_of, is_distributed
from ldlm_lint.shell.script import Launch, Script
from ldlm_lint.source import Source
from ldlm_lint.untrusted_numbers import whole

COMMENT = re.compile(rb"(?:^|(?<=\s))#[^\n]*")

_TORCHRUN = lazily(r"(?:.*/)?(torchrun)|(torch\.distributed\.(?:run|launch))")
_ONE = lazily(r"--(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus)=1")
_OPTION = lazily(r"--(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus)")
# Commands that show every variable: a bare `env` or `export -p`, and `${!NCCL_*}`.
_LISTS = lazily(
    rb"(?<![\w/.$-])(?:(?:/usr/bin/)?(?:env|printenv)|set|export|declare|typeset)(?P<options>(?:[ \t]+-[a-zA-Z0]+)*)[ \t]*(?=[;&|)<>\n\"'`]|\Z)"
    rb"|\bcompgen\b|\$\{!"
)
_TASKS = lazily(rb"--ntasks-per-node[= ]*(\d+)")


def scene_of(source: Source, script: Script) -> Scene:
    """The scene that the environment rules look at."""
    entries = tuple(entry for launch in script.launches if (entry := entry_of(launch)))
    code = COMMENT.sub(b"", source.data)
    text = code.decode(errors="replace")
    return Scene(
        diagnostic=is_diagnostic(source.path, entries) or (not entries and measures_collectives(text)),
        launchers=tuple(_launcher(launch) for launch in script.launches),
        entries=entries,
        several=any(_starts_several(source, launch) for launch in script.launches),
        unset=frozenset(script.unset),
        text=text,
        lists_environment=any(not (one[0].startswith(b"set") and one["options"]) for one in _LISTS.finditer(code)),
    )


def _launcher(launch: Launch) -> str:
    """The launcher of a launch; for ``srun torchrun …`` the one that starts the ranks."""
    if launch.launcher not in ("srun", "mpirun"):
        return launch.launcher
    found = next((match for word in launch.words if (match := _TORCHRUN.fullmatch(word.text))), None)
    return launch.launcher if found is None else found[1] or found[2]


def _starts_several(source: Source, launch: Launch) -> bool:
    """Whether a launch starts more than one process on a machine, judging by its options."""
    words = [word.text for word in launch.words]
    if is_distributed(launch):
        parted = any(_OPTION.fullmatch(name) and value == "1" for name, value in itertools.pairwise(words))
        return not parted and not any(map(_ONE.fullmatch, words))
    return launch.launcher in ("srun", "mpirun") and any(whole(count) > 1 for count in _TASKS.findall(source.data))
