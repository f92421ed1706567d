"""Questions about settings of training frameworks: their readers, and other places that set them."""

from __future__ import annotations

import posixpath

from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.program.surroundings import World
from ldlm_lint.project.engines import shards_optimizer
from ldlm_lint.project.frameworks import (
    holds_key,
    including_files,
    readers,
    sets,
    setting_of,
    stores,
    uses_lightning,
    varying_processes,
)
from ldlm_lint.project.index import Project
from ldlm_lint.project.launches import Program
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.questions.optimizer import fusable_in
from ldlm_lint.shell.launch_arguments import names_in
from ldlm_lint.shell.launch_values import varies
from ldlm_lint.source import Kind
from ldlm_lint.vocabulary.batch_sizes import is_global_batch_size
from ldlm_lint.wording import quoted

_QUOTES = str.maketrans("", "", "\"'\\")
_BRACED = lazily(r"\$\{(\w+)\}")


def _trainer_reads_configuration(context: Context, finding: Finding, reader: str) -> Verdict:
    path = finding.span.path
    return Verdict(context.trainers.reads(path, reader) and not context.inherited_configs.is_unused(path))


def _launch_runs_trainer(context: Context, _finding: Finding, entry: str) -> Verdict:
    """The file that a launch starts, by the end of its path, parses arguments of the Trainer."""
    found = _entries(context.project, entry)
    return Verdict(bool(found) and all(context.trainers.entry_runs(one) for one in found))


def _entries(project: Project, entry: str) -> list[str]:
    """The possible files of an entry: those matching the end of its path, else all with its name; a package runs its
    ``__main__``."""
    if entry.endswith(".py"):
        names = [posixpath.normpath(entry).removeprefix("../")]
    else:
        names = [f"{entry.replace('.', '/')}.py", f"{entry.replace('.', '/')}/__main__.py"]
    found = [one for one in project.files if any(one.endswith(f"/{name}") for name in names)]
    return found or [one for one in project.files if one.endswith(f"/{posixpath.basename(names[0])}")]


def _programs(context: Context, path: str) -> tuple[Program, ...]:
    """The programs that read a configuration file, or run a Python file."""
    return context.launches.running(path) if path in context.project.files else context.launches.of_config(path)


def _setting_is_in_force(context: Context, finding: Finding, name: str) -> Verdict:
    """Not every launch that reads the place sets another value; those that do are shown."""
    path = finding.span.path
    programs = _programs(context, path)
    if path not in context.project.files and context.inherited_configs.is_replaced(path, name):
        return Verdict(False)
    overriding = [one for one in programs if setting_of(one, name) is not None or _configures(context, one, path, name)]
    if programs and len(overriding) == len(programs):
        return Verdict(False)
    given = (setting_of(one, name) for one in overriding)
    return Verdict(True, tuple(Related(one.span, "this launch passes another value") for one in given if one is not None))


def _configures(context: Context, program: Program, path: str, name: str) -> bool:
    """Whether a file that a program reads sets the setting to another value than the default in its Python."""
    return path in context.project.files and any(holds_key(context.project, use.path, name) for use in program.configs)


def _setting_is_unset(context: Context, finding: Finding, name: str) -> Verdict:
    """No launch that reads the place sets the setting, nor another file that it reads, nor its Python code."""
    project, path = context.project, finding.span.path
    if path in project.files:
        # Other arguments of the call are visible there; another file can only set it on the object.
        return Verdict(not any(stores(project.data(one), name) for one in project.files if one != path and not project.is_test(one)))
    programs = context.launches.of_config(path)
    if any(setting_of(one, name) is not None or not one.complete for one in programs) or context.inherited_configs.is_replaced(path, name):
        return Verdict(False)
    beside = {use.path for one in programs for use in one.configs} - {path}
    if any(holds_key(project, one, name) for one in beside or including_files(project)):
        return Verdict(False)
    if project.others.get(path) is Kind.SHELL:
        return Verdict(not any(sets(project.data(one), name) for one in project.files if not project.is_test(one)))
    return Verdict(not any(sets(project.data(one), name) for one in readers(project, context.launches, path)))


def _default_is_left(context: Context, finding: Finding, name: str) -> Verdict:
    """No Python code, configuration or launch of the project sets a field that a class does not declare."""
    project, word = context.project, name.encode()
    if any(stores(project.data(one), name) for one in project.files if not project.is_test(one)):
        return Verdict(False)
    if any(word in project.data(one) for one in project.of_kind(Kind.YAML, Kind.JSON, Kind.TOML)):
        return Verdict(False)
    return Verdict(not any(word in project.data(one) for one in project.of_kind(Kind.SHELL)))


def _launches_do_not_shard(context: Context, finding: Finding, _name: str) -> Verdict:
    """No launch that reads the file runs the optimizer under DeepSpeed or FSDP, where it works on flat shards."""
    programs = _programs(context, finding.span.path)
    return Verdict(not any(shards_optimizer(context.project, one) for one in programs))


def _launch_varies_processes(context: Context, finding: Finding, name: str) -> Verdict:
    """A launch that reads the file gets its number of processes from outside, and sets no batch size for all of
    them.
    """
    world = varying_world(context, finding.span.path, name)
    return Verdict(world is not None, (world.related,) if world else (), (("world", world.text),) if world else ())


def varying_world(context: Context, path: str, name: str) -> World | None:
    """Where such a launch, which does not give a setting itself either, gets its number of processes from."""
    for program in _programs(context, path):
        if setting_of(program, name) is not None or any(is_global_batch_size(one.name) for one in program.arguments):
            continue
        world = varying_processes(program)
        if world is not None and not _divides(context, program.entry_text):
            said = context.project.data(world.span.path)[world.span.start : world.span.end].decode(errors="replace")
            code = context.launches.code_of(world.span.path)
            if world.texts is None and code is not None and names_in(said) and not varies(code, said):
                # ``$(echo $CUDA_VISIBLE_DEVICES | …)`` counts what the script itself sets.
                continue
            return World(quoted(_BRACED.sub(r"$\1", said.translate(_QUOTES))), world.span)
    return None


def _divides(context: Context, entry: str) -> bool:
    return context.divides_accumulation(entry.rpartition("/")[2])


def _project_uses_lightning(context: Context, _finding: Finding, _subject: str) -> Verdict:
    return Verdict(uses_lightning(context.project))


def _made_optimizer_trains_on_cuda(context: Context, _finding: Finding, _optimizer: str) -> Verdict:
    """The project creates objects from configurations and trains on CUDA, without Lightning, which may not clip with
    it."""
    project = context.project
    if uses_lightning(project):
        return Verdict(False)
    makers = project.universe.joined(*map(project.calling_by_name, ("instantiate", "get_class"))) & project.plain
    for maker in makers:
        for trainer in project.trainers_of(maker):
            reach = project.reach(trainer)
            if project.any_skim(reach, "cuda") and not project.any_skim(reach, "engine"):
                return fusable_in(context, maker, ())
    return Verdict(False)


QUESTIONS: dict[str, Question] = {
    "launch-varies-processes": _launch_varies_processes,
    "launch-runs-trainer": _launch_runs_trainer,
    "launches-do-not-shard": _launches_do_not_shard,
    "made-optimizer-trains-on-cuda": _made_optimizer_trains_on_cuda,
    "project-uses-lightning": _project_uses_lightning,
    "trainer-reads-configuration": _trainer_reads_configuration,
    "trainer-setting-is-in-force": _setting_is_in_force,
    "trainer-default-is-left": _default_is_left,
    "trainer-setting-is-unset": _setting_is_unset,
}
