"""The fix that switches activation checkpointing on: per block, while training, after an option of the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.branches import call_text, choose_between, indent_unit
from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.autofix.resolve import edit_key
from ldlm_lint.model import Applicability, Edit, Fix, Span
from ldlm_lint.project.block_calls import Site, sites_of
from ldlm_lint.project.config_fields import Subject
from ldlm_lint.project.index import Project
from ldlm_lint.project.model_options import choice_of
from ldlm_lint.project.models import Models
from ldlm_lint.project.recomputation import can_recompute
from ldlm_lint.python.block_stacks import stacks_of
from ldlm_lint.rules.segments import FLAG
from ldlm_lint.source import Kind, Source, UnreadableError

_MODULE = "torch.utils.checkpoint"
_REASON = "each step runs the forward pass of the blocks once more, inside the backward pass; random numbers of torch repeat, other side effects of a block happen twice"


def checkpoint_fix(
    project: Project, models: Models, path: str, names: Sequence[str], is_block: Callable[[str], bool]
) -> Fix | None:
    """Checkpoint each block that the classes of these names run; None if none of them runs blocks in a known way.

    ``is_block`` says whether a class of another file, by its qualified name, computes attention.
    """
    module, error_line, _ = models.trees.parsed(path)
    source = _source(project, path)
    if module is None or source is None or error_line:
        # A file that does not parse cannot be verified after an edit.
        return None
    parts = []
    for model in module.body:
        if isinstance(model, nodes.ClassDef) and model.name in names:
            stacks = tuple(stack for stack in stacks_of(model) if not stack.external or is_block(stack.external))
            part = _for_class(Subject(project, models, source, model, stacks))
            parts += [part] if part is not None else []
    if not parts:
        return None
    edits = {edit for one, _ in parts for edit in one}
    title = "; ".join(told for _, told in parts)
    return Fix(
        f"checkpoint {title}",
        tuple(sorted(edits, key=edit_key)),
        Applicability.UNSAFE,
        _REASON,
        group=f"activation-checkpointing:{path}",
        needs=(tables.interface(FLAG),),
    )


def _source(project: Project, path: str) -> Source | None:
    try:
        return Source.from_bytes(path, project.data(path), Kind.PYTHON)
    except UnreadableError:
        return None


def _for_class(subject: Subject) -> tuple[list[Edit], str] | None:
    source, model = subject.source, subject.model
    sites = sites_of(model, subject.stacks)
    if not sites or not can_recompute(subject):
        return None
    # One function for all: two new imports would need the same line.
    whole = sites[0].whole
    sites = [site for site in sites if site.whole is whole]
    edit, function = ensure_import(source, _MODULE, "checkpoint_sequential" if whole else "checkpoint")
    choice = choice_of(subject)
    branches = [_branch(source, run, function, choice.condition) for run in _runs(sites)]
    wrapped = [branch for branch in branches if branch is not None]
    if len(wrapped) != len(branches):
        return None
    names = ", ".join(dict.fromkeys(_called(site) for site in sites))
    return [
        *filter(None, (edit,)),
        *wrapped,
        *choice.edits,
    ], f"each {names} of {model.name} while training ({choice.told})"


def _called(site: Site) -> str:
    return f"block of {site.call.func.as_string()}" if site.whole else site.call.func.as_string()


def _runs(sites: Iterable[Site]) -> Iterator[list[Site]]:
    """The sites, those together whose statements follow each other."""
    run: list[Site] = []
    for site in sites:
        if run and run[-1].statement.next_sibling() is not site.statement:
            yield run
            run = []
        run.append(site)
    if run:
        yield run


def _branch(source: Source, run: Sequence[Site], function: str, condition: str) -> Edit | None:
    changed = [_checkpointed(source, site, function) for site in run]
    texts = [text for text in changed if text is not None]
    if len(texts) != len(run):
        return None
    spans = [_span(source, site.statement) for site in run]
    return choose_between(source, spans, texts, condition, leaves=isinstance(run[-1].statement, nodes.Return))


def _checkpointed(source: Source, site: Site, function: str) -> str | None:
    """A statement with its block checkpointed; None if the text around the call spreads over lines or holds
    comments.
    """
    statement, call = _span(source, site.statement), _span(source, site.call)
    before = source.data[statement.start : call.start].decode(source.encoding)
    after = source.data[call.end : statement.end].decode(source.encoding)
    arguments = [_in_one_line(source, one) for one in (*site.call.args, *site.call.keywords)]
    callee = _in_one_line(source, site.call.func)
    if callee is None or None in arguments or "\n" in before + after or "\r" in before + after:
        return None
    given = [one for one in arguments if one is not None]
    texts = [callee, *([f"len({callee})"] if site.whole else []), *given, "use_reentrant=False"]
    line, column = source.position(statement.start)
    indent = source.lines[line - 1][: column - 1]
    unit = indent_unit(source, line, indent) or indent
    return before + call_text(function, texts, before, after, indent, unit) + after


def _in_one_line(source: Source, node: nodes.NodeNG) -> str | None:
    text = source.slice(_span(source, node))
    if isinstance(node, nodes.Keyword) and node.arg is None and not text.startswith("**"):
        text = f"**{text}"
    if "\n" not in text and "\r" not in text:
        return text
    if re.search(r"[#\"'\\]", text):
        return None
    return re.sub(r"(?<=[(\[{]) | (?=[)\]}])", "", " ".join(text.split()))


def _span(source: Source, node: nodes.NodeNG) -> Span:
    return source.span_of(node.lineno, node.col_offset or 0, node.end_lineno or node.lineno, node.end_col_offset or 0)


__all__ = ["checkpoint_fix"]
