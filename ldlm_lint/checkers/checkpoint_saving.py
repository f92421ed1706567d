"""Finds which ranks write a checkpoint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.checkpoint_paths import Save, save_of, saves_state, words_of
from ldlm_lint.checkers.checkpoint_saving_fixes import guard_fix
from ldlm_lint.model import Claim
from ldlm_lint.patterns import lazily
from ldlm_lint.python.checkpoint_words import SMALL, disk_of
from ldlm_lint.python.guards import RANK, guards_of, other_ranks
from ldlm_lint.python.local_ranks import local_test
from ldlm_lint.python.names import qualified
from ldlm_lint.python.places import function_of, position_of
from ldlm_lint.rules.checkpoint_saving import (
    CHECKPOINT_SAVED_BY_EVERY_RANK,
    RULES,
)
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_EXPORTS = lazily(r"^_*(?:freeze|export|convert)(?:_(?:model|checkpoint|ckpt|weights|graph|onnx|jit))?$")
_TORCH = lazily(rb"^[ \t]*(?:import|from)[ \t]+torch\b", re.M)
_SHARDS = (b"FullyShardedDataParallelPlugin(", b"fully_shard(", b"parallelize_module(", b"tp_plan")
_NODE_WORD = lazily(r"te?mp|node|host|scratch|local", re.I)


class CheckpointSavingChecker(LdlmChecker):
    """How checkpoints are written."""

    rules = RULES
    finds: ClassVar = {
        "visit_call": (CHECKPOINT_SAVED_BY_EVERY_RANK,),
        "leave_module": (CHECKPOINT_SAVED_BY_EVERY_RANK,),
    }

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._blocks: dict[int, list[Save]] = {}
        self._of_nodes: dict[int, tuple[list[Save], nodes.NodeNG]] = {}

    def leave_module(self, _node: nodes.Module) -> None:
        """Report the saves of one block together: one test of the rank fixes them all."""
        for saves in self._blocks.values():
            self._report_every_rank(saves)
        for saves, test in self._of_nodes.values():
            self._report_every_node(saves, test)

    def visit_call(self, node: nodes.Call) -> None:
        """Look at saves."""
        save = save_of(node) or self._save_pretrained(node)
        if save is None:
            return
        self._note_writers(node, save)

    def _note_writers(self, node: nodes.Call, save: Save) -> None:
        """Record a save that every rank reaches, or the first rank of each node."""
        test = local_test(node)
        if (test is None and RANK in guards_of(node)) or not saves_state(save) or words_of(save.path).belongs_to_a_process or _exports(node):
            return
        if test is None:
            self._blocks.setdefault(_block_of(node), []).append(save)
        else:
            self._of_nodes.setdefault(_block_of(node), ([], test))[0].append(save)

    def _save_pretrained(self, node: nodes.Call) -> Save | None:
        """A Hugging Face model that writes itself; TensorFlow models, which do so too, are ignored.

        Sharded state is gathered for it by all ranks together.
        """
        found = _save_pretrained(node)
        if found is None:
            return None
        other = b"import tensorflow" in self.source.data and not _TORCH.search(self.source.data)
        return None if other or any(word in self.source.data for word in _SHARDS) else found

    def _report_every_rank(self, saves: list[Save]) -> None:
        first = saves[0]
        test = other_ranks(first.node)
        others = {"who": "every rank but one", "why": f"{quoted(test.as_string())} excludes only one rank"} if test is not None else {}
        self.report(
            CHECKPOINT_SAVED_BY_EVERY_RANK,
            first.node,
            args=others or {"who": "every rank", "why": "nothing checks the rank"},
            related=[(save.node, "this is saved together with it") for save in saves[1:]],
            claims=(Claim("every-rank-saves", _writer(first)),),
            fix=(lambda source: guard_fix(source, [save.node for save in saves])) if test is None else None,
        )

    def _report_every_node(self, saves: list[Save], test: nodes.NodeNG) -> None:
        first = saves[0]
        self.report(
            CHECKPOINT_SAVED_BY_EVERY_RANK,
            first.node,
            args={"who": "one rank of each node", "why": f"only the local rank is checked ({quoted(test.as_string())})"},
            related=[(save.node, "this is saved together with it") for save in saves[1:]],
            claims=(Claim("every-node-saves", _writer(first)),),
        )


def _writer(save: Save) -> str:
    """The claim about a save: its place, the parts of its path, and whether the disk is shared."""
    words = words_of(save.path)
    text = " ".join(words.texts)
    disk = "node" if any(map(_NODE_WORD.search, words.all)) else disk_of(text)
    return "|".join((position_of(save.node), " ".join(sorted(words.names)), " ".join(sorted(words.parameters)), disk))


def _exports(node: nodes.Call) -> bool:
    """Whether a function is called after another program than the training: ``freeze``, ``export_model``, ``convert_checkpoint``."""
    return _EXPORTS.search(getattr(function_of(node), "name", "")) is not None


def _save_pretrained(node: nodes.Call) -> Save | None:
    """A Hugging Face model that writes itself, and gets neither the process nor a function that knows it."""
    if not (isinstance(node.func, nodes.Attribute) and node.func.attrname == "save_pretrained" and node.args):
        return None
    told = {keyword.arg for keyword in node.keywords} & {"is_main_process", "save_function", None}
    owner = node.func.expr
    if told or SMALL.search(owner.as_string()) or qualified(owner) == {"self"}:
        return None
    return Save(node, owner, node.args[0])


def _block_of(node: nodes.Call) -> int:
    """The statement whose blocks a save is in: the branches of one ``if`` count as one."""
    return id(node.statement().parent)
