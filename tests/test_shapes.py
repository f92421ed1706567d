"""Conditions on the shape of a file are necessary only: whatever a checker finds, however it is written, passes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from collected import for_every
from shape_forms import BLOCK, FOUND, SPARED

from ldlm_lint import engine, linting
from ldlm_lint.checkers.host import lint as lint_python
from ldlm_lint.config import Config
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.projects import Projects
from ldlm_lint.python.syntax import syntax_of
from ldlm_lint.rules import ALL
from ldlm_lint.shapes import CONDITIONS, possible
from ldlm_lint.shapes.drafts import DRAFTS, TEXTS, possible_by_text
from ldlm_lint.shapes.tests import _OUTSIDE_TESTS, _OUTSIDE_UNIT_TESTS, silent_in
from ldlm_lint.source import Kind, Source

FIXTURES = Path(__file__).parent / "fixtures"


def passes(text: str, symbol: str) -> bool:
    source = Source.from_bytes("/p/module.py", text.encode(), Kind.PYTHON)
    syntax = syntax_of(source)
    assert syntax is not None
    at_risk = possible_by_text(rules_at_risk(source.data, Kind.PYTHON) & {symbol}, source.data)
    return symbol in possible(at_risk, syntax, source.data)


def candidates(text: str) -> set[str]:
    source = Source.from_bytes("/p/module.py", text.encode(), Kind.PYTHON)
    return {finding.rule for finding in lint_python(source, "module").findings}


@for_every("symbol, text", FOUND.values(), ids=FOUND)
def test_what_is_found_passes(symbol: str, text: str) -> None:
    assert symbol in candidates(text)
    assert passes(text, symbol)


@for_every("symbol, text", SPARED.values(), ids=SPARED)
def test_what_cannot_stand_is_spared(symbol: str, text: str) -> None:
    assert not passes(text, symbol)


_MANY = 2000
# Names that lead to names, classes to classes, and a name that is a copy of itself: nothing is followed by recursion.
CHAINS = {
    "names": "def f(x):\n    a0 = 1\n" + "".join(f"    a{i} = a{i - 1}\n" for i in range(1, _MANY))
    + f"    if a{_MANY - 1}:\n        return\n    x.clamp(0, a{_MANY - 1}).backward()\n    x.to(a{_MANY - 1}, non_blocking=True)\n",
    "classes": BLOCK + "class C0: pass\n" + "".join(f"class C{i}(C{i - 1}, X): pass\n" for i in range(1, _MANY))
    + f"class Net(C{_MANY - 1}, Y):\n    def __init__(self, n):\n        self.m = nn.ModuleList([Block() for _ in range(n)])\n",
    "copies": "from copy import deepcopy\n" + BLOCK + "class Net(nn.Module):\n    def __init__(self, n):\n        b = deepcopy(b)\n"
    "        self.m = nn.ModuleList([deepcopy(b) for _ in range(n)])\n",
    "cases": "match x:\n    case None | True | {'a': 1, **rest} | [1, *others] | C(a=1):\n        d = {**a}\ndef f(*, k, m=1): pass\n",
}


@pytest.mark.parametrize("text", CHAINS.values(), ids=CHAINS)
def test_long_chains_end(text: str) -> None:
    source = Source.from_bytes("/p/module.py", text.encode(), Kind.PYTHON)
    syntax = syntax_of(source)
    assert syntax is not None
    assert possible(CONDITIONS, syntax, source.data) <= CONDITIONS.keys()


def test_conditions_are_of_rules() -> None:
    assert {*CONDITIONS, *TEXTS, *DRAFTS, *_OUTSIDE_TESTS, *_OUTSIDE_UNIT_TESTS} <= {rule.symbol for rule in ALL}


@pytest.mark.parametrize("symbol", sorted(_OUTSIDE_TESTS))
def test_rules_that_tests_silence_find_nothing_there(symbol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project says no to each of their findings, with all conditions off."""
    bad = sorted((FIXTURES / symbol).glob("bad*.py"))
    for number, path in enumerate(one for one in bad if "fixed" not in one.name):
        (tmp_path / f"test_{number}.py").write_bytes(path.read_bytes())
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setattr(linting, "_possible", lambda at_risk, source: at_risk)
    monkeypatch.setattr(linting, "possible_by_text", lambda at_risk, text: at_risk)
    monkeypatch.setattr(linting, "silent_in", lambda path, data: frozenset())
    monkeypatch.setattr(Projects, "may_hold", lambda *_: True)
    config = Config.load(tmp_path)
    assert symbol not in {finding.rule for finding in engine.run([tmp_path], config, base=tmp_path).findings}


@pytest.mark.parametrize(
    "path, data, silent",
    [
        ("/p/test_a.py", b"def test_x():\n    pass\n", True),
        ("/p/test_net.py", b"import argparse\n", False),
        ("/p/train.py", b"", False),
    ],
)
def test_a_test_that_somebody_starts_may_evaluate(path: str, data: bytes, silent: bool) -> None:
    assert ("evaluation-with-gradients" in silent_in(path, data)) is silent


@pytest.mark.corpus
@pytest.mark.parametrize("select", [(), ("ALL",)], ids=["default", "all rules"])
@pytest.mark.skipif("LDLM_CORPUS" not in os.environ, reason="LDLM_CORPUS names a folder of checkouts")
def test_the_conditions_hide_nothing_in_real_repositories(select: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """With every checker run over every file, the findings of all rules are the same."""
    from dataclasses import replace

    everything = frozenset(rule.symbol for rule in ALL)
    for root in sorted(one for one in Path(os.environ["LDLM_CORPUS"]).iterdir() if one.is_dir()):
        config = replace(Config.load(root), select=select or Config.load(root).select)
        spared = engine.run([root], config, base=root).findings
        with monkeypatch.context() as patch:
            patch.setattr(linting, "rules_at_risk", lambda data, kind: everything)
            patch.setattr(linting, "_possible", lambda at_risk, source: at_risk)
            patch.setattr(linting, "possible_by_text", lambda at_risk, text: at_risk)
            patch.setattr(linting, "silent_in", lambda path, data: frozenset())
            patch.setattr(Projects, "may_hold", lambda *_: True)
            assert engine.run([root], config, base=root).findings == spared, root
