"""dataloader-worker-options-without-workers: loaders of every make, and the settings of loaders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.checkers.data.common import DATALOADER, SOURCE
from ldlm_lint.checkers.data.dataloader_in_main_process import NUM_WORKERS
from ldlm_lint.checkers.data.worker_options import error_of, removal_fix, worker_options_of
from ldlm_lint.concepts.loaders import Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.frameworks.loaders import another_number, is_meant, loader_of, needing_workers, own_workers
from ldlm_lint.frameworks.sections import Section, in_force, integer, unsafe
from ldlm_lint.model import Applicability, Claim, Confidence, Consequence, Finding, Rule
from ldlm_lint.wording import enumerated, listed

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="E7104",
    symbol="dataloader-worker-options-without-workers",
    consequence=Consequence.CRASH,
    message="this DataLoader sets %(options)s but has no worker processes: it raises %(error)s; set "
    "`%(option)s`, or drop %(options)s",
    summary="`prefetch_factor`, `persistent_workers`, `multiprocessing_context` or `timeout` with `num_workers=0` or "
    "no `num_workers`.",
    rationale="These options configure worker processes. Without workers `DataLoader(...)` raises ValueError for the "
    "first three, and `timeout > 0` raises AssertionError when the loader is iterated.",
    cost="The program ends when the loader is created, or in its first step.",
    exceptions="A test that expects the exception is not reported.",
    versions="torch >= 2.0. Before, the default of `prefetch_factor` was 2, and 2 was accepted without workers.",
    verification="Create the loader once.",
    references=(DATALOADER, SOURCE),
    reads=("py", "sh", "cfg"),
    triggers=(b"DataLoader", b"dataloader_persistent_workers", b"dataloader_prefetch_factor"),
    setting_triggers=(b"persistent_workers", b"prefetch_factor", b"persistent-workers", b"prefetch-factor"),
    applicability=Applicability.SAFE,
    fix_safety="Safe on every supported version: the call raised before, and without the options it loads in the main "
    "process, as `num_workers=0` says. If a variable holds the 0, the options stay for its other values. If you want "
    "workers, set `num_workers` instead. Unsafe if code around the call catches the error, and in a configuration "
    "file, because a launch may set workers.",
    overrides="the constructor raises with it",
)



def find(code: ProjectCode) -> Iterator[Finding]:
    """All loaders that certainly have no workers and options that need some."""
    for loader in code[Loaders].shown:
        if not code[Workers].are_surely_none(loader):
            continue
        options = worker_options_of(code, loader)
        if options and not code[Workers].are_tested(loader):
            args = {"options": listed(options), "error": error_of(options), "option": "num_workers"}
            yield code.finding(RULE, loader.call.span, args, fix=removal_fix(code, loader, options), confidence=Confidence.HIGH)


def of_settings(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """The settings of a Trainer, of a loader that a configuration creates, and 0 workers beside such options in the project's
    own configuration."""
    for path, setting in own_workers(section):
        wrong = needing_workers(section, path) if section.number(path) == 0 and not is_meant(section, path) else []
        if wrong:
            shown = listed(f"{section.settings[one].name}={section.settings[one].text}" for one in wrong)
            args = {"option": setting.name, "options": shown, "error": "ValueError"}
            claim = Claim("configured-section-reaches-loader", " ".join(section.settings[one].name for one in wrong))
            # Users who set these options want workers: removing the options would fix the error but keep the slow loader.
            fix = another_number(section, setting, integer(options, NUM_WORKERS))
            yield section.report(RULE, setting, args, fix=fix, claims=(claim,), confidence=Confidence.MEDIUM)
    loader = loader_of(section)
    if loader is None or (loader.workers != 0 and not loader.lacks_workers):
        return
    given = [name for name in (loader.prefetch, loader.persistent) if section.flag(name) is True or (section.number(name) or 0) > 0]
    if not given:
        return
    first, named = section.settings[given[0]], [section.written(name) for name in given]
    edits = [section.editor.remove(section.settings[name]) for name in given]
    fix = unsafe(f"remove {enumerated(named)}", tuple(edit for one in edits for edit in one or ()) if all(edits) else None, "a launch can pass workers on its command line")
    unset = (Claim("trainer-setting-is-unset", section.written(loader.names.workers)),) if loader.lacks_workers else ()
    args = {"options": listed(named), "error": loader.error_of(given[0]), "option": section.written(loader.names.workers)}
    yield section.report(RULE, first, args, fix=fix, claims=(in_force(first), *unset), confidence=Confidence.MEDIUM if unset else None)
