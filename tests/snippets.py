"""Short texts as trees and as projects, for tests of the Python front end and the project pass."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from astroid import nodes

from ldlm_lint.model import Finding, Span
from ldlm_lint.project import QUESTIONS, Project, Verdict
from ldlm_lint.project.questions import Context
from ldlm_lint.python.places import function_of, loops_around, position_of, scope_name
from ldlm_lint.python.tree import Parsed, parse
from ldlm_lint.source import Kind, Source

ROOT = "/project"


def source(code: str | bytes, path: str = f"{ROOT}/module.py") -> Source:
    """A Python source of a text, its common indentation taken away."""
    data = code if isinstance(code, bytes) else textwrap.dedent(code).encode()
    return Source.from_bytes(path, data, Kind.PYTHON)


def parsed(code: str | bytes, name: str = "module") -> Parsed:
    """What `parse` makes of a text."""
    return parse(source(code), name)


def tree(code: str | bytes) -> nodes.Module:
    """The tree of a text that parses."""
    result = parsed(code)
    assert result.module is not None, result
    assert not result.error_line, result
    return result.module


def call(code: str | nodes.Module, name: str = "target") -> nodes.Call:
    """The first call of a function or method of this last name."""
    module = tree(code) if isinstance(code, str) else code
    return next(one for one in module.nodes_of_class(nodes.Call) if last_name(one.func) == name)


def argument(code: str) -> nodes.NodeNG:
    """What the call of ``target`` in a text gets as its first argument."""
    return call(code).args[0]


def last_name(node: nodes.NodeNG) -> str:
    """The last part of a dotted name."""
    return node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "")


def context(files: Mapping[str, str]) -> Context:
    """A project of these files (path below its root, text), none of them on disk."""
    overlay = {f"{ROOT}/{name}": textwrap.dedent(text).encode() for name, text in files.items()}
    return Context(Project(ROOT, overlay, overlay))


def ask(question: str, files: Mapping[str, str], subject: str = "", at: str | None = None) -> Verdict:
    """The project's answer to a claim of a finding in the file ``at`` (the first one)."""
    path = f"{ROOT}/{at or next(iter(files))}"
    finding = Finding("some-rule", "W7101", Span(path, 0, 0))
    return QUESTIONS[question](context(files), finding, subject)


def ask_about_call(question: str, files: Mapping[str, str], name: str, at: str | None = None) -> Verdict:
    """As `ask`, about the first call of ``name`` in the file ``at``."""
    return ask(question, files, position_of(call(files[at or next(iter(files))], name)), at)


def place_of_call(code: str, name: str) -> str:
    """The function and the loops that a call stands in, as a claim about saves spells them."""
    found = call(code, name)
    return f"{scope_name(function_of(found))}|{','.join(str(loop.lineno or 0) for loop in loops_around(found))}"
