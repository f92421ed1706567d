"""The items of a Hydra defaults list, and the file and package of each one.

Source: https://hydra.cc/docs/1.3/advanced/defaults_list/ and https://hydra.cc/docs/1.3/advanced/overriding_packages/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.configs.document import Document, Entry, Shape
from ldlm_lint.patterns import lazily

SELF = "_self_"
GLOBAL = "_global_"
UNKNOWN = "???"
"""What stands for an option that is unknown; Hydra writes it for one that the command line must give."""
_KEY = lazily(r"(?:(?P<keywords>(?:(?:optional|override)\s+)+))?(?P<group>[^@\s]+)(?:@(?P<package>\S*))?")
_ANY_HEADER = lazily(r"\s*#\s*@")
_HEADER = lazily(r"\s*#\s*@\s*package\s+(\S+)\s*")


class Choice(NamedTuple):
    """One config that a defaults list brings in.

    ``group`` and ``package`` are as written, ``group`` empty for a config that is named by its path; ``name`` is None
    for no config at all (``group: null``). ``base`` is the group of the file whose list this is, ``above`` its package.
    ``header`` is the ``# @package`` of the config's own file.
    """

    group: str
    name: str | None
    package: str | None = None
    optional: bool = False
    override: bool = False
    base: str = ""
    above: str = ""
    header: str | None = None

    @property
    def is_self(self) -> bool:
        """Whether it means the file itself."""
        return not self.group and self.name == SELF

    @property
    def path(self) -> str:
        """The config's path below the root of all configs, without its suffix."""
        name = (self.name or "").removesuffix(".yaml").removesuffix(".yml")
        if self.group:
            return f"{self.group_path}/{name}"
        return name.lstrip("/") if name.startswith("/") else _joined(self.base, name)

    @property
    def group_path(self) -> str:
        """The folder that the config is in, for a group the group's."""
        if self.group:
            return self.group[1:] if self.group.startswith("/") else _joined(self.base, self.group)
        return self.path.rpartition("/")[0]

    @property
    def key(self) -> str:
        """The key of an override: the group, and the package if it is not the group's own."""
        default, final = self.group_path.replace("/", "."), self._final(self.package)
        return self.group_path if default == final else f"{self.group_path}@{final or GLOBAL}"

    @property
    def final_package(self) -> str:
        """The dotted package for the config's content."""
        return self._final(self.header if self.package is None else self.package)

    def _final(self, package: str | None) -> str:
        own = self.group.lstrip("/") if self.group else (self.name or "").lstrip("/").rpartition("/")[0]
        package = own.replace("/", ".") if package is None else "" if package == "_here_" else package
        if "_group_" in package:
            package = f"{GLOBAL}.{package}".replace("_group_", self.group_path.replace("/", "."))
        package = package.replace("_name_", (self.name or "").rpartition("/")[2])
        full = f"{self.above}.{package}".strip(".") if self.above and package else self.above or package
        return full.rpartition(GLOBAL)[2].lstrip(".") if GLOBAL in full else full

    def below(self, parent: Choice) -> Choice:
        """The choice as an item of the list of ``parent``'s file."""
        return self._replace(base=parent.group_path, above=parent.final_package)


def _joined(base: str, name: str) -> str:
    return f"{base}/{name}" if base else name


def listed(document: Document) -> list[Choice | list[Choice]]:
    """The items of a file's defaults list, several options of one group together; ``_self_`` is added as in Hydra."""
    items = [item for entry in document.children("defaults") for item in _item(document, entry)]
    if not items:
        return []
    if not any(isinstance(one, Choice) and one.is_self for one in items):
        # Hydra 1.0 had the file before its list, every version since has it after.
        items.append(Choice("", SELF))
    return items


def _item(document: Document, entry: Entry) -> Iterator[Choice | list[Choice]]:
    if entry.shape is Shape.SCALAR:
        if isinstance(entry.value, str):
            name, at, package = entry.value.removeprefix("optional ").partition("@")
            yield Choice("", name.strip(), package if at else None, optional=entry.value.startswith("optional "))
        return
    for option in document.children(*entry.path):
        match = _KEY.fullmatch(option.name)
        if match is None or (option.name == "optional" and isinstance(option.value, bool)):
            continue
        keywords = match["keywords"] or ""
        choice = Choice(match["group"], None, match["package"], "optional" in keywords, "override" in keywords)
        if option.shape is Shape.SEQUENCE:
            yield [choice._replace(name=one.text) for one in document.children(*option.path)]
        elif option.shape is Shape.SCALAR:
            yield choice._replace(name=None if option.value is None else option.text)


def header_of(text: str) -> str | None:
    """The package in the header comments of a file, always relative to the root.

    Hydra stops at the first line that is not such a header, another comment included.
    """
    for line in text.splitlines():
        if match := _HEADER.fullmatch(line):
            package = match[1]
            return None if package == "_group_" else package if package.startswith(GLOBAL) else f"{GLOBAL}.{package}"
        if line.strip() and not _ANY_HEADER.match(line):
            return None
    return None
