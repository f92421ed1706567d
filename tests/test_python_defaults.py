"""Defaults: what a setting is where nobody sets it, and where that cannot be told."""

from __future__ import annotations

import pytest
from collected import for_every
from snippets import argument

from ldlm_lint.python.defaults import Origin, default_of

FLAG = "parser.add_argument('--wait-minutes', default=90)\n"
FIELD = "from dataclasses import dataclass, field\n@dataclass\nclass C:\n    wait: int = {}\n"


@for_every(
    "code, value, origin, what",
    [
        pytest.param(FLAG + "args = parser.parse_args()\ntarget(args.wait_minutes)", 90, Origin.FLAG, "args.wait_minutes", id="flag"),
        pytest.param(FLAG + "def f(args): target(args.wait_minutes)", 90, Origin.FLAG, "args.wait_minutes", id="handed-in"),
        pytest.param(FLAG + "opt = get()\ntarget(opt.wait_minutes)", 90, Origin.FLAG, "opt.wait_minutes", id="made-by-a-function"),
        pytest.param(FLAG + "def f(args):\n    n = int(args.wait_minutes)\n    target(n)", 90, Origin.FLAG, "args.wait_minutes", id="cast"),
        pytest.param("p.add_argument('-w', '--wait', dest='w', default=3)\ndef f(args): target(args.w)", 3, Origin.FLAG, "args.w", id="dest"),
        pytest.param("import os\ntarget(int(os.environ.get('WAIT', 90)))", 90, Origin.LOOK_UP, "WAIT", id="environment"),
        pytest.param("import os\ntarget(os.getenv('WAIT', default='90'))", "90", Origin.LOOK_UP, "WAIT", id="getenv"),
        pytest.param("target(getattr(cfg, 'wait', 90))", 90, Origin.LOOK_UP, "wait", id="getattr"),
        pytest.param("def f(wait=90): target(wait)", 90, Origin.PARAMETER, "wait", id="parameter"),
        pytest.param("def f(a, *, wait=90, b=1): target(wait)", 90, Origin.PARAMETER, "wait", id="keyword-only"),
        pytest.param(FIELD.format(90) + "def f(cfg: C): target(cfg.wait)", 90, Origin.FIELD, "C.wait", id="field"),
        pytest.param(FIELD.format("field(default=90)") + "def f(cfg: C): target(cfg.wait)", 90, Origin.FIELD, "C.wait", id="field-call"),
    ],
)
def test_default(code: str, value: object, origin: Origin, what: str) -> None:
    found = default_of(argument(code))
    assert found is not None
    assert (found.values, found.origin, found.what) == ((value,), origin, what)


@for_every(
    "code",
    [
        pytest.param("p.add_argument('--wait')\ndef f(args): target(args.wait)", id="flag-without-default"),
        pytest.param(FLAG + FLAG.replace("90", "5") + "def f(args): target(args.wait_minutes)", id="two-flags"),
        pytest.param(FLAG + "cfg = load()\ntarget(cfg.wait_minutes)", id="a-configuration-that-is-made"),
        pytest.param(FLAG + "cfg = load(path)\ntarget(cfg.wait_minutes)", id="a-configuration"),
        pytest.param("def f(wait=90):\n    wait = other()\n    target(wait)", id="bound-again"),
        pytest.param("def f(wait): target(wait)", id="parameter-without-default"),
        pytest.param("target(cfg.get(name, 90))", id="unknown-key"),
        pytest.param("target(cfg.get('wait'))", id="look-up-without-default"),
        pytest.param("target(unknown.wait)", id="unknown-object"),
        pytest.param(FIELD.format("field(default_factory=int)") + "def f(cfg: C): target(cfg.wait)", id="factory"),
        pytest.param("def f(cfg: Elsewhere): target(cfg.wait)", id="class-of-another-file"),
        pytest.param("target([1][0])", id="anything-else"),
    ],
)
def test_no_default(code: str) -> None:
    assert default_of(argument(code)) is None
