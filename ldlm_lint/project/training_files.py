"""What the files of a project show of its trainings, by path."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.joined import Joined, Path
from ldlm_lint.concepts.scaled_reads import ScaledReads
from ldlm_lint.model import Related
from ldlm_lint.patterns import lazily
from ldlm_lint.program.surroundings import LongWait, ScaledRead, World
from ldlm_lint.project.accelerators import only_differentiates, trains_on_device
from ldlm_lint.project.engines import (
    checkpoints_activations,
    hands_to_deepspeed,
    makes_optimizer,
    names_deepspeed,
    shards_optimizer,
    told_to_accumulate,
)
from ldlm_lint.project.lightning_trainers import (
    is_written_out,
    lightning_trainers,
    may_clip_mixed_precision,
    trainers_in,
)
from ldlm_lint.project.optional_settings import is_off_everywhere, is_one_by_default
from ldlm_lint.project.reentrant import has_old_transformers
from ldlm_lint.project.training import is_tutorial, runs_many_ranks, trainings_of, trains_on_cuda
from ldlm_lint.project.traits import Trait
from ldlm_lint.project.wrap_guards import may_be_on
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ldlm_lint.configs.document import Document, Entry
    from ldlm_lint.model import Span
    from ldlm_lint.project.programs import Given, Program
    from ldlm_lint.project.questions import Context
    from ldlm_lint.project.waiting_ranks import Wait

_DDP = Trait(re.compile(rb"\bDistributedDataParallel\(|\bDDP\("), (b"DistributedDataParallel(", b"DDP("))
_SAMPLERS = Trait(
    re.compile(rb"DistributedSampler|distributed_sampler|num_replicas"),
    (b"DistributedSampler", b"distributed_sampler", b"num_replicas"),
    code=True,
)
_SHARES_OTHERWISE = Trait(
    re.compile(
        rb"split_dataset_by_node|split_by_node|\.shard\(|::[ \t]*\w*(?:world|rank|replica)\w*"
        rb"|rank[ \t]*::|\bAccelerator\(|setup_dataloaders\(|deepspeed\.initialize|\blightning\b|\bpytorch_lightning\b|%[ \t]*\w*world_?size"
    ),
    (
        *(b"split_dataset_by_node", b"split_by_node", b".shard(", b"::"),
        *(b"Accelerator(", b"setup_dataloaders(", b"deepspeed.initialize", b"lightning", b"world"),
    ),
    code=True,
)
_NUMBER_OF_WORKERS = lazily(rb"workers\w*[\"']?[ \t]*[:=][ \t]*[\"']?\d", re.I)
# Clipping calls, and code that a command or a configuration may make clip.
_MAY_CLIP = Trait(
    lazily(rb"gradient_clip|clip_grad|LightningCLI|from_argparse_args"),
    (b"gradient_clip", b"clip_grad", b"LightningCLI", b"from_argparse_args"),
)

_GRADIENTS_BY_HAND = Trait(
    lazily(
        rb"\.grad\s*\+=|\.grad\.(?:add_|copy_|mul_|div_|numel|view|flatten|reshape|clone|data)\b"
        rb"|(?:reduce|gather|broadcast)\w*\([^)\n]*\.grad\b|CUDAGraph|make_graphed_callables|cuda\.graph\("
    ),
    (b".grad", b"CUDAGraph", b"make_graphed_callables"),
)
# A read of a gradient, which may need one to exist.
_READS_GRADIENTS = lazily(rb"\.grad\b(?!\s*\(|\s+is\b|\s*=[^=])")


class TrainingFiles:
    """Answers for the files of a project; see `ldlm_lint.program.codebase.Trainings`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._project = context.project
        self._left_off: dict[tuple[str, frozenset[str]], bool] = {}

    def train_in(self, path: str) -> bool:
        """Whether a file trains itself."""
        return path in self._project.training_files

    def start_in(self, path: str) -> bool:
        """Whether a file has a backward pass, or starts one by a call of its own."""
        return self._context.runs_training(path)

    def belong_to(self, path: str) -> bool:
        """Whether a training is reached from the same files as this one; not for a test."""
        return not self._project.is_test(path) and bool(self._project.trainers_of(path))

    def is_test_or_tutorial(self, path: str) -> bool:
        """Whether a file is a test or a tutorial."""
        return self._project.is_test(path) or is_tutorial(self._project, path)

    def trainings_of(self, path: str) -> list[str]:
        """The files that train, or start a training, and use a file."""
        return [one for one in self._project.trainers_of(path) if self._context.runs_training(one)]

    def start_many_ranks(self, path: str) -> bool:
        """Whether a launch starts a file in several processes, or may."""
        return any(one.launcher != "python" or not one.complete for one in self._context.launches.running(path))

    def may_use_ranks(self, switches: Collection[str]) -> bool:
        """Whether code, a script or a configuration starts several ranks, or none of the switches by these names stays off."""
        return may_be_on(self._project, switches)

    def end_early(self, path: str) -> bool:
        """Whether a file does not parse to its end."""
        return bool(self._context.trees.parsed(path).error_line)

    def handle_gradients(self, path: str) -> bool:
        """Whether a file reads gradients, or one of a training with it adds to them, communicates them itself or captures
        graphs: they must exist then."""
        project = self._project
        return _READS_GRADIENTS.search(project.data(path)) is not None or project.any_shows({path, *project.trainings_of(path)}, _GRADIENTS_BY_HAND)

    def run_on_cuda(self, path: str) -> bool:
        """Whether a training that a file belongs to may run on a GPU."""
        return trains_on_cuda(self._project, path)

    def run_on_accelerator(self, path: str) -> bool:
        """Whether the steps of a file run on an accelerator whose work the host does not wait for, in no tutorial, test or
        measurement."""
        return trains_on_device(self._context, path)

    def only_differentiate(self, path: str) -> bool:
        """Whether a file computes gradients that no weights follow: an attack, a saliency map, a check."""
        return only_differentiates(self._project, path)

    def run_on_many_ranks(self, path: str) -> bool:
        """Whether a training that a file belongs to may run on several ranks."""
        return runs_many_ranks(self._project, path)

    def train_model(self, path: str, name: str) -> bool:
        """Whether a training imports a class of a file and makes objects of it, or a configuration of one names it."""
        return not self._project.is_test(path) and (self._is_imported_to_train(path, name) or self._is_named_to_train(path, name))

    def _is_named_to_train(self, path: str, model: str) -> bool:
        """Whether a configuration of a training names the class, or another one whose files make objects of it."""
        makers = self._context.makers
        builders = (makers.calling, makers.holding)
        return any(
            True
            for _ in self._context.named.trained_with(
                path, lambda one: (path, model) in one.classes or any(not one.reach.isdisjoint(make(model)) for make in builders)
            )
        )

    def _is_imported_to_train(self, path: str, model: str) -> bool:
        """Whether a file that starts a training reaches the class by imports, and one that creates objects of it."""
        project, makers = self._project, self._context.makers
        if not self._context.starts_training(path):
            return False
        # The most expensive check comes last: the calls of all files are cached, their texts are not.
        for builders in (makers.calling, makers.holding):
            for trainer in project.trainers_of(path):
                reach = project.reach(trainer)
                names = {model, *(name for one, name in project.derivations.derived(model) if one in reach)}
                if any(not reach.isdisjoint(builders(name)) for name in names) and self._trains_itself(trainer, path):
                    return True
        return False

    def _trains_itself(self, trainer: str, path: str) -> bool:
        """Whether a training belongs to a trainer itself, and not to a library imported by a model's file for something
        else."""
        return trainer != path or path in self._project.training_files or self._context.runs_training(path)

    def bringing(self, path: str) -> Collection[str]:
        """The files that bring a file and a training together."""
        return self._project.trainers_of(path)

    def around(self, path: str) -> Collection[str]:
        """A file, what it loads, and all files of the trainings that use it, or that a configuration brings to it."""
        project = self._project
        named = [project.reach(one) for one in self._context.named.trained_with(path, lambda _: True)]
        return frozenset(project.around(path)).union(*named)

    def pin_transformers_before_5(self) -> bool:
        """Whether the project pins a transformers whose checkpoints are reentrant by default."""
        return has_old_transformers(self._project)

    def recompute_by_engine(self, path: str) -> bool:
        """Whether the configuration of an engine makes the trainings of a file recompute activations."""
        engines = self._context.engines
        if not any(map(checkpoints_activations, engines.configs.values())):
            # The launching programs of a file are determined only if needed: that reads all launches.
            return False
        found = (engine for one in (path, *self._project.trainers_of(path)) for engine in engines.of(one))
        return any(map(checkpoints_activations, found))

    def step_on_cuda(self, path: str, callers: Collection[str]) -> bool:
        """Whether a training that a file, or else one of its callers' files, belongs to may step an optimizer of torch on a
        GPU: under no engine that creates one of its own."""
        if b"torch_xla" in self._project.data(path):
            return False
        return any(self._steps_on_cuda(path, one) for one in self._trainers(path, callers))

    def _trainers(self, path: str, callers: Collection[str]) -> Iterable[str]:
        project = self._project
        return project.trainers_of(path) or project.universe.joined(*(project.trainers_of(one) for one in callers))

    def _steps_on_cuda(self, path: str, trainer: str) -> bool:
        project, engines = self._project, self._context.engines
        engine = project.skim(trainer).engine or project.skim(path).engine
        if engine or not project.any_skim(project.reach(trainer), "cuda"):
            return False
        # The launching programs of a file are determined only if needed: that reads all launches.
        described = any(map(makes_optimizer, engines.configs.values()))
        return not (described and any(map(makes_optimizer, engines.of(trainer)))) and not self._runs_under_deepspeed(trainer)

    def _runs_under_deepspeed(self, trainer: str) -> bool:
        """Whether Accelerate passes a training to DeepSpeed, by all its known launches; without launches, by all
        Accelerate files."""
        if b"Accelerator" not in self._project.data(trainer):
            return False
        if programs := list(self._context.launches.running(trainer)):
            return all(hands_to_deepspeed(self._project, one) for one in programs)
        files = [one for one in self._context.engines.configs.values() if one.get("distributed_type") is not None]
        return bool(files) and all(map(names_deepspeed, files))

    def are_sharded(self, path: str) -> bool:
        """Whether a launch of a file runs it under DeepSpeed or FSDP, which reduce gradients on their own terms."""
        return any(shards_optimizer(self._project, one) for one in self._context.launches.running(path))

    def world_from_outside(self, path: str, setting: str) -> World | None:
        """Where a launch with a file gets its number of processes from outside, if it gives neither a setting nor a batch size
        for all of them."""
        from ldlm_lint.project.questions.frameworks import varying_world

        return varying_world(self._context, path, setting)

    def told_to_accumulate(self, path: str, engine: str) -> tuple[Span, str] | None:
        """Where a launch of a file, or a file that it reads, makes Accelerate or Lightning accumulate, and the setting."""
        return told_to_accumulate(self._project, self._context.launches, path, engine)

    def leave_at_one(self, path: str, setting: str) -> bool:
        """Whether the launches of a file are known, and a setting is 1 in all of them and by default."""
        launched = setting and self._context.launches.running(path)
        return bool(launched) and is_one_by_default(self._project, setting)

    def read_scaled_gradients(self, path: str, callers: Collection[str]) -> ScaledRead | None:
        """Where such a training reads gradients after a scaler's step, still scaled by a fused optimizer."""
        view = self._context.view
        trainers = (module for one in self._trainers(path, callers) if (module := view.module(one)) is not None)
        found = next((read for one in trainers if (read := view[ScaledReads].loaded_by(one)) is not None), None)
        return found and ScaledRead(view.path(found.read.module), found.read.line, found.step.last_line, found.read.line_span)

    def start_ranks_at(self, path: str, scope: str) -> bool:
        """Whether what a function of a file, by its dotted name, or the file itself runs trains, and joins a process group."""
        return self._context.ranks.start_at((path, scope))

    def launches_on_nodes(self, path: str) -> list[tuple[Span, bool]]:
        """The launches that run a file on several nodes, and whether a scheduler does, whose nodes share the submission folder."""
        from ldlm_lint.project.node_launches import launches_on_nodes

        return [(one.span, one.scheduled) for one in launches_on_nodes(self._project, self._context.launches, path)]

    def wait_for_one_rank(self, place: Span) -> LongWait | None:
        """Where ranks of a process group that is made at a place wait for long work of one of them, in the programs that
        the place takes part in."""
        wait = next((one for one in self._context.waiting.in_files(self._programs_of(place)) if self._may_be_joined(place, one)), None)
        if wait is None:
            return None
        places = ((wait.line, "the other ranks wait here"), (wait.work, f"while one rank runs {wait.called}"))
        return LongWait(*wait, related=tuple(Related(self._context.line_span(wait.path, line), note) for line, note in places))

    def _may_be_joined(self, place: Span, wait: Wait) -> bool:
        """Whether the ranks that wait may belong to the group that is made at a place: calls join both, or one of them runs
        when its module is imported; unknown, so true, for scripts and configurations."""
        view = self._context.view
        made, waiting = view.function_around(place), view.function_around(self._context.line_span(wait.path, wait.line))
        return made is None or waiting is None or made.is_module or view[Joined].path(made, waiting) is not Path.NONE

    def _programs_of(self, place: Span) -> Iterable[str]:
        """The files of a place's programs: by imports, by the launches around it, by the readers of the configuration."""
        project, path = self._project, place.path
        if path in project.files:
            return project.reach_of_all((path, *(project.importers(path) & project.plain)))
        if project.others.get(path) is Kind.SHELL:
            return project.reach_of_all(self._context.launches.entries_at(place))
        return project.reach_of_all({one.entry for one in self._context.homes.of(path)})

    def may_be_clipped_by_lightning(self, path: str, *, is_known: bool) -> bool:
        """Whether Lightning may clip the gradients of a file's modules in mixed precision; ``is_known``: nothing but Trainers
        of the project that do not, written out, says no."""
        project = self._project
        if not is_known:
            return any(may_clip_mixed_precision(call) for _, _, call in lightning_trainers(project, path))
        if self._may_clip_somewhere:
            return True
        made = [call for one in sorted(project.importers(path)) if not project.is_test(one) for _, call in trainers_in(project.data(one))]
        return not made or not all(map(is_written_out, made))

    @cached_property
    def _may_clip_somewhere(self) -> bool:
        project = self._project
        return any(b"gradient_clip" in project.data(one) for one in project.others) or bool(project.any_shows(project.files, _MAY_CLIP))

    def may_delete_checkpoints(self, path: str) -> bool:
        """Whether a file, or one that a training with it reads, has words of deleting checkpoints or of how many are kept."""
        return self._project.any_skim(self._project.around(path), "prunes")

    def leave_off(self, name: str, defaults: Collection[str] = ()) -> bool:
        """Whether a setting is off by default (``defaults``: also by those of the code), and no configuration or launch sets it."""
        key = (name, frozenset(defaults))
        if key not in self._left_off:
            self._left_off[key] = is_off_everywhere(self._project, name, defaults)
        return self._left_off[key]

    def launched_options(self, path: str, names: Collection[str]) -> list[frozenset[str] | None]:
        """The texts that each launch of a program with a file gives options of these names, or of nested ones; None for
        what is not known."""
        given = (one for program in self._context.launches.running(path) for one in program.arguments if one.keys) if names else ()
        return [one.texts for one in given if one.keys[-1] in names or one.name in names]

    def launches_keeping(self, path: str, name: str, default: str) -> list[Span] | None:
        """Where launches of the programs with a file pass the default of a setting, too; None if all pass another value, there or
        in a configuration."""
        programs = self._context.launches.running(path)
        kept = [one for one in programs if not self._gives_another(one, name, default)]
        given = [found for one in kept if (found := _given(one, name)) is not None]
        return [one.span for one in given] if kept or not programs else None

    def _gives_another(self, program: Program, name: str, default: str) -> bool:
        """Whether a launch, or else a configuration that it names, sets a setting to something other than its default."""
        given = _given(program, name)
        if given is not None:
            return given.values is None or all(one.text != default for one in given.values)
        documents = (self._project.document(use.path) for use in program.configs)
        found = [entry for document in documents if document is not None for entry in document.named(name)]
        return bool(found) and all(one.text != default for one in found)

    def configure_more_workers(self, path: str, position: str, most: int) -> bool:
        """Whether a configuration sets the loader at ``line:column`` of a file to more than a number of workers."""
        if not self._large_workers:
            return False
        from ldlm_lint.project.configured import TOPICS
        from ldlm_lint.project.questions.configuration import reached_by

        topic = TOPICS["too-many-workers"]
        for document, entry in self._large_workers:
            is_it = isinstance(entry.value, int) and entry.value > most and any(reached_by(self._context, document, entry, topic, lambda sink: (sink.path, sink.position) == (path, position)))
            if is_it:
                return True
        return False

    def wrap_without_sharing(self, path: str) -> bool:
        """Whether a training with a file wraps its model in DDP, and no file of it shares data out without a sampler."""
        project, files = self._project, trainings_of(self._project, path)
        return bool(project.any_shows(files, _DDP)) and not project.any_shows(files, _SHARES_OTHERWISE)

    def mention_samplers(self, path: str) -> bool:
        """Whether a file of a training with a file mentions samplers that share data out."""
        return bool(self._project.any_shows(trainings_of(self._project, path), _SAMPLERS))

    @cached_property
    def _large_workers(self) -> list[tuple[Document, Entry]]:
        """The numbers of workers in the project's configurations."""
        project, found = self._project, []
        for path in project.of_kind(Kind.YAML, Kind.JSON, Kind.TOML):
            document = project.document(path) if _NUMBER_OF_WORKERS.search(project.data(path)) else None
            if document is not None:
                found += [(document, entry) for entry in document.scalars() if "workers" in entry.name.lower() and type(entry.value) is int]
        return found


def _given(program: Program, name: str) -> Given | None:
    return next((one for one in reversed(program.arguments) if one.keys and name in (one.keys[-1], one.name)), None)


__all__ = ["TrainingFiles"]
