"""Keys of configuration files that no code of the project mentions, by its text.

A key is used if its name is in any Python file of the project, in any role, if a section around it is passed on whole,
or if another value refers to it. The remaining keys are never read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ldlm_lint.configs.document import Document, Entry, Path, Shape
from ldlm_lint.patterns import lazily
from ldlm_lint.project.config_homes import Home
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.key_reads import is_whole
from ldlm_lint.python.skim import without_comments
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.project.questions.base import Context

_WORD = lazily(rb"[A-Za-z_]\w*")
_NAME = lazily(r"[A-Za-z]\w{2,}")
_INTERPOLATION = lazily(rb"\$\{([^{}]*)")
# Frameworks that read their settings by names which the project's own code does not hold.
_FRAMEWORKS = Trait(
    lazily(
        rb"HfArgumentParser|TrlParser|LightningCLI|jsonargparse|TrainingArguments|import fairseq|from fairseq|mmengine|mmcv|detectron2|nemo\b"
        # Attributes by a name that is not a literal: any key may be read.
        rb"|torchtune|ray\.tune|\bcomposer\b"
        rb"|setattr\((?:self|\w*(?:args?|cfg|config|conf|opts?|params|namespace|settings))[ \t]*,[ \t]*(?![\"'])"
        rb"|__dict__(?:\.update|\[)|\bglobals\(\)|\.update\((?:yaml|json|OmegaConf)"
    ),
    (
        *(b"HfArgumentParser", b"TrlParser", b"LightningCLI", b"jsonargparse", b"TrainingArguments", b"fairseq", b"mmengine", b"mmcv"),
        *(b"detectron2", b"nemo", b"torchtune", b"ray.tune", b"composer", b"setattr(", b"__dict__", b"globals()"),
        *(b".update(yaml", b".update(json", b".update(OmegaConf"),
    ),
    code=True,
)
# Of DeepSpeed's own files.
_FRAMEWORK_KEYS = {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer"}
_OWN_KEYS = {"hydra", "defaults", "_target_", "target", "class_path", "params", "init_args", "version", "wandb", "sweep"}
_CLASS_KEYS = ("_target_", "target", "class_path")
_SPREAD = lazily(rb"\*\*[ \t]*([\w.]+)")
_ASSIGNED = lazily(rb"[ \t]*(?:self\.)?(\w+)[ \t]*=[ \t]*[\w.\[\]\"']*$")
_MOST_DEAD = 0.4
_LOGGING = lazily(rb"(?:print|info|debug|log|pformat|str|repr|len|isinstance|hasattr|type|bool)$")


def dead_paths(context: Context, document: Document) -> frozenset[Path]:
    """The paths of a configuration file's keys that are never read; a dead section includes everything in it."""
    known = context.dead_keys
    if document.path not in known:
        known[document.path] = _find(context, document)
    return known[document.path]


def _find(context: Context, document: Document) -> frozenset[Path]:
    # A file that only resembles one read by a program may belong to another tool, which uses the other keys.
    homes = [one for one in context.homes.of(document.path) if one.chosen or _is_of_hydra(context, one, document.path)]
    if document.documents != 1 or not homes or any(one.shared for one in document.entries):
        return frozenset()
    # A tool that reads another program's file does not use all of its keys.
    if not any(_trains(context, one, document) for one in homes):
        return frozenset()
    text = _Text(context, homes, document)
    if text.of_a_framework or any(one.name in _FRAMEWORK_KEYS for one in document.children()):
        return frozenset()
    dead = frozenset(one.path for one in document.entries if one.name and not _is_alive(text, document, one))
    named = sum(bool(one.name) for one in document.entries)
    # A program that names few of a file's keys passes it to one that uses them.
    return dead if len(dead) <= named * _MOST_DEAD else frozenset()


def _trains(context: Context, home: Home, document: Document) -> bool:
    return not context.project.training_files.isdisjoint(context.homes.reach_of(home, document))


def _is_of_hydra(context: Context, home: Home, path: str) -> bool:
    return context.homes.hydra_folder(home, path) is not None


class _Text:
    """Facts in the text of the project about its configurations; each file is searched once per section."""

    def __init__(self, context: Context, homes: list[Home], document: Document) -> None:
        self._project = context.project
        self._words = (context.words, *context.homes.words_of_programs(homes, document))
        self._reach = context.project.universe.joined(*(context.homes.reach_of(one, document) for one in homes))
        self.prefixes = {one.prefix for one in homes}

    def names(self, word: bytes) -> bool:
        """Whether a name is anywhere in the text."""
        return any(word in words for words in self._words)

    @property
    def of_a_framework(self) -> bool:
        """Whether the keys are read by names that the project's own code does not hold."""
        return self._project.any_shows(self._reach, _FRAMEWORKS)

    @property
    def spreads_any(self) -> bool:
        """Whether a configuration is unpacked as a whole."""
        return self._project.any_that(self._reach, "spreads a configuration", lambda file: _spreads_any(self._project.data(file)))

    def takes_whole(self, section: str) -> bool:
        """Whether the code passes a section on, unpacks it or iterates over it, so that its keys may be read by any
        name."""
        return self._project.any_that(
            self._reach, f"takes {section} whole", lambda file: _takes_whole(self._project.data(file), section.encode())
        )


def _spreads_any(data: bytes) -> bool:
    return b"**" in data and any(is_whole(name.rpartition(b".")[2].decode()) for name in _SPREAD.findall(without_comments(data)))


def _takes_whole(text: bytes, section: bytes) -> bool:
    if section not in text:
        return False
    name, data = re.escape(section), without_comments(text)
    spread = rb"\*\*[ \t]*(?:[\w.]*\.)?%s(?![\w.])" % name
    iterated = (
        rb"(?:\.%s|[\"']%s[\"']\])\.(?:items|keys|values)\(|\bin[ \t]+[\w.]*\b%s\b[ \t]*:"
        # A subscript that is not a literal looks up any key.
        rb"|\b%s(?:[\"']\])?\[(?![\"'])|\b%s(?:[\"']\])?\.get\((?![\"'])" % ((name,) * 5)
    )
    used = rb"(?:\.%s|\[[\"']%s[\"']\]|get\([\"']%s[\"'][^()]*\))(?![\w\"'])[ \t]*(?![\w \t.\[=(:]|\.get)" % ((name,) * 3)
    if re.search(spread, data) or re.search(iterated, data):
        return True
    return any(_hands_on(data, match.start()) for match in re.finditer(used, data))


def _hands_on(data: bytes, at: int) -> bool:
    """Whether a use of a whole section passes it to code that may read any key; printing is not reading."""
    line = data[data.rfind(b"\n", 0, at) + 1 : at]
    called = re.search(rb"([\w.]+)\([^()]*$", line)
    if called is not None:
        return _LOGGING.search(called[1]) is None
    assigned = _ASSIGNED.match(line)
    if assigned is None:
        return True
    # The use of the variable: keys read by literals are words of the text anyway.
    name = re.escape(assigned[1])
    return re.search(rb"(?<![\w.\"'])%s(?:[ \t]*[,)]|\[(?![\"'])|\.(?:items|keys|values)\(|\.get\((?![\"']))" % name, data) is not None


def _is_alive(text: _Text, document: Document, entry: Entry) -> bool:
    path = entry.path
    if any(not isinstance(key, str) or not _NAME.fullmatch(key) or key.startswith("_") for key in path) or path[0] in _OWN_KEYS:
        return True
    if entry.name in _OWN_KEYS or text.names(entry.name.encode()):
        return True
    if entry.shape is not Shape.SCALAR and any(_is_alive(text, document, one) for one in document.children(*path)):
        return True
    if any(document.get(*path[:end], key) for end in range(len(path)) for key in _CLASS_KEYS):
        return True
    around = [str(key) for prefix in text.prefixes for key in (*prefix, *path[:-1])]
    return any(text.takes_whole(section) for section in around) or (not around and text.spreads_any)


def words_of(context: Context) -> frozenset[bytes]:
    """Every name in the interpolations of a project's configurations."""
    project = context.project
    texts = (project.data(file) for file in project.of_kind(Kind.YAML, Kind.JSON, Kind.TOML))
    inner = (one for data in texts if b"${" in data for one in _INTERPOLATION.findall(data))
    return frozenset(word for one in inner for word in _WORD.findall(one))
