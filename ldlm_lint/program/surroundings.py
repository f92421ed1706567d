"""What the files around a program show: configurations, scripts, and the trainings that a repository starts; hosts say it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ldlm_lint.model import Related

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.source import Kind


class Files(Protocol):
    """The configuration files and scripts of a project."""

    @property
    def others(self) -> Mapping[str, Kind]:
        """Their kinds by their paths."""

    def of_kind(self, *kinds: Kind) -> tuple[str, ...]:
        """The paths of those of some kinds, in order."""

    def data(self, path: str) -> bytes:
        """The bytes of one, or of a Python file."""

    def document(self, path: str) -> Any:
        """One as a document of values; None if it cannot be read."""


class Configurations(Protocol):
    """The configurations of OpenMMLab's runners: Python files of plain assignments, some of which inherit from others."""

    def is_config(self, path: str) -> bool:
        """Whether a file contains only settings, in a project with a runner of these."""

    def is_unused(self, path: str) -> bool:
        """Whether a file is a part that no configuration takes."""

    def is_named(self, paths: set[str], word: bytes) -> bool:
        """Whether one of some files has a word."""

    def made_of(self, path: str) -> set[str]:
        """The files derived from a file."""

    def compositions(self, path: str) -> list[set[str]]:
        """The files of each final configuration derived from a file."""


class Trainings(Protocol):
    """What the files of a repository show of its trainings, by the path of a file."""

    def train_in(self, path: str) -> bool:
        """Whether a file trains itself."""

    def belong_to(self, path: str) -> bool:
        """Whether a training is reached from the same files as this one."""

    def trainings_of(self, path: str) -> list[str]:
        """The files that train, or start a training, and use a file."""

    def start_many_ranks(self, path: str) -> bool:
        """Whether a launch starts a file in several processes, or may."""

    def may_use_ranks(self, switches: Collection[str]) -> bool:
        """Whether code, a script or a configuration starts several ranks, or none of the switches by these names stays off."""

    def end_early(self, path: str) -> bool:
        """Whether a file does not parse to its end."""

    def handle_gradients(self, path: str) -> bool:
        """Whether a file reads gradients, or one of a training with it adds to them, communicates them itself or captures
        graphs: they must exist then."""

    def run_on_cuda(self, path: str) -> bool:
        """Whether a training that a file belongs to may run on a GPU."""

    def run_on_accelerator(self, path: str) -> bool:
        """Whether the steps of a file run on an accelerator whose work the host does not wait for, in no tutorial, test or
        measurement."""

    def only_differentiate(self, path: str) -> bool:
        """Whether a file computes gradients that no weights follow: an attack, a saliency map, a check."""

    def run_on_many_ranks(self, path: str) -> bool:
        """Whether a training that a file belongs to may run on several ranks."""

    def launched_options(self, path: str, names: Collection[str]) -> list[frozenset[str] | None]:
        """The texts that each launch of a program with a file gives options of these names, or of nested ones; None for
        what is not known."""

    def launches_keeping(self, path: str, name: str, default: str) -> list[Span] | None:
        """Where launches of the programs with a file pass the default of a setting, too; None if all pass another value, there or
        in a configuration."""

    def configure_more_workers(self, path: str, position: str, most: int) -> bool:
        """Whether a configuration sets the loader at ``line:column`` of a file to more than a number of workers."""

    def train_model(self, path: str, name: str) -> bool:
        """Whether a training imports a class of a file and makes objects of it, or a configuration of one names it."""

    def bringing(self, path: str) -> Collection[str]:
        """The files that bring a file and a training together."""

    def around(self, path: str) -> Collection[str]:
        """A file, what it loads, and all files of the trainings that use it, or that a configuration brings to it."""

    def pin_transformers_before_5(self) -> bool:
        """Whether the project pins a transformers whose checkpoints are reentrant by default."""

    def recompute_by_engine(self, path: str) -> bool:
        """Whether the configuration of an engine makes the trainings of a file recompute activations."""

    def wrap_without_sharing(self, path: str) -> bool:
        """Whether a training with a file wraps its model in DDP, and no file of it shares data out without a sampler."""

    def mention_samplers(self, path: str) -> bool:
        """Whether a file of a training with a file mentions samplers that share data out."""

    def step_on_cuda(self, path: str, callers: Collection[str]) -> bool:
        """Whether a training that a file, or else one of its callers' files, belongs to may step an optimizer of torch on a
        GPU: under no engine that creates one of its own."""

    def are_sharded(self, path: str) -> bool:
        """Whether a launch of a file runs it under DeepSpeed or FSDP, which reduce gradients on their own terms."""

    def world_from_outside(self, path: str, setting: str) -> World | None:
        """Where a launch with a file gets its number of processes from outside, if it gives neither a setting nor a batch size
        for all of them."""

    def told_to_accumulate(self, path: str, engine: str) -> tuple[Span, str] | None:
        """Where a launch of a file, or a file that it reads, makes Accelerate or Lightning accumulate, and the setting."""

    def leave_at_one(self, path: str, setting: str) -> bool:
        """Whether the launches of a file are known, and a setting is 1 in all of them and by default."""

    def read_scaled_gradients(self, path: str, callers: Collection[str]) -> ScaledRead | None:
        """Where such a training reads gradients after a scaler's step, still scaled by a fused optimizer."""

    def is_test_or_tutorial(self, path: str) -> bool:
        """Whether a file is a test or a tutorial."""

    def start_in(self, path: str) -> bool:
        """Whether a file has a backward pass, or starts one by a call of its own."""

    def may_be_clipped_by_lightning(self, path: str, *, is_known: bool) -> bool:
        """Whether Lightning may clip the gradients of a file's modules in mixed precision; ``is_known``: nothing but Trainers
        of the project that do not, written out, says no."""

    def may_delete_checkpoints(self, path: str) -> bool:
        """Whether a file, or one that a training with it reads, has words of deleting checkpoints or of how many are kept."""

    def leave_off(self, name: str, defaults: Collection[str] = ()) -> bool:
        """Whether a setting is off by default (``defaults``: also by those of the code), and no configuration or launch sets it."""

    def start_ranks_at(self, path: str, scope: str) -> bool:
        """Whether what a function of a file, by its dotted name, or the file itself runs trains, and joins a process group."""

    def launches_on_nodes(self, path: str) -> list[tuple[Span, bool]]:
        """The launches that run a file on several nodes, and whether a scheduler does, whose nodes share the submission folder."""

    def wait_for_one_rank(self, place: Span) -> LongWait | None:
        """Where ranks of a process group that is made at a place wait for long work of one of them, in the programs that
        the place takes part in."""


class LongWait(NamedTuple):
    """Ranks that wait for one of them, which runs something that may take long, and both places."""

    path: str
    line: int
    work: int
    called: str
    related: tuple[Related, ...]

    @property
    def why(self) -> str:
        """Why a timeout must not be shorter."""
        where = f"{self.path.rpartition('/')[2]}:{self.work}, and the others wait for it in line {self.line}"
        return f"one rank alone runs {self.called} in {where}: a timeout that is shorter than this work would end the job there"


class World(NamedTuple):
    """The number of processes of a launch that comes from outside: what it is called there, for a message, and where."""

    text: str
    span: Span

    @property
    def related(self) -> Related:
        """The place."""
        return Related(self.span, "the number of GPUs comes from here")


class ScaledRead(NamedTuple):
    """The line that reads gradients, and the earlier one of the scaler's step."""

    path: str
    line: int
    step: int
    span: Span

    @property
    def why(self) -> str:
        """Why a fused optimizer must not be chosen without a look at the place."""
        return (
            "with fused, scaler.step() removes the scale only inside the kernel, so "
            f"{self.path.rpartition('/')[2]}:{self.line} would read scaled gradients; "
            f"first call scaler.unscale_(optimizer) before scaler.step() in line {self.step}"
        )

    @property
    def related(self) -> Related:
        """The place that reads them."""
        return Related(self.span, "gradients are read here, after the scaler's step")
