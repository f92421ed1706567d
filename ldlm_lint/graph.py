"""The launches of a project as ``ldlm-lint graph`` shows them: script → entry → configurations → values that reach rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ldlm_lint.config import Configured, project_root
from ldlm_lint.discover import discover, project_files
from ldlm_lint.model import Problem, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.launches import Launches
from ldlm_lint.project.programs import Place, Program
from ldlm_lint.rules.environment_decisions import is_relevant
from ldlm_lint.source import Kind
from ldlm_lint.vocabulary.batch_sizes import is_accumulation, is_batch_size

# The last part of each key that a rule mentions, in snake case.
_SPOKEN_OF = lazily(
    r"(?:\w+_)?(?:num_|n_)?workers(?:_per_\w+)?|(?:dataloader_)?(?:persistent_workers|prefetch_factor|pin_memory)"
    r"|(?:\w+_)?timeout(?:_s(?:ec(?:onds)?)?|_min(?:utes)?)?"
    r"|save_(?:total_limit|top_k|last_k|steps|freq|every|interval|period|strategy)"
    r"|(?:keep|max_keep|max_num)_(?:last|ckpts?|checkpoints?)\w*"
    r"|(?:\w+_)?(?:gradient|activation)_checkpointing(?:_enable)?|(?:ddp_)?find_unused_parameters|static_graph|gradient_as_bucket_view"
    r"|broadcast_buffers|(?:use_)?fused|optim|max_steps|num_train_steps|use_reentrant"
)


class Where(NamedTuple):
    """A place that a user can open: ``path`` is absolute, ``line`` 1-based."""

    path: str
    line: int


class Shown(NamedTuple):
    """A place that sets a value; ``texts`` is None if a value is unknown."""

    texts: tuple[str, ...] | None
    source: str
    where: Where


class Valued(NamedTuple):
    """A key, the place that decides it, and the places that it overrides, strongest first."""

    key: str
    winner: Shown
    shadows: tuple[Shown, ...]


class Read(NamedTuple):
    """A configuration file of a launch and the place that names it."""

    path: str
    why: str
    named: Where
    primary: bool


class Launch(NamedTuple):
    """One launch with everything that is shown of it."""

    where: Where
    program: Program
    called: tuple[Where, ...]
    configs: tuple[Read, ...]
    values: tuple[Valued, ...]


class Graph(NamedTuple):
    """The launches below some paths, and what could not be read."""

    launches: tuple[Launch, ...]
    problems: tuple[Problem, ...]
    scripts: int
    warnings: tuple[Problem, ...] = ()


def is_spoken_of(name: str) -> bool:
    """Whether a rule mentions the values of a key, by its last part."""
    plain = name.replace("-", "_").lower()
    return _SPOKEN_OF.fullmatch(plain) is not None or is_batch_size(plain) or is_accumulation(plain)


def build(paths: Sequence[Path], configured: Configured, base: Path) -> Graph:
    """The launches that are below ``paths`` (absolute); their projects are read whole, as a check reads them."""
    found = discover(paths, configured, Path(configured.run.root or base))
    wanted = {path.as_posix(): kind for path, kind in found.files}
    roots = sorted({project_root(path).as_posix() for path in paths if path.exists()})
    launches: dict[tuple[Span, tuple[Span, ...]], list[Launch]] = {}
    for root in roots:
        project = _project(root, configured, wanted)
        launched = Launches(project)
        for program in launched.programs:
            if program.path in wanted:
                launches.setdefault((program.span, program.via), []).append(_launch(project, launched, program))
    scripts = sum(kind is Kind.SHELL for kind in wanted.values())
    ordered = (one for key in sorted(launches) for one in launches[key])
    return Graph(tuple(dict.fromkeys(ordered)), found.problems, scripts, found.warnings)


def _project(root: str, configured: Configured, wanted: dict[str, Kind]) -> Project:
    below = root.rstrip("/") + "/"
    kinds = {path: kind for path, kind in wanted.items() if path.startswith(below)}
    kinds |= {path.as_posix(): kind for path, kind in project_files(Path(root), configured).files}
    others = {path: kind for path, kind in kinds.items() if kind is not Kind.PYTHON}
    return Project(root, (path for path, kind in kinds.items() if kind is Kind.PYTHON), others=others)


def _launch(project: Project, launched: Launches, program: Program) -> Launch:
    keys = sorted({*_given(program), *launched.configured(program, is_spoken_of)})
    values = [valued for key in keys if (valued := _valued(project, launched, program, key))]
    return Launch(
        where=_where(project, program.span),
        program=program,
        called=tuple(_where(project, span) for span in program.via),
        configs=tuple(Read(use.path, use.why, _where(project, use.span), use.primary) for use in program.configs),
        values=(*values, *_environment(project, program)),
    )


def _given(program: Program) -> Iterator[tuple[str, ...]]:
    for one in program.arguments:
        if one.keys and is_spoken_of(one.keys[-1]):
            yield one.keys


def _valued(project: Project, launched: Launches, program: Program, keys: tuple[str, ...]) -> Valued | None:
    effective = launched.value_of(program, *keys)
    if effective is None:
        return None
    return Valued(
        ".".join(keys), _shown(project, effective.winner), tuple(_shown(project, one) for one in effective.shadowed)
    )


def _environment(project: Project, program: Program) -> Iterator[Valued]:
    """The variables that rules mention; an earlier assignment is shadowed by a later one."""
    names = sorted({one.keys[0] for one in program.environment if is_relevant(one.keys[0])})
    for name in names:
        places = []
        for one in reversed([given for given in program.environment if given.keys == (name,)]):
            texts = None if one.values is None else tuple(dict.fromkeys(value.text for value in one.values))
            places.append(_shown(project, Place(texts, one.span, "environment")))
        yield Valued(name, places[0], tuple(places[1:]))


def _shown(project: Project, place: Place) -> Shown:
    return Shown(place.values, place.source, _where(project, place.span))


def _where(project: Project, span: Span) -> Where:
    return Where(span.path, project.data(span.path).count(b"\n", 0, span.start) + 1)


__all__ = ["Graph", "Launch", "Read", "Shown", "Valued", "Where", "build", "is_spoken_of"]
