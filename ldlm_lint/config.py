"""The configuration of a file: all settings, validated; and the root of the project around it.

`ldlm_lint.configurations` finds it, `ldlm_lint.config_reader` builds it from a table.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ldlm_lint import select as selection
from ldlm_lint.config_files import NAMES, PYPROJECT
from ldlm_lint.model import Option, Problem, Rule, Severity
from ldlm_lint.requirements import ANY_TORCH, NEWEST_TORCH, OLDEST_TORCH, Bound, TorchRange
from ldlm_lint.select import NOTHING, Layer

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FILE_NAME = PYPROJECT
JOURNAL = ".ldlm-lint"
LEVELS = {severity.label: severity for severity in sorted(Severity, reverse=True)}


class Patterns(NamedTuple):
    """gitignore patterns, and the directory (absolute, forward slashes) that they are relative to."""

    root: str = ""
    patterns: tuple[str, ...] = ()


NO_PATTERNS = Patterns()


class Overrides(NamedTuple):
    """The settings of the command line; None and the empty layer keep the file's values.

    The patterns of ``exclude`` are added to those of the file, or instead of them where they ``replace`` them.
    """

    layer: Layer = NOTHING
    level: Severity | None = None
    fail_level: Severity | None = None
    pedantic: bool = False
    exclude: Patterns = NO_PATTERNS
    replace: bool = False


class Configured(Protocol):
    """The source of the configuration of each file of a run: `ldlm_lint.configurations.Configurations`, or one `Config`
    for all."""

    @property
    def run(self) -> Config:
        """The configuration of the run itself: its output format, baseline and root."""

    @property
    def key(self) -> str:
        """A cache key for which files are found and where settings come from."""

    def of(self, path: str) -> Config:
        """The configuration of a file (absolute, forward slashes); raises ConfigError if that cannot be used."""

    def of_folder(self, folder: str) -> Config:
        """The configuration of a directory, without what its requirements say; raises as `of`."""

    def excludes(self, path: str, is_directory: bool) -> bool:
        """Whether a path is excluded, by itself or because a project around it is."""

    def looks(self, folder: str) -> Iterator[tuple[str, str]]:
        """The file system look-ups that determine the configuration of a directory; see
        `ldlm_lint.cache.index.LOOKS`.
        """

    def warnings(self, folder: str) -> tuple[Problem, ...]:
        """Probable mistakes in the files above a directory: settings that they seem to intend and do not set."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, validated; picklable, and equal for equal settings.

    ``root`` is the directory that the patterns of ``exclude`` and ``per_file_ignores`` are relative to, ``path`` the
    file that was read (empty: none). ``also_exclude`` are the patterns of the command line. ``target_torch`` holds the
    oldest and the newest torch the project runs on: ``target-torch`` for both (``names_torch``), else what the
    project's requirements allow; ``torch_bounds`` are those of them that decide. ``baseline`` is relative to ``root``, empty for the default place. ``pedantic``
    applies opt-in rules as if they were on by default; ``output_format`` is empty if it is not set. ``options`` holds
    every rule option by its name, set or default; lists are tuples. It also implements `Configured`, with the same
    settings for every file.
    """

    root: str = ""
    path: str = ""
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    overrides: Layer = NOTHING
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    also_exclude: Patterns = NO_PATTERNS
    level: Severity = Severity.INFO
    fail_level: Severity = Severity.REFACTOR
    target_torch: TorchRange = ANY_TORCH
    torch_bounds: tuple[Bound, ...] = ()
    names_torch: bool = False
    baseline: str = ""
    required_version: str = ""
    pedantic: bool = False
    output_format: str = ""
    options: Mapping[str, object] = field(default_factory=dict, hash=False)

    @classmethod
    def load(
        cls,
        start: Path,
        *,
        explicit: Path | None = None,
        isolated: bool = False,
        overrides: Overrides | None = None,
        rules: Sequence[Rule] | None = None,
    ) -> Config:
        """The configuration that applies at ``start``; arguments and errors are those of
        `ldlm_lint.configurations.Configurations`."""
        from ldlm_lint.configurations import Configurations

        return Configurations(start, explicit=explicit, isolated=isolated, overrides=overrides, rules=rules).run

    @property
    def run(self) -> Config:
        """This one."""
        return self

    @property
    def key(self) -> str:
        """A cache key for which files are found."""
        return repr((self.root, self.exclude, self.also_exclude))

    def of(self, path: str) -> Config:
        """This one, for every file."""
        return self

    def of_folder(self, folder: str) -> Config:
        """This one, for every directory."""
        return self

    def excludes(self, path: str, is_directory: bool) -> bool:
        """Whether a path (absolute, forward slashes) is excluded by its patterns."""
        return (bool(self.exclude) and _matches(self.root, self.exclude, path, is_directory)) or (
            bool(self.also_exclude.patterns) and _matches(*self.also_exclude, path, is_directory)
        )

    def looks(self, folder: str) -> Iterator[tuple[str, str]]:
        """Empty: nothing is looked up."""
        return iter(())

    def warnings(self, folder: str) -> tuple[Problem, ...]:
        """Empty: nothing was read."""
        return ()

    @property
    def facts(self) -> Mapping[str, object]:
        """The facts that the rules of a file receive: every rule option by its name, ``target-torch`` (the oldest) and
        ``newest-torch``."""
        return {**self.options, OLDEST_TORCH: self.target_torch.oldest, NEWEST_TORCH: self.target_torch.newest}

    @property
    def layers(self) -> tuple[Layer, Layer]:
        """The selectors of the file and those of the command line, in the order in which they apply."""
        return (Layer(self.select, self.extend_select, self.ignore), self.overrides)

    def selected(self, rules: Sequence[Rule]) -> frozenset[str]:
        """The symbols of the rules to apply, those below ``level`` left out; raises SelectorError."""
        return selection.at_level(rules, selection.selected_by_layers(rules, self.layers, opt_in=self.pedantic), self.level)

    def option(self, option: Option) -> object:
        """The value of a rule option: the user's, else its default."""
        return self.options.get(option.name, option.default)

    def ignored_at(self, path: str, rules: Sequence[Rule]) -> frozenset[str]:
        """The symbols that ``per-file-ignores`` switches off for a file (absolute, forward slashes)."""
        relative = relative_to(path, self.root)
        if not self.per_file_ignores or relative is None:
            return frozenset()
        symbols: frozenset[str] = frozenset()
        for pattern, names in self.per_file_ignores:
            if spec_of(pattern).match_file(relative):
                symbols = symbols.union(*(selection.named(rules, name) for name in names))
        return symbols


def relative_to(path: str, root: str) -> str | None:
    """``path`` relative to ``root``, both absolute with forward slashes; None if it is outside."""
    prefix = root.rstrip("/") + "/"
    return path[len(prefix) :] if path.startswith(prefix) else None


def project_root(path: Path, note: Callable[[str, str], object] = lambda kind, path: None) -> Path:
    """The nearest directory upwards with ``pyproject.toml`` or ``.git``; the path's own directory where none has.

    ``note`` is called for each file system look-up, see `ldlm_lint.ignores.Note`.
    """
    return marked_root(path, note) or (path if path.is_dir() else path.parent)


def marked_root(path: Path, note: Callable[[str, str], object] = lambda kind, path: None) -> Path | None:
    """As `project_root`, but None if no directory upwards is marked as that of a project."""
    start = path if path.is_dir() else path.parent
    for directory in (start, *start.parents):
        note("file", (directory / FILE_NAME).as_posix())
        note("exists", (directory / ".git").as_posix())
        if (directory / FILE_NAME).is_file() or (directory / ".git").exists():
            return directory
    return None


def root_among(
    path: Path, bases: Iterable[Path], note: Callable[[str, str], object] = lambda kind, path: None
) -> Path:
    """The root of the project of a file; where no directory is marked as one, the outermost of ``bases`` that holds the
    file.

    A project that was unpacked or copied without its ``.git`` is still one program.
    """
    around = (base for base in bases if base in path.parents)
    return marked_root(path, note) or min(around, key=lambda base: len(base.parts), default=path.parent)


def may_be_project(folder: Path) -> bool:
    """Whether an unmarked directory may count as a project; a home directory or a file system root may not."""
    return folder not in (Path(folder.anchor), Path(os.path.expanduser("~")))


def looked_at(start: Path, explicit: Path | None = None) -> Iterator[tuple[str, str]]:
    """The file system look-ups that finding the run's configuration takes, as kinds of `ldlm_lint.cache.index.LOOKS`
    and paths."""
    directory = start if start.is_dir() else start.parent
    for folder in (directory, *directory.parents):
        yield "exists", (folder / ".git").as_posix()
        for name in NAMES:
            yield "file", (folder / name).as_posix()
    if explicit is not None:
        yield "file", explicit.as_posix()


def common_directory(paths: Sequence[Path]) -> Path:
    """The deepest directory that holds all paths (absolute, at least one); its configuration serves them all."""
    directories = [path if path.is_dir() else path.parent for path in paths]
    try:
        return Path(os.path.commonpath(directories))
    except ValueError:
        # Two Windows drives have no directory in common.
        return directories[0]


def _matches(root: str, patterns: tuple[str, ...], path: str, is_directory: bool) -> bool:
    """Whether patterns exclude a path; as in git, a path in an excluded directory cannot be included again."""
    relative = relative_to(path, root)
    if relative is None:
        return False
    spec = spec_of(*patterns)
    if spec.match_file(relative + "/" if is_directory else relative):
        return True
    returns = any(one.startswith("!") for one in patterns)
    return returns and any(spec.match_file(relative[: at + 1]) for at, letter in enumerate(relative) if letter == "/")


@functools.lru_cache
def spec_of(*patterns: str) -> GitIgnoreSpec:
    """The matcher of gitignore patterns; raises ValueError for an invalid pattern."""
    # Imported here, so that a run without patterns, such as --version, does not wait for it.
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns)
    except re.error as error:
        # pathspec makes a regular expression of a pattern without validating its ranges, such as [z-a].
        raise ValueError(str(error)) from error
