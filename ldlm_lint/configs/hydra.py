"""Hydra's composition: from a primary config and its defaults lists to the effective value at a key.

Follows Hydra 1.1 and later, whose order is depth first, a file's own content at ``_self_``. The items of a list are
processed from the last to the first, as in Hydra, so an ``override`` in an experiment comes before the choice that it
overrides. Source: https://hydra.cc/docs/1.3/advanced/defaults_list/
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.configs.composition import Composition, Held, Part
from ldlm_lint.configs.document import Document, Path
from ldlm_lint.configs.hydra_defaults import UNKNOWN, Choice, header_of, listed
from ldlm_lint.patterns import lazily

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project

__all__ = ["Composition", "Held", "Override", "Part", "compose", "single"]

_SUFFIXES = (".yaml", ".yml")
_MAX_DEPTH = 20
_MAX_PARTS = 300
_REFERENCE = lazily(r"\$\{([\w./@-]+)\}")


class Override(NamedTuple):
    """An argument of the command line: ``model=large``, ``+experiment=x``, ``~logger``, ``data.num_workers=8``.

    ``key`` is the text before ``=``, ``value`` the text after it, None if unknown (``model=$MODEL``). A deletion has an
    empty value.
    """

    key: str
    value: str | None


def compose(project: Project, folder: str, name: str, overrides: Iterable[Override] = ()) -> Composition:
    """The composition of ``@hydra.main(config_path=folder, config_name=name)``.

    ``folder`` is absolute, ``name`` with or without ``.yaml``. Only ``overrides`` that choose an option of a config
    group (``model=large``, ``+experiment=x``, ``~logger``) count; the caller handles values of keys, which win over all
    files. A missing primary config gives a composition with one unknown part.
    """
    composer = _Composer(project, posixpath.normpath(folder))
    appended = composer.take(overrides)
    return Composition(tuple(composer.of(Choice("", name), appended, depth=0)))


def single(document: Document) -> Composition:
    """The composition of one file read alone (``OmegaConf.load``, ``yaml.safe_load``): no defaults list counts."""
    return Composition((Part(document.path, (), document),))


@dataclass
class _Composer:
    """The state of a composition."""

    project: Project
    folder: str
    chosen: dict[str, str | list[str] | None] = field(default_factory=dict)
    deleted: dict[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    size: int = 0

    def take(self, overrides: Iterable[Override]) -> list[Choice | list[Choice]]:
        """Note the overrides that choose among configs; returns those that add to the primary's list."""
        appended: list[Choice | list[Choice]] = []
        for one in overrides:
            key = one.key.lstrip("+~")
            group, at, package = key.partition("@")
            if not self._is_group(group):
                continue
            value: str | list[str] | None = UNKNOWN if one.value is None else _option(one.value)
            if one.key.startswith("~"):
                self.deleted[key] = one.value or ""
            elif one.key.startswith("+"):
                base = Choice(group, None, package if at else None)
                named = value if isinstance(value, list) else [value]
                choices = [base._replace(name=each) for each in named]
                appended.append(choices if isinstance(value, list) else choices[0])
            else:
                self.chosen[key] = value
        return appended

    def of(self, choice: Choice, appended: list[Choice | list[Choice]], depth: int) -> list[Part]:
        """The parts that a choice brings in, in order of precedence."""
        if choice.name is None:
            return []
        self.size += 1
        found = None if UNKNOWN in choice.name or "${" in choice.name else self._find(choice.path)
        if found is None or depth > _MAX_DEPTH or self.size > _MAX_PARTS:
            missing = found is None and choice.optional and UNKNOWN not in choice.name
            return [] if missing else [Part("", _keys(choice.final_package), None)]
        path, document = found
        source = self.project.source(path)
        choice = choice._replace(header=header_of(source.text) if source is not None else None)
        items = listed(document)
        if appended:
            items = [*(items or [Choice("", "_self_")]), *appended]
        own = Part(path, _keys(choice.final_package), document)
        return self._children(choice, items, own, depth) if items else [own]

    def _children(self, choice: Choice, items: list[Choice | list[Choice]], own: Part, depth: int) -> list[Part]:
        placed = [[one.below(choice) for one in item] if isinstance(item, list) else item.below(choice) for item in items]
        for one in placed:
            if isinstance(one, Choice) and one.override:
                self.chosen.setdefault(one.key, one.name)
        parts: list[list[Part]] = [[] for _ in placed]
        waiting: list[int] = []
        for index in reversed(range(len(placed))):
            item = placed[index]
            if isinstance(item, Choice) and item.is_self:
                parts[index] = [own]
            elif isinstance(item, Choice) and _REFERENCE.search(item.name or "") and item.key not in self.chosen:
                waiting.append(index)
            else:
                parts[index] = self._item(item, depth)
        for index in waiting:
            # Hydra resolves these after all other choices.
            item = placed[index]
            if isinstance(item, Choice):
                parts[index] = self._item(item._replace(name=_REFERENCE.sub(self._known, item.name or "")), depth)
        return [part for group in parts for part in group]

    def _item(self, item: Choice | list[Choice], depth: int) -> list[Part]:
        options = item if isinstance(item, list) else [item]
        if not options or options[0].override:
            return []
        first = options[0]
        if first.group and first.key in self.chosen:
            value = self.chosen[first.key]
            options = [first._replace(name=one) for one in (value if isinstance(value, list) else [value])]
        if first.group and first.key in self.deleted and self.deleted[first.key] in ("", options[0].name):
            return []
        if len(options) == 1 and options[0].group and options[0].name is not None:
            self.known.setdefault(first.key, options[0].name)
        # The last option is taken first, as every item is.
        taken = [self.of(one, [], depth + 1) for one in reversed(options)]
        return [part for parts in reversed(taken) for part in parts]

    def _known(self, match: re.Match[str]) -> str:
        return self.known.get(match[1], match.group())

    def _is_group(self, group: str) -> bool:
        prefix = posixpath.join(self.folder, group.strip("/")) + "/"
        return bool(group) and any(path.startswith(prefix) and path.endswith(_SUFFIXES) for path in self.project.others)

    def _find(self, path: str) -> tuple[str, Document] | None:
        """A config of the project by its path below the folder; None if it is missing or not YAML."""
        for suffix in _SUFFIXES:
            full = posixpath.normpath(posixpath.join(self.folder, path) + suffix)
            document = self.project.document(full)
            if document is not None:
                return full, document
        return None


def _option(text: str) -> str | list[str] | None:
    if text in ("null", "None", "~", ""):
        return None
    if text.startswith("[") and text.endswith("]"):
        return [one.strip().strip("\"'") for one in text[1:-1].split(",") if one.strip()]
    return text.strip("\"'")


def _keys(package: str) -> Path:
    return tuple(package.split(".")) if package else ()
