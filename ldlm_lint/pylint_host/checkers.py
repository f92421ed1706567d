"""The checkers of the plugin: one for each family of rules, made from the rules, and one that runs the engine for them.

Findings depend on other files than their own, and a comment may switch on a rule whose checker pylint does not run. So the
files that pylint checks are only noted, over all worker processes, and the engine runs once at the end; each family then
adds the messages of its rules, file by file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from astroid import nodes
from pylint.checkers import BaseChecker, BaseRawFileChecker
from pylint.constants import MSG_TYPES_LONG
from pylint.exceptions import EmptyReportError

from ldlm_lint.configurations import Configurations
from ldlm_lint.families import ALL_FAMILIES, UMBRELLAS
from ldlm_lint.garbage_collection import Settled, at_our_pace
from ldlm_lint.model import Finding, Rule
from ldlm_lint.pylint_host import switches
from ldlm_lint.pylint_host.messages import add_fault, add_message, between_modules, message_definitions, turn_to
from ldlm_lint.pylint_host.run import Noted, Run
from ldlm_lint.pylint_host.selection import Selection
from ldlm_lint.rules import ALL
from ldlm_lint.rules.linter import INTERNAL_ERROR
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from pylint.lint import PyLinter
    from pylint.reporters.ureports.nodes import Section
    from pylint.utils import LinterStats


class FamilyChecker(BaseChecker):
    """Some rules under a name that pylint lists, enables and disables together."""

    def __init__(self, linter: PyLinter, name: str, rules: Iterable[Rule]) -> None:
        self.name = name
        self.msgs = message_definitions(rules)
        super().__init__(linter)

    def report(self, finding: Finding, source: Source, module: str) -> None:
        """Add a message about a file, whatever module pylint is at."""
        add_message(self.linter, finding, source, module)


class EngineChecker(FamilyChecker, BaseRawFileChecker):
    """All rules together: pylint runs this checker, and so the engine, as long as one of them is on."""

    def __init__(self, linter: PyLinter, families: Mapping[str, FamilyChecker]) -> None:
        super().__init__(linter, ALL_FAMILIES, ALL)
        self._families = families
        # pylint asks disabled checkers for their map data without ever opening them.
        self._noted: list[Noted] = []
        self._texts: dict[str, bytes] = {}
        self._settled = Settled()
        self._uncounted: dict[str, dict[str, int]] = {}
        self.reports = (("RP6800", "Messages that wait for all files", self._count),)

    def open(self) -> None:
        """Called once for a run in one process, before pylint builds its trees; with workers this is called per file."""
        if self._is_alone:
            self._settled.begin()

    def process_module(self, node: nodes.Module) -> None:
        """Note a file; the text from stdin replaces what is on disk."""
        if node.file:
            path = Path(os.path.abspath(node.file)).as_posix()
            self._noted.append(Noted(path, self.linter.current_name, switches.take_over(self.linter.file_state)))
            if node.file_bytes is not None:
                self._texts[path] = bytes(node.file_bytes)

    def close(self) -> None:
        """Report at the end of a run in one process; with workers this is called per file."""
        if self._is_alone:
            try:
                self._report(self.get_map_data())
            finally:
                self._settled.end()

    def get_map_data(self) -> list[Noted]:
        """The files that this worker has noted since the last call."""
        noted, self._noted = self._noted, []
        return noted

    def reduce_map_data(self, linter: PyLinter, data: list[list[Noted]]) -> None:
        """Report in the parent process, once for all workers."""
        counted = linter.stats.by_module
        before = {module: copy(counts) for module, counts in counted.items()}
        noted = [one for some in data for one in some]
        self._report(noted)
        self._uncounted = {
            module: {kind: counted[module][kind] - before[module][kind] for kind in MSG_TYPES_LONG}  # type: ignore[literal-required]
            for module in {one.module for one in noted} & before.keys()
        }

    @property
    def _is_alone(self) -> bool:
        """Whether one process visits all files; stdin is never passed to a worker."""
        config = self.linter.config
        return bool(config.jobs == 1 or config.from_stdin)

    def _report(self, noted: Iterable[Noted]) -> None:
        wide = frozenset(one.path for one in noted if one.switches_on)
        selection = Selection(switches.told(self.linter), Configurations(Path.cwd()), wide)
        if selection.is_empty:
            return
        run = Run({one.path: one.module for one in noted}, self.linter.stats.by_module, selection, self._texts)
        with at_our_pace(), between_modules(self.linter):
            try:
                for fault in sorted(selection.faults(run.folders)):
                    add_fault(self.linter, fault)
                # As many processes as the engine thinks worth starting, if pylint may have several.
                for finding, source, module in run.findings(jobs=int(self._is_alone)):
                    self._families[finding.code[1:3]].report(finding, source, module)
            except Exception as error:
                # It would cost the messages of all other checkers.
                failure = INTERNAL_ERROR.text((("error", f"pylint: {type(error).__name__}: {error}"),))
                turn_to(self.linter, *run.first)
                self.linter.add_message(INTERNAL_ERROR.symbol, line=1, col_offset=0, args=(failure,))

    def _count(self, _: Section, stats: LinterStats, __: LinterStats | None) -> NoReturn:
        """Count our messages by module: pylint uses the workers' counts instead of those of the parent process."""
        for module, counts in self._uncounted.items():
            for kind, count in counts.items():
                stats.by_module[module][kind] += count  # type: ignore[literal-required]
        self._uncounted = {}
        raise EmptyReportError


def register(linter: PyLinter) -> None:
    """Register the checkers that are not registered yet, and what pylint's switches start from."""
    # The workers of `pylint -j` register a plugin again; before 4.1, in addition to the rules that the parent process
    # sent them.
    registered = {checker.name for checker in linter.get_checkers()}
    is_new = not switches.are_known(linter)
    families = {
        family: FamilyChecker(linter, name, [rule for rule in ALL if rule.family == family]) for family, name in UMBRELLAS.items()
    }
    # A rule belongs to the checker that declares it last.
    for checker in (EngineChecker(linter, families), *families.values()):
        if checker.name not in registered:
            linter.register_checker(checker)
    if is_new:
        switches.preset(linter)
