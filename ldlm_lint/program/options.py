"""Options of command lines: the values of attributes of the result of ``parse_args``, from the calls that add the
options."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from ldlm_lint.program.atoms import MASK, Value
from ldlm_lint.program.methods import Methods


class Options(Methods):
    """The options of `argparse`."""

    def option(self, parser: int, name: str) -> Value:
        """The possible values of an attribute of the result of ``parse_args``: the options of that name, from the calls
        that add them."""
        found: set[int] = set()
        for call in self._options.get(name, ()):
            if self._adds_to(call, parser):
                found.add(self.atoms.atom("flag", call))
        return frozenset(found)

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
