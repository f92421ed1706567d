"""The command line of a comparison, to run it again with more rounds or with the fixes of one rule. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ldlm_lint.probe.projects import without_secrets


@dataclass(frozen=True, slots=True)
class Invocation:
    """The arguments of ``ldlm-lint bench``. Seconds; 0 or None: not given.

    ``before`` and ``after`` are two trees, or empty if fixes were applied: those of the rules in ``select`` (empty: the
    default ones), with ``unsafe`` those that change behaviour too.
    """

    command: tuple[str, ...]
    select: tuple[str, ...] = ()
    unsafe: bool = False
    before: str = ""
    after: str = ""
    links: tuple[str, ...] = ()
    steps: int = 0
    max_seconds: float | None = None
    offline: bool = False

    def line(self, *, rounds: int = 0, select: Sequence[str] | None = None) -> str:
        """The command for a shell, with other ``rounds`` or rules; values of options with names of secrets are ***.

        >>> Invocation(("python", "train.py"), unsafe=True, steps=50).line(rounds=14, select=["optimizer-not-fused"])
        'ldlm-lint bench --select optimizer-not-fused --unsafe-fixes --steps 50 --rounds 14 -- python train.py'
        """
        words = ["ldlm-lint", "bench", *self._options(self.select if select is None else select)]
        words += ["--rounds", str(rounds)] if rounds else []
        return shlex.join([*words, "--", *without_secrets(self.command)])

    def fixing(self, how: str = "--fix") -> str:
        """The command that applies the same fixes to the project itself, or shows them (``--diff``).

        >>> Invocation(("python", "train.py"), unsafe=True).fixing()
        'ldlm-lint check --fix --unsafe-fixes'
        """
        words = ["ldlm-lint", "check", how, *(["--unsafe-fixes"] if self.unsafe else []), *_selected(self.select)]
        return shlex.join(words)

    def _options(self, select: Sequence[str]) -> Iterator[str]:
        yield from _selected(select)
        yield from ["--unsafe-fixes"] if self.unsafe else []
        yield from ["--before", self.before, "--after", self.after] if self.before else []
        for link in self.links:
            yield from ("--link", link)
        yield from ["--steps", str(self.steps)] if self.steps else []
        yield from ["--max-seconds", f"{self.max_seconds:g}"] if self.max_seconds else []
        yield from ["--offline"] if self.offline else []


def _selected(rules: Sequence[str]) -> list[str]:
    return ["--select", ",".join(rules)] if rules else []
