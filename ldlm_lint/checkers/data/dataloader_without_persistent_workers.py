"""dataloader-without-persistent-workers: loaders of every make, whose workers are started again for each pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.checkers.data.common import DATALOADER, MULTIPROCESS
from ldlm_lint.checkers.data.fixes import are_positive, fix_with_workers, written_option
from ldlm_lint.checkers.data.passes_shown import AGAIN, described, related_to
from ldlm_lint.concepts.datasets import Datasets
from ldlm_lint.concepts.loader_passes import LoaderPasses, Pass
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.edits.written_parts import Part, value_as_written
from ldlm_lint.frameworks.loaders import has_no_workers_beside, loader_of
from ldlm_lint.frameworks.sections import Section, in_force, unsafe
from ldlm_lint.model import (
    Applicability,
    Claim,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
)
from ldlm_lint.program.handles import Expr

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="R7101",
    symbol="dataloader-without-persistent-workers",
    frequency=Frequency.EPOCH,
    consequence=Consequence.SLOW,
    message="this DataLoader is iterated repeatedly (%(where)s) and starts new worker processes each time, because "
    "`%(option)s` is %(how)s: training waits for the first batch of every epoch; set `%(setting)s`",
    summary="A loader with workers that is iterated more than once without `persistent_workers`.",
    rationale="Without `persistent_workers=True` a DataLoader stops its worker processes when an iteration ends and "
    "starts new ones for the next iteration. Processes are forked or spawned, the dataset is copied or pickled, "
    "modules and files are opened again, and training waits for the first batches of every epoch.",
    cost="One worker start-up per epoch and per evaluation. Not measured here in general: the start of an epoch went "
    "from seven minutes to 35 seconds in one project (mmhuman3d#233), and another saw no difference on Linux "
    "(delta-interpolator#3). It matters if epochs are short or the dataset takes long to start.",
    exceptions="If `persistent_workers` is switched off explicitly, in Python, a configuration or a flag, the finding "
    "is at level info, once per value. Persistent workers do not help a loader that is iterated once (not reported), "
    "an infinite sampler or very long epochs. They do harm if memory is so tight that the workers' copies of the "
    "dataset must be freed between epochs. A dataset that the main process changes between epochs "
    "(`dataset.set_epoch(epoch)`, `loader.dataset.epoch = epoch`, a new sample) is not reported: persistent workers "
    "would keep the copy that they started with. `sampler.set_epoch(epoch)` does not change the dataset, because the "
    "sampler is in the main process.",
    versions="torch >= 1.7. `persistent_workers=True` with `num_workers=0` raises ValueError in every version, so the "
    "fix adds a check unless the number of workers is a literal.",
    verification="Time the first batch of the second epoch with and without the option, or compare the process ids of "
    "the workers across epochs.",
    references=(
        DATALOADER,
        MULTIPROCESS,
        Reference("mmhuman3d#233", "https://github.com/open-mmlab/mmhuman3d/pull/233"),
        Reference("delta-interpolator#3", "https://github.com/boreshkinai/delta-interpolator/pull/3"),
    ),
    reads=("py", "sh", "cfg"),
    needs="DataLoader(persistent_workers=)",
    triggers=(b"DataLoader", b"dataloader_num_workers"),
    setting_triggers=(b"persistent_workers", b"persistent-workers", b"dataloader_num_workers", b"dataloader-num-workers"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the workers keep their copies of the dataset in memory between epochs and do not see later "
    "changes to the dataset object. Their random streams continue instead of being seeded again, so shuffling and "
    "augmentation differ from the second iteration on. A sampler that is seeded with the epoch gives the same batches "
    "as before.",
    probe=Probe(
        "loader-starts",
        "starting the workers of the loader again took at least 5 % of its later epochs",
        experiment="dataloader",
    ),
)

_OPTION = "persistent_workers"
_NAMES = {"option": _OPTION, "setting": f"{_OPTION}=True"}
_KEPT = "workers keep their copies of the dataset and their random streams between epochs"
_KEPT_SINCE = f"{_KEPT}, and transformers before 4.36 does not know the setting"
_OWN_SWITCH = re.compile(r"(?:.*_)?persistent_workers")


def find(code: ProjectCode) -> Iterator[Finding]:
    """All loaders with workers over which a loop iterates repeatedly, and that start them again each time."""
    workers = code[Workers]
    for loader in code[Loaders].shown:
        may_be_there = workers.may_be_there(loader)
        how = _how_off(code, loader) if may_be_there or workers.are_configured(loader) else ""
        again = code[LoaderPasses].repeated(loader) if how or may_be_there else None
        if again is None or code[Datasets].change_between_passes(loader):
            continue
        if how:
            args = {"where": described(code, loader, again), "how": how, **_NAMES}
            fix = _fix(code, loader) if how == "not set" else None
            confidence = Confidence.HIGH if workers.are_known(loader) else Confidence.MEDIUM
            yield code.finding(RULE, loader.call.span, args, related_to(loader, again, AGAIN), fix=fix, confidence=confidence)
        else:
            yield from _switched_off(code, loader, again)


def _how_off(code: ProjectCode, loader: Loader) -> str:
    """Why workers do not persist: the option is missing, or a parameter's default is never replaced; empty for a
    choice."""
    given = code[Loaders].option(loader, _OPTION)
    if code[Loaders].lacks(loader, _OPTION):
        return "not set"
    is_default = given.is_given and bool(given.values) and all(_is_left_off(value) for value in given.values)
    return "off by default" if is_default else ""


def _is_left_off(value: Expr) -> bool:
    """Whether a parameter is False by its default, and all known callers leave it there, or forward another such
    parameter."""
    todo, seen = [value.plain], set[Expr]()
    while todo:
        at = todo.pop()
        callers = at.function.callers if at.kind == "param" else ()
        given = [call.argument_for(at.function.parameters[at.name]) for call in callers]
        default = at.function.default(at.name) if callers else None
        if not callers or not all(one.is_given or (one.is_absent and default is not None and default.constant is False) for one in given):
            return False
        seen.add(at)
        todo += [one.plain for argument in given for one in argument.values if one.plain not in seen]
    return True


def _switched_off(code: ProjectCode, loader: Loader, again: Pass) -> Iterator[Finding]:
    """Workers whose persistence the author switched off: information, at that value."""
    given = code[Loaders].option(loader, _OPTION)
    if not given.is_given or len(given.values) != 1 or given.values[0].may_be().only is not False:
        return
    found = value_as_written(given.values[0], given.givers[0], _OPTION) if given.givers else None
    if found is None:
        return
    home, written = found
    is_elsewhere = home is not loader.call.module or code.source(home).position(written.span.start)[0] != loader.call.line
    taker = (Related(loader.call.spot.line_span, "this DataLoader takes the value"),) if is_elsewhere else ()
    args = {"where": described(code, loader, again), "how": "off", **_NAMES}
    related = (*taker, *related_to(loader, again, AGAIN))
    yield code.finding(RULE, written.span, args, related, fix=_switch(code, loader, written)).lowered("switched off on purpose")


def _fix(code: ProjectCode, loader: Loader) -> Fix | None:
    """Add the option, if there surely are workers or the call has their number."""
    fix = fix_with_workers(code, loader, _OPTION, ("True", "{} > 0"), _KEPT)
    return fix._replace(needs=(tables.interface("DataLoader(persistent_workers=)"),)) if fix else None


def _switch(code: ProjectCode, loader: Loader, value: Part) -> Fix | None:
    """Write True instead of the call's own False; without workers the option raises, so their number must be written
    out."""
    workers = written_option(code, loader, "num_workers")
    own = value.is_constant and written_option(code, loader, _OPTION) == value
    if not own or workers is None or not are_positive(loader, workers):
        return None
    return Fix(f"set {_OPTION}=True", (Edit(value.span, "True"),), Applicability.UNSAFE, _KEPT)


def of_settings(section: Section, _options: Mapping[str, object]) -> Iterator[Finding]:
    """The settings of a Trainer, of a loader that a configuration creates, and a switch of the project's own."""
    for path, setting in section.settings.items() if section.framework == "own" else ():
        if _OWN_SWITCH.fullmatch(setting.name) and section.flag(path) is False and not has_no_workers_beside(section, path):
            args = {"where": "by the code that reads this value", "how": "off", "option": setting.name, "setting": f"{setting.name}: true"}
            fix = unsafe(f"set {setting.name} to true", section.editor.replace(setting, True), _KEPT)
            claim = Claim("configured-value-reaches-call", "workers-not-persistent")
            yield section.report(RULE, setting, args, fix=fix, claims=(claim,), confidence=Confidence.MEDIUM).lowered("switched off on purpose")
    loader = loader_of(section)
    if loader is None or not (loader.workers or 0) > 0 or (loader.epochs is not None and loader.epochs <= 1):
        return
    names = {"option": section.written(loader.persistent), "setting": section.shown(loader.persistent, True)}
    if loader.persistent in section.settings and section.flag(loader.persistent) is False:
        setting = section.settings[loader.persistent]
        args = {"where": f"{loader.epochs:g} epochs" if loader.epochs is not None else "once per epoch", "how": "off", **names}
        fix = unsafe(f"set {setting.name} to {section.spelled(True)}", section.editor.replace(setting, True), _KEPT)
        kept = (in_force(setting), Claim("no-dataset-takes-epochs"))
        yield section.report(RULE, setting, args, fix=fix, claims=kept, confidence=Confidence.MEDIUM).lowered("switched off on purpose")
    elif loader.persistent not in section.settings and loader.epochs is not None and loader.is_off_by_default(loader.persistent):
        # The same place sets workers and more than one epoch, and no other place can.
        workers = section.settings[loader.names.workers]
        args = {"where": f"{loader.epochs:g} epochs", "how": "not set", **names}
        fix = unsafe(f"set {names['option']} to {section.spelled(True)}", section.editor.add(workers, loader.persistent, True), _KEPT_SINCE)
        unset = Claim("trainer-setting-is-unset", section.written(loader.persistent))
        claims = (in_force(workers), unset, Claim("no-dataset-takes-epochs"))
        yield section.report(RULE, workers, args, fix=fix, claims=claims, confidence=Confidence.MEDIUM)
