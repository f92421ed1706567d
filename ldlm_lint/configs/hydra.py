"""Hydra's composition: from a primary config and its defaults lists to the value that counts at a key.

Source: https://hydra.cc/docs/1.3/advanced/defaults_list/ and https://hydra.cc/docs/1.3/advanced/overriding_packages/
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ldlm_lint.configs.document import Document, Entry, Key, Path
from ldlm_lint.configs.interpolation import Resolved
from ldlm_lint.project.index import Project


@dataclass(frozen=True, slots=True)
class Override:
    """An argument of the command line: ``model=large``, ``+experiment=x``, ``~logger``, ``data.num_workers=8``.

    ``key`` is what stands before ``=`` as it is written, ``value`` what stands behind it, None where it is unknown
    (``model=$MODEL``). A deletion has an empty value.
    """

    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a composition and the package (path of keys) that its content goes to.

    ``document`` is None for a part that cannot be read, such as a missing file or an option that only the command line
    decides: what it sets is unknown.
    """

    path: str
    package: Path
    document: Document | None


@dataclass(frozen=True, slots=True)
class Held:
    """The entry that counts at a key, the file it stands in, and the entries of other files that it takes the place of.

    ``entry.path`` counts from the root of its file, not of the composition.
    """

    entry: Entry
    path: str
    shadowed: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Composition:
    """The parts of a configuration in order of precedence: a later one wins."""

    parts: tuple[Part, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every part is known."""
        return all(part.document is not None for part in self.parts)

    def value_at(self, *keys: Key) -> Held | None:
        """The entry that counts at a path of keys; None where there is none, or a part that is unknown may set it."""
        return None

    def absent(self, *keys: Key) -> bool:
        """Whether it is certain that no part sets a key."""
        return False

    def resolved(self, *keys: Key) -> Resolved | None:
        """The scalar that a path of keys comes to, interpolations followed; None where it cannot be told."""
        return None


def compose(project: Project, folder: str, name: str, overrides: Iterable[Override] = ()) -> Composition:
    """The composition that ``@hydra.main(config_path=folder, config_name=name)`` makes.

    ``folder`` is absolute, ``name`` with or without ``.yaml``. Of ``overrides`` those that choose an option of a config
    group (``model=large``, ``+experiment=x``, ``~logger``) count; values of keys are the caller's, they win over all
    files. A missing primary config gives a composition with one unknown part.
    """
    return Composition()


def single(document: Document) -> Composition:
    """The composition of one file that is read alone (``OmegaConf.load``, ``yaml.safe_load``): no defaults list counts."""
    return Composition((Part(document.path, (), document),))
