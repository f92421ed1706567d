"""Values that a launch command fixes: accumulation steps for any number of GPUs, too many workers per rank."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ldlm_lint import rules
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Finding, Fix, Related, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.settings import Origin
from ldlm_lint.shell.launch_arguments import Argument, Known, arguments, names_in, values, written_words
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_entries import entry_of, is_training
from ldlm_lint.shell.launch_gpus import Taken, gpus_are_given, taken_by_launcher
from ldlm_lint.shell.launch_quantities import counts_processes
from ldlm_lint.shell.launch_world import total_of
from ldlm_lint.shell.script import Form, Launch
from ldlm_lint.untrusted_numbers import whole
from ldlm_lint.vocabulary.batch_sizes import (
    is_accumulation,
    is_batch_size,
    is_global_batch_size,
    is_world_size,
    may_accumulate,
)
from ldlm_lint.wording import quoted

_STEPS = lazily(r"\[?(\d+)\]?")
_WORKERS = lazily(r"(?:(?:train|training|data|dataloader|loader)_?)*(?:n_|num_?)?workers(?:_per_(?:gpu|rank))?")
_ONE_GPU = lazily(r"(?:\w+=\S*\s+)*CUDA_VISIBLE_DEVICES=[\"']?\d+[\"']?\s")
_EVERY_GPU = ("gpu", "auto", "-1")
# Resources of a job, and the directive for each: SLURM_GPUS_ON_NODE is a number of GPUs, not of nodes.
_DIRECTIVES = {
    "GPU": rb"(?:-G|--gpus[\w-]*|--gres)",
    "TASKS": rb"(?:-n|--ntasks(?:-per-node)?)",
    "NPROCS": rb"(?:-n|--ntasks(?:-per-node)?)",
    "NODE": rb"(?:-N|--nodes)",
}
_DEPTH = 5
_REASON = "{} are placeholders for the numbers of the project, and the division must leave no remainder"


# Accumulation


def fixed_accumulation(code: Code, script: Code) -> Iterator[Finding]:
    """Accumulation steps above 1 fixed by a launch although its number of GPUs comes from outside."""
    reported: set[Span] = set()
    for launch in code.script.launches:
        given = arguments(script, launch) if trains(script, launch) else ()
        if any(is_global_batch_size(one.name) for one in given) or not any(may_accumulate(one.name) for one in given):
            continue
        world = _world_of(script, launch, given)
        if world is None:
            continue
        passed = [one for one in given if may_accumulate(one.name)]
        if len({one.value for one in passed}) > 1:
            continue
        for argument in passed:
            steps = _fixed_steps(script, argument)
            if steps is None or steps.span in reported or _batch_is_computed(script, argument):
                continue
            reported.add(steps.span)
            every = [one for one in given if counts_processes(launch, one)]
            yield _accumulation_finding(script, launch, argument, steps, world, total_of(script, launch, every))


def trains(script: Code, launch: Launch) -> bool:
    """Whether a launch runs a training; its launcher may be in a variable: ``python $DISTRIBUTED train.py``."""
    return is_training(launch) or is_training(launch._replace(words=written_words(script, launch)))


def _world_of(script: Code, launch: Launch, given: Sequence[Argument]) -> Taken | None:
    """The source outside of the script for the number of GPUs of a launch; None if the script fixes it."""
    varying = (one for one in given if counts_processes(launch, one) and varies(script, one.value))
    first = next(varying, None)
    if first is not None:
        return Taken(quoted(f"{first.name} {first.value}"), first.span)
    return taken_by_launcher(script, launch)


def _fixed_steps(script: Code, argument: Argument) -> Known | None:
    """The fixed number of steps above 1; a default that the environment may override counts too."""
    known = values(script, argument)
    if not known or len({one.text for one in known}) != 1 or _is_computed(argument, known[0]):
        return None
    match = _STEPS.fullmatch(known[0].text)
    return known[0] if match and whole(match[1]) > 1 else None


def _is_computed(argument: Argument, known: Known) -> bool:
    """Whether a number is the result of a formula, which another number of GPUs would change."""
    written = known.value_span
    return "((" in argument.value or (written is not None and written.end - written.start != len(known.text.encode()))


def varies(script: Code, text: str, depth: int = 0, known: dict[tuple[str, int], bool] | None = None) -> bool:
    """Whether a number of processes is decided outside of the script or again in each run."""
    known = {} if known is None else known
    if text in _EVERY_GPU:
        return not gpus_are_given(script)
    if "$(" in text.replace("$((", "") or "`" in text:
        # `$(echo $CUDA_VISIBLE_DEVICES | …)` counts what the script itself may have set.
        given = names_in(text)
        return not given or any(_name_varies(script, name, depth + 1, known) for name in given)
    if depth == 0 and re.fullmatch(r"\$\{\w+:?[-=].*\}", text):
        return True
    names = re.findall(r"[A-Za-z_]\w*", text) if text.startswith("$((") else names_in(text)
    return any(_name_varies(script, name, depth, known) for name in names)


def _name_varies(script: Code, name: str, depth: int, known: dict[tuple[str, int], bool]) -> bool:
    """Like `varies`, for a variable; a script may reassign one from itself many times, so results are cached."""
    if depth > _DEPTH:
        return False
    if (name, depth) not in known:
        known[name, depth] = _assigned_varies(script, name, depth, known)
    return known[name, depth]


def _assigned_varies(script: Code, name: str, depth: int, known: dict[tuple[str, int], bool]) -> bool:
    assigned = script.assigned(name)
    if not assigned:
        return _set_elsewhere_varies(script, name) and not _is_in_header(script, name)
    if any(value.origin is Origin.DEFAULT for one in assigned for value in one.values or ()):
        return True
    if all(one.values for one in assigned):
        return len({value.text for one in assigned for value in one.values or ()}) > 1
    unknown = (script.source.slice(one.value_span) for one in assigned if not one.values)
    return any(varies(script, raw, depth + 1, known) for raw in dict.fromkeys(raw.strip("\"'") for raw in unknown))


def _set_elsewhere_varies(script: Code, name: str) -> bool:
    """Whether a variable that the script does not set itself varies according to the files that it sources."""
    known = script.script.variables.at(name, len(script.source.data))
    if not known:
        return True
    return len({value.text for value in known}) > 1 or any(value.origin is Origin.DEFAULT for value in known)


def _is_in_header(script: Code, name: str) -> bool:
    """Whether the scheduler's directives of the script determine a variable of the scheduler."""
    if not name.startswith(("SLURM", "PBS", "LSB")):
        return False
    option = next((option for part, option in _DIRECTIVES.items() if part in name), None)
    return option is not None and re.search(rb"^#SBATCH[ \t]+" + option + rb"[= \t]?[ \t]*\S*\d", script.text.data, re.M) is not None


def _batch_is_computed(script: Code, argument: Argument) -> bool:
    """Whether the script divides something by the steps, or a batch by the number of GPUs: then it handles this
    itself.
    """
    steps = set(names_in(argument.value))
    for one in script.script.assignments:
        raw = script.source.slice(one.value_span)
        if "/" not in raw or "((" not in raw:
            continue
        names = set(re.findall(r"[A-Za-z_]\w*", raw))
        if steps & names or (is_batch_size(one.name) and any(map(is_world_size, names))):
            return True
    return False


def _accumulation_finding(
    script: Code, launch: Launch, argument: Argument, steps: Known, world: Taken, total: str | None
) -> Finding:
    rule = rules.by_symbol["gradient-accumulation-fixed"]
    name = steps.assignment.name if steps.assignment else argument.name
    args = {"name": quoted(name), "value": always(steps.text, steps.origin), "world": world.text}
    related = [Related(world.span, "the number of GPUs comes from here")]
    if steps.span != argument.span:
        related.append(Related(argument.span, "the value is passed on here"))
    entry = entry_of(launch).rpartition("/")[2]
    return Finding(
        rule.symbol,
        rule.code,
        steps.span,
        tuple(sorted(args.items())),
        confidence=Confidence.MEDIUM,
        related=tuple(related),
        fix=_accumulation_fix(argument, steps, total),
        claims=(*_own_option(argument), Claim("accumulation-is-not-divided", entry), *_with_sources(script)),
    )


def _own_option(argument: Argument) -> tuple[Claim, ...]:
    """The claim if a name alone does not show that an option counts micro-batches."""
    if is_accumulation(argument.name):
        return ()
    return (Claim("option-counts-micro-batches", argument.name.lstrip("-").replace("-", "_")),)


def always(text: str, origin: Origin) -> str:
    """How fixed a number is: users can override a default."""
    return f"{text} by default" if origin is Origin.DEFAULT else f"always {text}"


def _accumulation_fix(argument: Argument, steps: Known, total: str | None) -> Fix | None:
    formula = f"$((TARGET_BATCH / (BATCH_PER_GPU * {total or 'WORLD_SIZE'})))"
    placeholders = ["TARGET_BATCH", "BATCH_PER_GPU", *([] if total else ["WORLD_SIZE"])]
    if steps.assignment is None and steps.span == argument.span:
        edit = Edit(argument.span, f"{argument.name}{' ' if argument.name.startswith('-') else '='}{formula}")
    elif steps.assignment is not None and steps.assignment.form in (Form.PLAIN, Form.DECLARED):
        edit = Edit(steps.span, f"{steps.assignment.name}={formula}")
    else:
        return None
    return Fix(f"compute it as {formula}", (edit,), Applicability.DISPLAY, _REASON.format(" and ".join(placeholders)))


# Workers


def too_many_workers(code: Code, script: Code, options: Mapping[str, object]) -> Iterator[Finding]:
    """Loader workers that a training is launched with, at the limit or above it, for each of its ranks."""
    limit = workers_limit(options)
    reported: set[Span] = set()
    for launch in code.script.launches:
        # A single-process launch with one GPU may use all CPUs of the machine.
        if not trains(script, launch) or _ONE_GPU.match(code.text.source.slice(launch.span)):
            continue
        for argument in arguments(script, launch):
            if not is_workers(argument.name):
                continue
            for known in values(script, argument) or ():
                if known.text.isdecimal() and whole(known.text) >= limit and known.span not in reported:
                    reported.add(known.span)
                    finding = workers_finding(script, argument, known, limit)
                    entry = entry_of(launch).rpartition("/")[2]
                    alone = (Claim("each-rank-has-its-loader", entry),) if launch.launcher == "python" else ()
                    yield finding._replace(claims=(*alone, *finding.claims))


def workers_limit(options: Mapping[str, object]) -> int:
    """From how many workers per rank on there are too many."""
    option = rules.OPTIONS["workers-limit"]
    limit = options.get(option.name, option.default)
    if not isinstance(limit, int):
        raise TypeError(f"{option.name} must be an int, not {limit!r}")
    return limit


def is_workers(name: str) -> bool:
    """Whether an argument means the number of workers of a loader."""
    return _WORKERS.fullmatch(name.lstrip("-+~").rpartition(".")[2].replace("-", "_").lower()) is not None


def workers_finding(script: Code, argument: Argument, known: Known, limit: int) -> Finding:
    """The finding for a number of workers passed to a launch, or to a launching script."""
    rule = rules.by_symbol["dataloader-too-many-workers"]
    related = (Related(argument.span, "the value is passed on here"),) if known.span != argument.span else ()
    return Finding(
        rule.symbol,
        rule.code,
        known.span,
        (("advice", f"start with {max(limit // 2, 1)}"), ("workers", whole(known.text))),
        confidence=Confidence.HIGH if known.origin is Origin.LITERAL else Confidence.MEDIUM,
        related=related,
        fix=_workers_fix(known, limit // 2),
        claims=_with_sources(script),
    )


def _workers_fix(known: Known, workers: int) -> Fix | None:
    if known.value_span is None or not workers:
        return None
    title, reason = f"use {workers} workers per rank", "fewer workers can be too few for a slow dataset"
    return Fix(title, (Edit(known.value_span, str(workers)),), Applicability.UNSAFE, reason)


# Scripts that source others


def _with_sources(script: Code) -> tuple[Claim, ...]:
    """The claim of a finding about a launch if the script sources files: they may set its variables differently."""
    return (Claim("holds-with-sourced-scripts"),) if script.script.sources else ()
