"""The configuration: ``[tool.ldlm-lint]`` of the nearest ``pyproject.toml``, checked key by key.

A configuration that does not say what its author meant is worse than none, so an unknown key, a wrong type and
an unknown rule are errors that name the file, the line and the key.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from ldlm_lint import select as selection
from ldlm_lint.model import Option, Rule, Severity
from ldlm_lint.requirements import ANY_TORCH, NEWEST_TORCH, OLDEST_TORCH, TORCH_VERSIONS, TorchRange, torch_range
from ldlm_lint.requirements import looked_at as requirement_files
from ldlm_lint.select import NOTHING, Layer, SelectorError, nearest
from ldlm_lint.settings import KEYS, formats
from ldlm_lint.tomlfile import ConfigError, Table, read_table

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FILE_NAME = "pyproject.toml"
JOURNAL = ".ldlm-lint"
LEVELS = {severity.label: severity for severity in sorted(Severity, reverse=True)}
_KINDS = {int: "an integer", float: "a number", str: "a string", bool: "true or false", list: "a list of strings"}


class Overrides(NamedTuple):
    """What the command line sets; None and the empty layer leave the file's values alone."""

    layer: Layer = NOTHING
    level: Severity | None = None
    fail_level: Severity | None = None
    pedantic: bool = False


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a user may set, checked; picklable, and equal for equal settings.

    ``root`` is the directory that the patterns of ``exclude`` and ``per_file_ignores`` are relative to, ``path``
    the file that was read (empty: none). ``target_torch`` holds the oldest and the newest torch the project runs on: what
    ``target-torch`` says for both (``names_torch``), else what the project's requirements allow. ``baseline`` is relative to ``root``, empty for the default place. ``pedantic`` applies
    opt-in rules as if they were on by default; ``output_format`` is empty where nothing is said. ``options`` holds every rule option
    by its name, set or default; lists are tuples.
    """

    root: str = ""
    path: str = ""
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    overrides: Layer = NOTHING
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    level: Severity = Severity.INFO
    fail_level: Severity = Severity.REFACTOR
    target_torch: TorchRange = ANY_TORCH
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
        torch_of: Callable[[Path], TorchRange] = torch_range,
    ) -> Config:
        """The configuration for what lies at ``start`` (absolute).

        ``explicit`` is read instead of the nearest ``pyproject.toml``; its patterns are still relative to the
        project of ``start``. ``isolated`` reads no file. ``rules`` are `ldlm_lint.rules.ALL` unless given;
        ``torch_of`` tells which torch the project at a root runs on.
        Raises ConfigError for a file that cannot be used, SelectorError for an unknown rule in ``overrides``.
        """
        overrides = overrides or Overrides()
        if rules is None:
            from ldlm_lint.rules import ALL

            rules = ALL
        path = None if isolated else explicit or nearest_file(start)
        root = path.parent if path and not explicit else project_root(start)
        if path and not explicit:
            _refuse_stray_link(path)
        table = read_table(path, required=explicit is not None) if path else Table()
        config = parse(table, rules, root=root.as_posix(), overrides=overrides)
        config.selected(rules)
        if isolated or config.names_torch:
            return config
        return replace(config, target_torch=torch_of(root))

    @property
    def facts(self) -> Mapping[str, object]:
        """What the rules of a file are told: every rule option by its name, ``target-torch`` (the oldest) and ``newest-torch``."""
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
            if _spec(pattern).match_file(relative):
                symbols = symbols.union(*(selection.named(rules, name) for name in names))
        return symbols


def relative_to(path: str, root: str) -> str | None:
    """``path`` relative to ``root``, both absolute with forward slashes; None where it lies outside."""
    prefix = root.rstrip("/") + "/"
    return path[len(prefix) :] if path.startswith(prefix) else None


def project_root(path: Path, note: Callable[[str, str], object] = lambda kind, path: None) -> Path:
    """The nearest directory upwards with ``pyproject.toml`` or ``.git``; the path's own directory where none has.

    ``note`` is told of the looks at the file system, see `ldlm_lint.ignores.Note`.
    """
    return marked_root(path, note) or (path if path.is_dir() else path.parent)


def marked_root(path: Path, note: Callable[[str, str], object] = lambda kind, path: None) -> Path | None:
    """As `project_root`, but None where no directory upwards is marked as that of a project."""
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
    """The root of the project of a file; where no directory is marked as one, the outermost of ``bases`` that holds the file.

    What was unpacked or copied without its ``.git`` is one program all the same.
    """
    around = (base for base in bases if base in path.parents)
    return marked_root(path, note) or min(around, key=lambda base: len(base.parts), default=path.parent)


def may_be_project(folder: Path) -> bool:
    """Whether a directory may be taken for a project's although nothing marks it: not all that a user or a machine has."""
    return folder not in (Path(folder.anchor), Path(os.path.expanduser("~")))


def looked_at(start: Path, explicit: Path | None = None) -> Iterator[tuple[str, str]]:
    """The looks at the file system that `Config.load` may take, as kinds of `ldlm_lint.cache.index.LOOKS` and paths."""
    directory = start if start.is_dir() else start.parent
    for one in (directory, *directory.parents):
        yield "file", (one / FILE_NAME).as_posix()
        yield "exists", (one / ".git").as_posix()
    if explicit is not None:
        yield "file", explicit.as_posix()
    nearest = nearest_file(start)
    for root in {project_root(start), nearest.parent if nearest is not None and explicit is None else project_root(start)}:
        yield from requirement_files(root)


def common_directory(paths: Sequence[Path]) -> Path:
    """The deepest directory that holds all paths (absolute, at least one); its configuration serves them all."""
    directories = [path if path.is_dir() else path.parent for path in paths]
    try:
        return Path(os.path.commonpath(directories))
    except ValueError:
        # Two Windows drives have no directory in common.
        return directories[0]


def nearest_file(path: Path) -> Path | None:
    """The nearest ``pyproject.toml`` upwards from a path; None where there is none."""
    start = path if path.is_dir() else path.parent
    return next((one / FILE_NAME for one in (start, *start.parents) if (one / FILE_NAME).is_file()), None)


def _refuse_stray_link(path: Path) -> None:
    """A linted repository must not have us read, and quote in an error, what lies outside of it; raises ConfigError."""
    if not path.is_symlink():
        return
    around = (path.parent, *path.parent.parents)
    root = next((one for one in around if (one / ".git").exists()), path.parent).resolve()
    if not path.resolve().is_relative_to(root):
        raise ConfigError(path.as_posix(), 0, "", "is a link that leads out of the project; name it with --config to use it")


def parse(table: Table, rules: Sequence[Rule], *, root: str = "", overrides: Overrides | None = None) -> Config:
    """The configuration that a table of settings stands for; raises ConfigError."""
    overrides = overrides or Overrides()
    options = {option.name: option for rule in rules for option in rule.options}
    # First, since a file for a newer version may well hold keys that this one does not know.
    _check_version(table)
    _reject_unknown_keys(table, options)
    level, fail_level = _level(table, "level", Severity.INFO), _level(table, "fail-level", Severity.REFACTOR)
    return Config(
        root=root,
        path=table.path,
        select=_selectors(table, "select", rules) if "select" in table.values else None,
        extend_select=_selectors(table, "extend-select", rules),
        ignore=_selectors(table, "ignore", rules),
        overrides=overrides.layer,
        per_file_ignores=_per_file_ignores(table, rules),
        exclude=_patterns(table),
        level=level if overrides.level is None else overrides.level,
        fail_level=fail_level if overrides.fail_level is None else overrides.fail_level,
        target_torch=_target_torch(table),
        names_torch="target-torch" in table.values,
        baseline=_baseline(table),
        required_version=_typed(table, "required-version", str, ""),
        pedantic=overrides.pedantic or _typed(table, "pedantic", bool, False),
        output_format=_format(table),
        options={name: _typed(table, name, option.kind, option.default) for name, option in options.items()},
    )


def _reject_unknown_keys(table: Table, options: Mapping[str, Option]) -> None:
    known = [*KEYS, *options]
    for key in table.values:
        if key not in known:
            raise table.error(key, f"unknown key{nearest(key, known)}")


def _typed(table: Table, key: str, kind: type, default: object) -> Any:
    """The value of a key, checked against the type it must have; a list becomes a tuple."""
    if key not in table.values:
        return tuple(default) if isinstance(default, list) else default
    value: Any = table.values[key]
    fits = isinstance(value, (int, float) if kind is float else kind) and (kind is bool or not isinstance(value, bool))
    if not fits or (kind is list and not all(isinstance(one, str) for one in value)):
        raise table.error(key, f"must be {_KINDS[kind]}, not {_spelled(value)}")
    return tuple(value) if kind is list else value


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _selectors(table: Table, key: str, rules: Sequence[Rule]) -> tuple[str, ...]:
    names = _typed(table, key, list, [])
    _check_names(table, key, names, rules)
    return names


def _check_names(table: Table, key: str, names: Sequence[str], rules: Sequence[Rule]) -> None:
    for name in names:
        try:
            selection.named(rules, name)
        except SelectorError as error:
            raise table.error(key, str(error), value=name) from error


def _per_file_ignores(table: Table, rules: Sequence[Rule]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    key = "per-file-ignores"
    value = table.values.get(key, {})
    if not isinstance(value, dict):
        raise table.error(key, f"must be a table of pattern = [names], not {_spelled(value)}")
    inner = table.inside(key, value)
    for pattern in value:
        _check_names(inner, pattern, _typed(inner, pattern, list, []), rules)
        if pattern.startswith("!"):
            raise inner.error(pattern, "a negated pattern selects nothing here")
        _check_pattern(inner, pattern, pattern)
    return tuple((pattern, tuple(names)) for pattern, names in value.items())


def _patterns(table: Table) -> tuple[str, ...]:
    patterns = _typed(table, "exclude", list, [])
    for pattern in patterns:
        _check_pattern(table, "exclude", pattern)
    return patterns


@functools.lru_cache
def _spec(pattern: str) -> GitIgnoreSpec:
    # Imported here, so that a run without patterns, such as --version, does not wait for it.
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])


def _check_pattern(table: Table, key: str, pattern: str) -> None:
    try:
        _spec(pattern)
    except ValueError as error:
        raise table.error(key, f'"{pattern}" is not a gitignore pattern', value=pattern) from error


def _level(table: Table, key: str, default: Severity) -> Severity:
    word = _typed(table, key, str, default.label)
    if word not in LEVELS:
        raise table.error(key, f'must be one of {", ".join(LEVELS)}, not "{word}"')
    return LEVELS[word]


def _format(table: Table) -> str:
    word = _typed(table, "output-format", str, "")
    if "output-format" in table.values and word not in formats():
        raise table.error("output-format", f'must be one of {", ".join(formats())}, not "{word}"')
    return word


def _target_torch(table: Table) -> TorchRange:
    value = table.values.get("target-torch")
    if value is None:
        return ANY_TORCH
    match = re.fullmatch(r"(\d+)\.(\d+)", value) if isinstance(value, str) else None
    version = (int(match[1]), int(match[2])) if match else None
    if version is None or version not in TORCH_VERSIONS:
        raise table.error("target-torch", f'must be a string from "2.0" to "2.13", not {_spelled(value)}')
    return TorchRange(version, version)


def _baseline(table: Table) -> str:
    value = _typed(table, "baseline", str, "")
    if "baseline" not in table.values:
        return ""
    path = PurePath(value)
    # The file is written too, and a project that was cloned has no say about files outside of it.
    if not path.parts or path.anchor or ".." in path.parts:
        raise table.error("baseline", f'must be a path inside the project, not "{value}"')
    return path.as_posix()


def _check_version(table: Table) -> None:
    required = _typed(table, "required-version", str, "")
    if not required:
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from ldlm_lint import __version__

    try:
        fits = SpecifierSet(required).contains(__version__, prereleases=True)
    except InvalidSpecifier as error:
        raise table.error("required-version", f'"{required}" is not a version specifier such as ">=0.1"') from error
    if not fits:
        raise table.error("required-version", f"this project needs ldlm-lint {required}, this is {__version__}")
