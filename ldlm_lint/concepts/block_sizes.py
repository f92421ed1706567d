"""How large the stacked blocks of a model are, where the code shows it: how many, and the width of their tokens.

    self.layers = nn.ModuleList([Layer(width) for _ in range(depth)])       # depth and width: defaults and arguments

The activations that a transformer block keeps for its backward pass are about 34 bytes by width and token in 16 bit, its
input alone is 2 (Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models, table 2; the
scores of attention, which fused kernels do not keep, come on top).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.program.arms import Arms
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import BOUND
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.queries import State

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_OF_BLOCK, _OF_INPUT = 34, 2
_FEW = 4
_LITTLE = 64 * 1024
"""Bytes saved for each token, 1 GiB for a batch of 16,384 tokens: below that a larger batch rarely waits for it."""
_STACKS = {"torch.nn.TransformerEncoder": 1, "torch.nn.TransformerDecoder": 1}
_LAYERS = frozenset({"torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer"})
_WIDTHS = {
    **dict.fromkeys(("torch.nn.LayerNorm", "torch.nn.RMSNorm"), "normalized_shape"),
    **dict.fromkeys(_LAYERS, "d_model"),
    "torch.nn.MultiheadAttention": "embed_dim",
}


class Size(NamedTuple):
    """The number of the blocks of a model and their width; 0 for an unknown one."""

    depth: int
    width: int

    @property
    def kept(self) -> int:
        """Bytes that are kept for each token."""
        return _OF_BLOCK * self.width * self.depth

    @property
    def kept_with_checkpoints(self) -> int:
        """Bytes that are kept for each token if each block is checkpointed: all inputs, and one block while it is
        recomputed."""
        return _OF_INPUT * self.width * self.depth + _OF_BLOCK * self.width

    @property
    def is_tiny(self) -> bool:
        """Whether checkpointing saves little."""
        return 0 < self.depth <= _FEW or (self.is_known and self.kept - self.kept_with_checkpoints < _LITTLE)

    @property
    def is_known(self) -> bool:
        """Whether both are known."""
        return self.depth > 0 and self.width > 0

    @property
    def described(self) -> str:
        """What checkpointing saves, for a message; empty if that is unknown."""
        if not self.is_known:
            return ""
        kept, with_checkpoints = _kibibytes(self.kept), _kibibytes(self.kept_with_checkpoints)
        return f" ({self.depth} of width {self.width}: {kept} KiB per token, {with_checkpoints} with checkpointing)"


def _kibibytes(number: int) -> str:
    return f"{round(number / 1024):,}"


class BlockSizes(Concept):
    """The sizes of the models of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._arms = Arms(code.ask)

    def of(self, owner: int) -> Size:
        """The size of the models of a class, where nothing but the code decides it."""
        loops: dict[tuple[int, int], int] = {}
        widths: set[int] = set()
        for stack in self._stacks(owner):
            loops[stack.module, stack.loop] = stack.depth
            widths.update(self._widths(owner, stack))
        depths = loops.values()
        return Size(sum(depths) if all(depths) else 0, max(widths) if widths and all(widths) else 0)

    def has_none(self, owner: int) -> bool:
        """Whether a class builds its blocks only in branches that none of its constructions takes: ``if depth > 1:``, and
        the depth is always 1."""
        module = self.program.module_of(owner)
        guards = [module.table.sites[stack.call & MASK].guard for stack in self._stacks(owner)]
        return bool(guards) and not any(self._arms.may_take(module, guard, ()) for guard in guards)

    def _stacks(self, owner: int) -> Iterator[_Stack]:
        """The calls of a class that build repeated blocks."""
        for call in self._calls_in(owner):
            module = self.program.module_of(call)
            value = self.program.ask(module.base | module.nodes[call & MASK][1])
            names = self.ask.names_of(value)
            for name in sorted(names & _STACKS.keys()):
                # The call itself repeats its argument.
                yield _Stack(module.index, -call, self._number(call, "num_layers", _STACKS[name]), call, ())
            loop = module.table.sites[call & MASK].loop
            blocks = tuple(fields[1] for fields in self.program.atoms.kinds(value, "c") if self.program.is_module(fields[1]))
            if loop >= 0 and (blocks or names & _LAYERS):
                yield _Stack(module.index, loop, self._repeats(module, loop), call, blocks)

    def _calls_in(self, owner: int) -> list[int]:
        """The calls of a class's own methods."""
        module = self.program.module_of(owner)
        methods = (scope for scope in module.scopes if scope.parent == owner & MASK and scope.kind == "def")
        return [module.base | call for scope in methods for call in scope.calls]

    def _repeats(self, module: Module, loop: int) -> int:
        """How often a loop is run: ``range(depth)``; 0 if that is unknown."""
        row = module.plain(module.table.loops[loop].value)
        if row[0] != "call" or module.last_name(row[1]) != "range" or len(row[2]) != 1 or module.table.loops[loop].parent >= 0:
            return 0
        return self._largest((module.base | row[2][0],))

    def _widths(self, owner: int, stack: _Stack) -> Iterator[int]:
        """The widths of the norms and attentions in the classes of blocks, or in the model itself for torch's blocks."""
        for one in stack.blocks or [owner]:
            for call in self._calls_in(one):
                module = self.program.module_of(call)
                names = self.ask.names_of(self.program.ask(module.base | module.nodes[call & MASK][1]))
                yield from (self._number(call, _WIDTHS[name], 0, stack) for name in sorted(names & _WIDTHS.keys()))

    def _number(self, call: int, name: str, position: int, stack: _Stack | None = None) -> int:
        argument = self.ask.argument(call, name, position)
        if argument.state is not State.GIVEN:
            return 0
        return self._largest(tuple(self._given(one, stack) for one in argument.sources))

    def _given(self, key: int, stack: _Stack | None) -> int:
        """The argument of the call that builds a block, where an expression is a parameter of the block's constructor."""
        module = self.program.module_of(key)
        row = module.nodes[module.uncopied(key & MASK)]
        function = module.base | row[1] if row[0] == "param" else None
        if stack is None or function is None or self.program.owner.get(function) not in stack.blocks:
            return key
        given = self.program.argument_node(stack.call, function, BOUND, row[2])
        return key if given is None or self.program.module_of(given).nodes[given & MASK][0] == "star" else given

    def _largest(self, keys: tuple[int, ...]) -> int:
        """The largest number that expressions may be; 0 if they may be anything else, or the user may choose."""
        meaning = self.ask.meaning(*keys)
        numbers = [one for one in meaning.constants if isinstance(one, int) and one is not True and one is not False]
        return max(numbers) if numbers and len(numbers) == len(meaning.value) and meaning.is_complete else 0


class _Stack(NamedTuple):
    """A call that builds a block in a loop of a module: how often, and the classes of the block."""

    module: int
    loop: int
    depth: int
    call: int
    blocks: tuple[int, ...]
