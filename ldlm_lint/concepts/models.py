"""The models of a codebase that repeat blocks with attention: where they build these stacks, and how large they are.

    self.layers = nn.ModuleList([Layer(width) for _ in range(depth)])       # depth and width: defaults and arguments

The activations that a transformer block keeps for its backward pass are about 34 bytes by width and token in 16 bit, its
input alone is 2 (Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models, table 2; the
scores of attention, which fused kernels do not keep, come on top).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function, Loop
from ldlm_lint.vocabulary.blocks import (
    ATTENTION,
    BESIDE,
    BLOCK,
    CONTAINERS,
    CONVOLUTIONAL,
    DEPTHS,
    GENERATIVE,
    MAKES_BLOCK,
    OUTSIDE_BLOCK,
    PRETRAINED,
    SWITCH_ARGUMENT,
    TRANSFORMER,
)

_OF_BLOCK, _OF_INPUT = 34, 2
_FEW = 4
_SHALLOW = 3
"""Blocks that are not worth recomputing."""
_LITTLE = 64 * 1024
"""Bytes saved for each token, 1 GiB for a batch of 16,384 tokens: below that a larger batch rarely waits for it."""
_ENCODERS = {"torch.nn.TransformerEncoder": 1, "torch.nn.TransformerDecoder": 1, "torch.nn.Transformer": 2}
_LAYERS = frozenset({"torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer"})
_WIDTHS = {
    **dict.fromkeys(("torch.nn.LayerNorm", "torch.nn.RMSNorm"), "normalized_shape"),
    **dict.fromkeys(_LAYERS, "d_model"),
    "torch.nn.MultiheadAttention": "embed_dim",
}
_HOLDS = frozenset({"comp", "dcomp", "star", "seq", "map", "choice", "phi", "copy", "bool"})
_TAKES = CONTAINERS | {"append"}
_COPIES = frozenset({"copy.deepcopy", "copy.copy"})
_OF_GRADIENTS = re.compile(r"^(no_grad|inference_mode|set_grad_enabled)$")
_EVALUATED = lazily(r"(?i)(^|_)(eval|evaluation|evaluator|metrics?)(_|$)")
_SETTINGS = ("Config", "Args", "Arguments")


class Stack(NamedTuple):
    """Blocks that a model repeats: the call that builds one or all of them, their description for a message, their
    classes, and how many there are (0: unknown)."""

    call: Call
    what: str
    blocks: tuple[Class, ...] = ()
    depth: int = 0
    is_pretrained: bool = False
    """Whether it is a model of transformers."""


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


class Models(Concept):
    """Answers for the classes of a codebase that are modules, and for calls that build models of other packages."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._stacks: dict[Class, list[Stack]] = {}
        self._attending: dict[Class, bool] = {}
        self._built: dict[Class, list[Class]] = {}
        self._inside: dict[Class, frozenset[Class]] = {}

    @cached_property
    def with_stacks(self) -> list[Class]:
        """The modules that build stacks, in order of their files."""
        return [one for one in self.code.classes if one.is_module and self.stacks(one)]

    def stacks(self, owner: Class) -> list[Stack]:
        """The stacks that a module builds in its own methods."""
        if owner not in self._stacks:
            calls = (call for function in owner.functions for call in function.calls)
            found = [stack for call in calls if (stack := self._stack(owner, call)) is not None]
            self._stacks[owner] = [one for one in found if not self._runs_side_by_side(owner, one)]
        return self._stacks[owner]

    def size(self, owner: Class) -> Size:
        """The size of the models of a class, where nothing but the code decides it."""
        depths: dict[Call | Loop, int] = {}
        widths: set[int] = set()
        for stack in self.stacks(owner):
            depths[stack.call.loops[0] if stack.call.loops else stack.call] = stack.depth
            widths.update(self._widths(owner, stack))
        return Size(sum(depths.values()) if all(depths.values()) else 0, max(widths) if widths and all(widths) else 0)

    def has_no_blocks(self, owner: Class) -> bool:
        """Whether a module builds its blocks only in branches that none of its constructions takes: ``if depth > 1:``, and
        the depth is always 1."""
        return not any(stack.is_pretrained or stack.call.is_possible for stack in self.stacks(owner))

    @staticmethod
    def container_of(stack: Stack) -> Call:
        """The call that puts the blocks of a stack together: ``nn.ModuleList([…])``; the call that builds one if there is none."""
        return next((one for one in reversed(_containers(stack.call)) if isinstance(one, Call)), stack.call)

    def attends(self, owner: Class) -> bool:
        """Whether a module computes attention, itself or in a class inside of it; what is derived from nothing holds only data."""
        if owner not in self._attending:
            may_be_module = owner.is_module or bool(owner.outside_bases)
            self._attending[owner] = may_be_module and any(base.mentions(ATTENTION) for one in self.inside(owner) for base in one.bases)
        return self._attending[owner]

    def inside(self, owner: Class) -> frozenset[Class]:
        """A module, the modules that it contains, and those inside of these."""
        if owner not in self._inside:
            found, todo = {owner}, [owner]
            while todo:
                new = [one for one in self._parts(todo.pop()) if one not in found]
                found.update(new)
                todo += new
            self._inside[owner] = frozenset(found)
        return self._inside[owner]

    def _parts(self, owner: Class) -> list[Class]:
        """The modules that a class builds or gets, and those of its bases."""
        return list(dict.fromkeys(part for one in owner.bases for part in self._own_parts(one)))

    def _own_parts(self, owner: Class) -> list[Class]:
        if owner not in self._built:
            calls = (call for function in owner.functions for call in function.calls)
            found = dict.fromkeys(one for call in calls for one in (*call.callee.as_classes, *call.classes_of))
            self._built[owner] = [one for one in found if one.is_module]
        return self._built[owner]

    def _stack(self, owner: Class, call: Call) -> Stack | None:
        if not call.callee.outside_names:
            return self._repeated(owner, call) or self._cloned(owner, call)
        return self._whole(call) or self._repeated(owner, call) or self._cloned(owner, call) or self._pretrained(owner, call) or self.outside(call)

    def _whole(self, call: Call) -> Stack | None:
        """``nn.TransformerEncoder(layer, depth)``: the call itself repeats its argument."""
        name = next((one for one in sorted(call.callee.outside_names) if one in _ENCODERS), "")
        if not name:
            return None
        is_both = name.endswith("Transformer")
        depth = self._number(call, "num_encoder_layers" if is_both else "num_layers", _ENCODERS[name])
        return None if 0 < depth <= _SHALLOW else Stack(call, f"every layer of its `{name.rpartition('.')[2]}`", (), 0 if is_both else depth)

    def _repeated(self, owner: Class, call: Call) -> Stack | None:
        """A call in a loop that builds one block, or copies one."""
        loops = call.loops
        if not loops or self.is_short(loops[0]):
            return None
        depth = self._repeats(loops[0])
        made = call.positional[0].unnamed if call.callee.outside_names & _COPIES and call.positional else call
        if not isinstance(made, Call):
            return None
        blocks = tuple(one for one in made.classes_of if self.attends(one) and one is not owner)
        around = next((one for one in _containers(call) if isinstance(one, Call) and one.called_name in CONTAINERS and one.loops), None)
        if around is not None:
            return Stack(call, f"every layer of `{owner.name}`", blocks, depth) if blocks and self._attends_in_parts(around) else None
        if blocks and any(CONVOLUTIONAL.search(one.called_name) for one in loops[0].calls):
            # The stages of a convolutional network.
            return None
        if blocks:
            return Stack(call, f"every `{_named_in(made, blocks)}`", blocks, depth)
        names = made.callee.outside_names
        if names & _LAYERS or any(one.startswith("torch.nn.Transformer") for one in names):
            return Stack(call, f"every `{made.called_name}`", (), depth)
        if made.called_name in CONTAINERS:
            return Stack(call, f"every layer of `{owner.name}`", (), depth) if self._attends_in_parts(made) else None
        return Stack(call, f"every `{made.called_name}`", (), depth) if self._is_block_by_name(owner, made) else None

    def _attends_in_parts(self, container: Call) -> bool:
        """Whether a block that is written out as a list holds attention, and no stage of a convolutional network."""
        listed = [part for one in container.positional for part in (one.operands if one.kind == "seq" else [one])]
        built = [part for part in listed if isinstance(part, Call)]
        if any(CONVOLUTIONAL.search(one.called_name) for one in built):
            return False
        return any(ATTENTION.search(one.called_name) or any(map(self.attends, one.classes_of)) for one in built)

    def _is_block_by_name(self, owner: Class, made: Call) -> bool:
        """Whether a class that nothing shows, or one of another package, is called like a block with attention."""
        name, names = made.called_name, made.callee.outside_names
        if made.targets or made.callee.may_be().classes:
            return False
        if names:
            known = all(one.startswith("torch.") for one in names)
            return not known and OUTSIDE_BLOCK.search(name) is not None and (name[:1].isupper() or MAKES_BLOCK.search(name) is not None)
        is_image = any(call.called_name == "BatchNorm2d" for function in owner.functions for call in function.calls)
        return BLOCK.search(name) is not None and TRANSFORMER.search(owner.name) is not None and not is_image

    def _cloned(self, owner: Class, call: Call) -> Stack | None:
        """``clones(EncoderLayer(width), depth)``: a function of the project copies its argument."""
        for target in call.targets:
            for copied in _copied(target):
                given = call.given_for(copied)
                blocks = tuple(one for one in given.classes_of if self.attends(one)) if given is not None else ()
                if blocks and not any(0 < self._largest(one) <= _SHALLOW for one in call.positional):
                    return Stack(call, f"the cloned layers of {owner.name}", blocks)
        return None

    def _pretrained(self, owner: Class, call: Call) -> Stack | None:
        """A model of transformers that a class loads, unless it freezes it, runs it without gradients, or evaluates it."""
        name = next((one for one in sorted(call.callee.outside_names) if PRETRAINED.search(one)), "")
        if not name or _has_switch(call) or owner.mentions(_OF_GRADIENTS) or self._loads_for_evaluation(call):
            return None
        switches = (one for function in owner.functions for one in self.code[Untrained].switches(function))
        if any(one.is_off and not any(guard.is_test for guard in one.guards or ()) for one in switches):
            return None
        return Stack(call, f"every layer of the pretrained `{name.split('.')[-2]}`", is_pretrained=True)

    def built_outside(self, call: Call) -> Stack | None:
        """What a call outside of classes builds: a whole transformer, or a generative model of transformers that learns."""
        return self._whole(call) or self.outside(call) or self._learning(call)

    def _learning(self, call: Call) -> Stack | None:
        """A pretrained model of which code of the same file takes the parameters, and freezes none."""
        name = next((one for one in sorted(call.callee.outside_names) if GENERATIVE.search(one)), "")
        if not name or not call.names or any(map(BESIDE.search, call.names)):
            return None
        taken = [one for one in self.code.calls_named("parameters", "named_parameters", "requires_grad_") if self._is_of(one, call)]
        if not taken or any(one.called_name == "requires_grad_" for one in taken):
            return None
        return Stack(call, f"every layer of the pretrained `{name.split('.')[-2]}`", is_pretrained=True)

    @staticmethod
    def _is_of(method: Call, made: Call) -> bool:
        """Whether a method is called on what a call of the same file may have made."""
        return method.module is made.module and method.receiver is not None and not method.receiver.value.isdisjoint(made.value)

    def calls_of_blocks(self, owner: Class) -> list[Call]:
        """The calls of single blocks in a module's own methods."""
        blocks = {block for stack in self.stacks(owner) for block in stack.blocks}
        # A ``ModuleDict`` gives its parts by names: ``for block in self.transformer.h: x = block(x)``.
        held = {name for stack in self.stacks(owner) for one in _containers(stack.call) for name in _keywords_of(one)}
        calls = [call for function in owner.functions for call in function.calls if call.loops]
        return [call for call in calls if not blocks.isdisjoint(call.callee.classes_of) or _is_element_of(call, held)]

    @staticmethod
    def _loads_for_evaluation(call: Call) -> bool:
        """``from_pretrained(config.eval.checkpoint)``."""
        given = call.argument("pretrained_model_name_or_path", 0).values
        return any(_EVALUATED.search(part) for one in given for part in one.text.split("."))

    def outside(self, call: Call) -> Stack | None:
        """A transformer of another package, by its name and its depth; it has its switch where a keyword says so."""
        name = next(iter(sorted(call.callee.outside_names)), "")
        last = name.rpartition(".")[2]
        if len(call.callee.outside_names) != 1 or name.startswith(("torch.", "transformers.")) or not last[:1].isupper() or not TRANSFORMER.search(name):
            return None
        depth = next((given for key, given in call.keywords if key in DEPTHS), None)
        if depth is None or last.endswith(_SETTINGS) or _has_switch(call) or 0 < self._largest(depth) <= _SHALLOW:
            return None
        return Stack(call, f"every block of the `{last}` from `{name.partition('.')[0]}`")

    def _runs_side_by_side(self, owner: Class, stack: Stack) -> bool:
        """Whether a class calls the blocks of a stack only in loops in which none of them gets the output of another.

        ``torch.cat([head(x) for head in self.heads])`` is not a stack: the heads are parts of one layer.
        """
        held = {name for one in _containers(stack.call) for _, name in one.attributes}
        calls = [
            call
            for function in owner.functions
            for call in function.calls
            if not set(call.callee.classes_of).isdisjoint(stack.blocks)
            or (call.callee.kind == "item" and call.callee.base is not None and call.callee.base.name in held)
        ]
        return bool(calls) and all(call.loops and not _gets_own_result(call) for call in calls)

    def is_short(self, loop: Loop) -> bool:
        """Whether a loop is run a few times only: so few blocks are not worth recomputing."""
        return bool(_elements(loop)) or 0 < self._repeats(loop) <= _SHALLOW

    def _repeats(self, loop: Loop) -> int:
        """How often a loop is run: ``range(depth)``; 0 if that is unknown."""
        made = loop.value.plain
        if not isinstance(made, Call) or made.called_name != "range" or len(made.positional) != 1 or len(loop.around) > 1:
            return 0
        return self._largest(made.positional[0])

    def _widths(self, owner: Class, stack: Stack) -> Iterator[int]:
        """The widths of the norms and attentions in the classes of blocks, or in the model itself for torch's blocks."""
        for one in stack.blocks or (owner,):
            for call in (call for function in one.functions for call in function.calls):
                yield from (self._number(call, _WIDTHS[name], 0, stack) for name in sorted(call.callee.outside_names & _WIDTHS.keys()))

    def _number(self, call: Call, name: str, position: int, stack: Stack | None = None) -> int:
        given = call.argument(name, position)
        return self._largest(*(self._passed(one, stack) for one in given.values)) if given.is_given else 0

    @staticmethod
    def _passed(expr: Expr, stack: Stack | None) -> Expr:
        """The argument of the call that builds a block, where an expression is a parameter of the block's constructor."""
        parameter = expr.unnamed
        if stack is None or parameter.kind != "param" or parameter.function.owner not in stack.blocks:
            return expr
        given = stack.call.given_for(parameter)
        return expr if given is None or given.kind == "star" else given

    @staticmethod
    def _largest(*exprs: Expr) -> int:
        """The largest number that expressions may be; 0 if they may be anything else, or the user may choose."""
        found: list[int] = []
        for meaning in (one.may_be() for one in exprs):
            numbers = [one for one in meaning.constants if isinstance(one, int) and not isinstance(one, bool)]
            if not meaning.is_complete or len(numbers) != len(meaning.value):
                return 0
            found += numbers
        return max(found, default=0)


def _keywords_of(expr: Expr) -> Iterator[str]:
    """The keywords that calls, such as ``dict(…)``, take it by."""
    calls = (user for user in expr.users if isinstance(user, Call))
    return (name for call in calls for name, given in call.keywords if name and given == expr)


def _is_element_of(call: Call, held: Collection[str]) -> bool:
    """Whether what is called is an element of a container that nothing shows but its name."""
    callee, loop = call.callee.unnamed, call.loops[0]
    return not callee.classes_of and callee.kind == "elem" and callee.base == loop.value and loop.value.kind == "attr" and loop.value.name in held


def _elements(loop: Loop) -> list[Expr]:
    """The elements of a short literal that a loop iterates over: too few blocks to be worth recomputing."""
    listed = loop.value.plain
    return listed.operands if listed.kind == "seq" and len(listed.operands) <= _SHALLOW else []


def _named_in(made: Call, blocks: Iterable[Class]) -> str:
    """The name of the block's class as it is called, or the first of those that it may be."""
    names = [one.name for one in blocks]
    return made.called_name if made.called_name in names else names[0]


def _copied(function: Function) -> Iterator[Expr]:
    """The parameters of which a function makes copies in a loop."""
    for call in function.calls:
        if call.loops and call.positional and call.callee.outside_names & _COPIES and call.positional[0].unnamed.kind == "param":
            yield call.positional[0].unnamed


def _has_switch(call: Call) -> bool:
    """Whether a keyword of a call says something about recomputation."""
    return any(SWITCH_ARGUMENT.search(key) for key, _ in call.keywords)


def _containers(block: Expr) -> list[Expr]:
    """What a block is put into: lists, mappings, and the containers of torch that these are given to, innermost first."""
    found = [block]
    for one in found:
        held = (user for user in one.users if user.kind in _HOLDS or (isinstance(user, Call) and user.called_name in _TAKES))
        found += [user for user in held if user not in found]
    return found[1:]


def _gets_own_result(call: Call) -> bool:
    """Whether an argument of a call in a loop may be made of what it gave in an earlier pass."""
    todo: list[Expr] = [one for one in call.arguments]
    seen: set[Expr] = set()
    while todo:
        at = todo.pop()
        if at == call:
            return True
        if at not in seen:
            seen.add(at)
            todo += at.operands
    return False


__all__ = ["Models", "Size", "Stack"]
