"""Options of command lines: the values of attributes of the result of ``parse_args``, from the calls that add the
options."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from ldlm_lint.program.atoms import MASK, Value
from ldlm_lint.program.methods import Methods
from ldlm_lint.program.modules import Module
from ldlm_lint.program.together import Together


class Options(Methods):
    """The options of `argparse`."""

    def option(self, parser: int, name: str) -> Value:
        """The possible values of an attribute of the result of ``parse_args``: the options of that name, from the calls
        that add them."""
        home = self.module_of(parser)
        calls = (call for call in self._options.get(name, ()) if self._may_share_program(home, self.module_of(call)))
        return frozenset(self.atoms.atom("flag", call) for call in calls if self._adds_to(call, parser))

    def _may_share_program(self, one: Module, other: Module) -> bool:
        """Whether one program may load two files: each of many scripts has options of the same names."""
        pair = (one.index, other.index)
        if pair not in self._sharing:
            self._sharing[pair] = self.together.may_share_program(one, other)
        return self._sharing[pair]

    @cached_property
    def _sharing(self) -> dict[tuple[int, int], bool]:
        return {}

    @cached_property
    def together(self) -> Together:
        """Which modules run in one process."""
        return Together(self.modules, self.live)

    @cached_property
    def _options(self) -> dict[str, list[int]]:
        """The calls of ``add_argument``, by the attribute that the option is stored as."""
        found: dict[str, list[int]] = defaultdict(list)
        for call in self.calls.get("add_argument", ()):
            found[self._destination(call)].append(call)
        return found

    def _destination(self, call: int) -> str:
        module = self.module_of(call)
        row = module.nodes[call & MASK]
        given = next((module.nodes[one] for name, one in row[3] if name == "dest"), ("", None))
        texts = [str(module.nodes[one][1]) for one in row[2] if module.nodes[one][0] == "const"]
        long = [text for text in texts if text.startswith("--")] or texts
        return str(given[1]) if given[0] == "const" else long[0].lstrip("-").replace("-", "_") if long else ""

    def _adds_to(self, call: int, parser: int) -> bool:
        module = self.module_of(call)
        receiver = self.closed(module.base | module.nodes[module.nodes[call & MASK][1]][1])
        parsers = [fields for fields in self.atoms.kinds(receiver, "o") if fields[1].startswith("argparse.")]
        return any(fields[2] == parser for fields in parsers)
