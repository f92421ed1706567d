"""Values of parameters: from known callers, from frameworks, and from their use if no caller is known."""

from __future__ import annotations

from ldlm_lint.code.table import Node, Scope
from ldlm_lint.program.atoms import FIRST, HOMES, MASK, NOTHING, OF_PYTHON, WHERE_TENSOR, Value
from ldlm_lint.program.calls import LATER, UNKNOWN
from ldlm_lint.program.globals import Globals
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.tensors import FRAMEWORKS, MODULE_METHODS, MODULE_USES

_PLAIN_TYPES = frozenset({"int", "float", "str", "bool"})
_CLICK = frozenset({"click", "rich_click", "asyncclick"})
_TAKE_MODULES = ("compile", "DataParallel", "DistributedDataParallel", "FullyShardedDataParallel")
"""What is given to one of these is a module."""


class Parameters(Globals):
    """The parameters of functions."""

    _taken: dict[int, set[int]]
    _uses: dict[int, dict[Node, frozenset[str]]]
    hooks: dict[int, dict[str, Value]]
    """What a framework gives the functions that it calls, by parameter; ``*`` for all others."""

    def _parameter(self, module: Module, row: Node, key: int) -> Value:
        function = module.base | row[1]
        scope, name = module.scopes[row[1]], row[2]
        owner = self.owner.get(function)
        if owner is not None and function in self.bound and scope.params[0] == name:
            return frozenset([self.atoms.atom("self", owner, *(("cls",) if self.is_classmethod(function) else ()))])
        if self.is_symbolic:
            return frozenset([self.atoms.symbol("p", key)])
        if owner is not None and scope.name == "forward" and self.is_module(owner):
            return self._parameter_of_forward(module, function, name, key)
        default = scope.defaults.get(name)
        value = self.get(module.base | default) if default is not None else NOTHING
        value |= self._taken_from_callers(function, name, key) | self.option_of(module, scope, name)
        if not self.is_used_as_module(module, scope.parameters[name]):
            value |= self.get(("hook", function, name))
        return self._annotated(value, module, scope.annotations.get(name, ""))

    def option_of(self, module: Module, scope: Scope, name: str) -> Value:
        """The arguments that click passes from the command line: ``@click.option("--workers", default=0)``."""
        for number in scope.decorators:
            row = module.nodes[number]
            if row[0] != "call" or module.last_name(row[1]) != "option" or name not in _destinations(module, row):
                continue
            made = self.atoms.kinds(self.get(module.base | row[1]), "x")
            if any(fields[1].partition(".")[0] in _CLICK for fields in made):
                return frozenset([self.atoms.atom("flag", module.base | number)])
        return NOTHING

    def _parameter_of_forward(self, module: Module, function: int, name: str, key: int) -> Value:
        """The arguments of a module's known callers; a tensor from an unknown caller is on the device."""
        scope = module.scopes[function & MASK]
        default = scope.defaults.get(name)
        plain = default is not None and module.nodes[default][0] == "const" and module.nodes[default][1] is not None
        if not plain and scope.annotations.get(name) not in _PLAIN_TYPES:
            return WHERE_TENSOR | self._taken_from_callers(function, name, key) | self.get(("hook", function, name))
        value = self.get(module.base | default) if default is not None else NOTHING
        for edge in self.get(("edges", function)):
            if edge & 3 != UNKNOWN:
                value |= self.argument_at(edge >> 2, function, edge & 3, name, unpack=False)[0]
        return value - HOMES

    def _taken_from_callers(self, function: int, name: str, key: int) -> Value:
        value = NOTHING
        taken = self._taken.setdefault(key, set())
        edges = self.get(("edges", function))
        # Taken once, an argument flows in by itself.
        for edge in sorted(edges if not taken else edges - taken):
            call = edge >> 2
            if edge & 3 == UNKNOWN or self.stands_in_handler(call):
                taken.add(edge)
                continue
            node = self.argument_node(call, function, edge & 3, name)
            module = self.module_of(call)
            if node is not None and module.nodes[node & MASK][0] != "star":
                taken.add(edge)
                value |= self.take(~key, node)
            elif node is not None or any(keyword is None for keyword, _ in module.nodes[call & MASK][3]):
                value |= self.argument_at(call, function, edge & 3, name)[0]
            else:
                taken.add(edge)
        for call in sorted(self.get(("partials", function))):
            node = self.argument_node(call, function, LATER, name)
            if node is not None and self.module_of(call).nodes[node & MASK][0] != "star":
                value |= self.take(~key, node)
        return value

    def stands_in_handler(self, call: int) -> bool:
        """Whether a call happens only after a failure: its arguments do not show a usual run."""
        module = self.module_of(call)
        guard = module.table.sites[call & MASK].guard
        while guard >= 0:
            if module.table.guards[guard].kind == "except":
                return True
            guard = module.table.guards[guard].parent
        return False

    def _annotated(self, value: Value, module: Module, annotation: str) -> Value:
        """A parameter's value with its annotation's type."""
        if annotation in _PLAIN_TYPES:
            return (value - HOMES) | OF_PYTHON if not value - HOMES else value - HOMES
        if annotation[:1].isupper() and annotation != "Tensor" and not any(one >= FIRST for one in value):
            return value | self.get(("annotation", module.index, annotation))
        return value

    def annotation(self, index: int, name: str) -> Value:
        """Question ``("annotation", module, name)``: an object of the class with that name."""
        found: set[int] = set()
        for one in self.get(("global", index, name)):
            fields = self.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "c":
                found.add(self.atoms.atom("self", fields[1]))
            elif fields[0] == "x" and fields[1].startswith(FRAMEWORKS):
                found.add(self.atoms.atom("o", fields[1], 0))
        return frozenset(found)

    def hook(self, function: int, name: str) -> Value:
        """Question ``("hook", function, parameter)``: the arguments that a framework passes to a function that it
        calls."""
        given = self.hooks.get(function)
        if not given:
            return NOTHING
        module = self.module_of(function)
        default = module.scopes[function & MASK].defaults.get(name)
        if default is not None and module.nodes[default] != ("const", None):
            return NOTHING
        return given.get(name, given.get("*", NOTHING))

    def is_used_as_module(self, module: Module, number: int) -> bool:
        """Whether an object that the program does not create is used like a `torch.nn.Module`."""
        row = module.plain(number)
        uses = self._uses.get(module.index)
        if uses is None:
            uses = self._uses[module.index] = _uses_of(module)
        key = row if row[0] in ("param", "free") else ("attr", row[2]) if row[0] == "attr" else ()
        return not uses.get(key, frozenset()).isdisjoint(MODULE_USES)


def _destinations(module: Module, row: Node) -> list[str]:
    """The parameter that an option of click goes to: the name without dashes, else that of its first long spelling."""
    texts = [str(module.nodes[one][1]) for one in row[2] if module.nodes[one][0] == "const"]
    named = [text for text in texts if not text.startswith("-")]
    spelt = [text.partition("/")[0].lstrip("-").replace("-", "_").lower() for text in texts if text.startswith("--")]
    return named[:1] or spelt[:1]


def _receiver(module: Module, number: int) -> Node:
    """The object that ``net.cuda().train()`` is finally called on: methods of modules return the module."""
    row = module.plain(number)
    while row[0] == "call":
        function = module.nodes[row[1]]
        if function[0] != "attr" or function[2] not in MODULE_METHODS:
            break
        row = module.plain(function[1])
    return row


def _uses_of(module: Module) -> dict[Node, frozenset[str]]:
    """The methods that are called on each name of a module, and on each attribute by its name."""
    uses: dict[Node, set[str]] = {}
    for call in module.table.sites:
        function = module.nodes[module.nodes[call][1]]
        if function[0] == "attr":
            row = _receiver(module, function[1])
            if row[0] in ("param", "free"):
                uses.setdefault(row, set()).add(function[2])
            elif row[0] == "attr":
                uses.setdefault(("attr", row[2]), set()).add(function[2])
    for name in _TAKE_MODULES:
        for call in module.table.named.get(name, ()):
            args = module.nodes[call][2]
            row = _receiver(module, args[0]) if args else ("",)
            if row[0] in ("param", "free"):
                uses.setdefault(row, set()).add("parameters")
    return {row: frozenset(names) for row, names in uses.items()}
