"""`unbounded-checkpoints` whatever writes them, and wherever their names are made."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.checkpoints import Series
from ldlm_lint.model import Claim, Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.rules.checkpoint_files import UNBOUNDED_CHECKPOINTS
from ldlm_lint.wording import listed

RULE = UNBOUNDED_CHECKPOINTS
WORDS: tuple[bytes, ...] = (b"save", b"dump", b"write", b"ckpt", b"checkpoint", b"persist", b"epoch", b"step")


def find(view: View) -> Iterator[Finding]:
    """The series that a training loop writes and nothing prunes."""
    for series in view.checkpoints.all():
        module = view.program.module_of(series.call)
        if _is_read_by_itself(view, series):
            # The checker of single files has looked at it.
            continue
        if not view.is_pruned(series) and not view.training.frequency.is_rare(module, series.call & MASK):
            yield _finding(view, series, module)


def _is_read_by_itself(view: View, series: Series) -> bool:
    """Whether the name is made where `torch.save` is called."""
    functions = view.program.ask(view.program.module_of(series.sink).base | view.program.module_of(series.sink).nodes[series.sink & MASK][1])
    return series.call == series.sink and any(fields[1] == "torch.save" for fields in view.program.atoms.kinds(functions, "x"))


def _finding(view: View, series: Series, module: Module) -> Finding:
    source = view.source(module)
    counters = [source.slice(view.span(module, module.table.places[one])) for one in series.counters if module.table.places[one]]
    counted = listed(sorted(set(counters))) if counters else "a counter"
    args = {"what": f"the file name contains {counted}, so every save makes a new file"}
    related = [] if series.sink == series.call else [Related(view.call_span(series.sink), "this writes the file")]
    place = f"{scope_name(module, module.table.sites[series.call & MASK].scope)}|{_lines_of_loops(module, series.call & MASK)}"
    return view.finding(RULE, view.call_span(series.call), args, related, claims=(Claim("stands-in-training-loop", place),))


def scope_name(module: Module, scope: int) -> str:
    """The dotted name of a function or class; empty for the module."""
    names: list[str] = []
    while scope > 0:
        names.append(module.scopes[scope].name)
        scope = module.scopes[scope].parent
    return ".".join(reversed(names))


def _lines_of_loops(module: Module, call: int) -> str:
    loop = module.table.sites[call].loop
    lines = []
    while loop >= 0:
        if module.table.loops[loop].kind != "comp":
            lines.append(str(line_of(module.table.loops[loop].place)))
        loop = module.table.loops[loop].parent
    return ",".join(lines)
