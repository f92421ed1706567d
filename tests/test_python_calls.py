"""Three-valued arguments: what a call certainly passes, certainly does not, and what nobody can tell."""

from __future__ import annotations

import pytest
from collected import for_every
from snippets import call

from ldlm_lint.python.calls import Arguments, State

POSITIONAL = ("dataset", "batch_size", "num_workers")
ABSENT, UNKNOWN = "absent", "unknown"


def passed(code: str, positional: tuple[str, ...] = POSITIONAL) -> tuple[object, object]:
    """``num_workers`` and ``fused`` of the call of ``target``: their values where known, else the state."""
    arguments = Arguments(call(code), positional)
    return tuple(
        arguments[name].values[0] if arguments[name].state is State.KNOWN else arguments[name].state.value
        for name in ("num_workers", "fused")
    )


BASE = "B = {'num_workers': 4}\n"


@for_every(
    "code, expected",
    [
        pytest.param("target()", (ABSENT, ABSENT), id="nothing"),
        pytest.param("target(ds, 8, 4)", (4, ABSENT), id="positional"),
        pytest.param("target(ds, num_workers=4, fused=True)", (4, True), id="keywords"),
        pytest.param("target(ds, num_workers=n)", (UNKNOWN, ABSENT), id="unknown-value"),
        pytest.param("target(*args)", (UNKNOWN, UNKNOWN), id="star"),
        pytest.param("target(ds, *args, 4)", (UNKNOWN, UNKNOWN), id="behind-a-star"),
        pytest.param("target(ds, 8, 4, *args)", (4, UNKNOWN), id="before-a-star"),
        pytest.param("target(*args, num_workers=4)", (4, UNKNOWN), id="star-and-keyword"),
        pytest.param("target(ds, **cfg)", (UNKNOWN, UNKNOWN), id="double-star"),
        pytest.param("target(ds, **cfg, num_workers=4)", (4, UNKNOWN), id="double-star-and-keyword"),
        pytest.param("target(num_workers=4, **cfg)", (4, UNKNOWN), id="keyword-and-double-star"),
        pytest.param("target(**cfg.data)", (UNKNOWN, UNKNOWN), id="attribute"),
        pytest.param("target(**vars(args))", (UNKNOWN, UNKNOWN), id="vars"),
        pytest.param("target(**json.loads(x))", (UNKNOWN, UNKNOWN), id="call"),
        pytest.param("from x import B\ntarget(**B)", (UNKNOWN, UNKNOWN), id="imported"),
        pytest.param("def f(B={}): target(**B)", (UNKNOWN, UNKNOWN), id="parameter-default"),
        pytest.param("def f(**B): target(**B)", (UNKNOWN, UNKNOWN), id="passed-on"),
        pytest.param(
            "class C:\n    B = {}\n    def f(self): target(**self.B)", (UNKNOWN, UNKNOWN), id="attribute-of-self"
        ),
    ],
)
def test_arguments(code: str, expected: tuple[object, object]) -> None:
    assert passed(code) == expected


PARTIAL = "from functools import partial\n"


@for_every(
    "code, expected",
    [
        pytest.param("target = partial(make, fused=True)\ntarget(ds, 8, 4)", (4, True), id="keyword"),
        pytest.param("target = partial(make, ds, 8)\ntarget(4)", (4, ABSENT), id="positions-move-on"),
        pytest.param("target = partial(make, num_workers=2)\ntarget(num_workers=4)", (4, ABSENT), id="the-call-wins"),
        pytest.param("target = partial(partial(make, ds), 8, fused=True)\ntarget(4)", (4, True), id="layers"),
        pytest.param("target = partial(make, **cfg)\ntarget(ds)", (UNKNOWN, UNKNOWN), id="open"),
        pytest.param("target = partial(make, *rest)\ntarget(ds, 8, 4)", (UNKNOWN, UNKNOWN), id="star"),
        pytest.param("target = partial(make, fused=True)\nif x: target = make\ntarget(ds)", (UNKNOWN, UNKNOWN), id="or-not"),
        pytest.param("class C:\n    target = partial(make, fused=True)\n    def f(self): self.target(ds)", (ABSENT, True), id="attribute"),
        pytest.param("def partial(f): ...\ntarget = partial(make, fused=True)\ntarget(ds)", (ABSENT, ABSENT), id="own-partial"),
    ],
)
def test_arguments_bound_before(code: str, expected: tuple[object, object]) -> None:
    assert passed(PARTIAL + code) == expected


def test_star_counts_where_no_positions_are_known() -> None:
    assert passed("target(*args)", ()) == (UNKNOWN, UNKNOWN)


@for_every(
    "code, expected",
    [
        pytest.param("target(**{'num_workers': 4})", (4, ABSENT), id="literal"),
        pytest.param("target(**{'num_workers': 4}.copy())", (4, ABSENT), id="copy"),
        pytest.param("target(**dict(num_workers=4))", (4, ABSENT), id="dict"),
        pytest.param("target(**dict({'num_workers': 4}, fused=1))", (4, 1), id="dict-of-dict"),
        pytest.param("target(**dict(fused=1, **{'num_workers': 4}))", (4, 1), id="dict-with-double-star"),
        pytest.param(f"{BASE}target(**B)", (4, ABSENT), id="name"),
        pytest.param("B: dict = {'num_workers': 4}\ntarget(**B)", (4, ABSENT), id="annotated"),
        pytest.param(f"{BASE}target(**{{**B, 'fused': 1}})", (4, 1), id="merged"),
        pytest.param(f"{BASE}target(**(B | {{'fused': 1}}))", (4, 1), id="or"),
        pytest.param(f"{BASE}C = B.copy()\ntarget(**C)", (4, ABSENT), id="copied-name"),
        pytest.param(f"{BASE}C = dict(B, fused=1)\ntarget(**C)", (4, 1), id="dict-of-name"),
        pytest.param(f"{BASE}print(B, len(B))\ntarget(**B)", (4, ABSENT), id="printed"),
        pytest.param(f"{BASE}for k, v in B.items(): log(k, v)\ntarget(**B)", (4, ABSENT), id="read"),
        pytest.param(f"{BASE}if 'fused' in B: log(B['num_workers'], f'{{B}}')\ntarget(**B)", (4, ABSENT), id="asked"),
        pytest.param(f"{BASE}other(**B)\ntarget(**B)", (4, ABSENT), id="passed-as-keywords"),
        pytest.param(f"{BASE}D = {{**B, 'fused': 1}}\ntarget(**B)", (4, ABSENT), id="unpacked-into-another"),
        pytest.param(f"{BASE}C = {{'fused': 1}}\nC.update(B)\ntarget(**B)", (4, ABSENT), id="entries-of-another"),
        pytest.param(f"{BASE}C = {{}}\nC.update(B, more=B)\ntarget(**B)", (UNKNOWN, UNKNOWN), id="value-of-an-entry"),
        pytest.param(f"{BASE}C = {{}}\ntarget(**(B if x else C))", (UNKNOWN, ABSENT), id="one-of-two"),
        pytest.param("target(**(dict(fused=True) if x else dict()))", (ABSENT, UNKNOWN), id="conditional"),
        pytest.param("B = dict(fused=True) if x else dict()\ntarget(**B)", (ABSENT, UNKNOWN), id="conditional-name"),
        pytest.param("B = {'fused': 1} if x else {'fused': 2}\ntarget(**B)", (ABSENT, 1), id="in-either-case"),
        pytest.param("B = {}\nif x: B = {'fused': 1}\ntarget(**B)", (ABSENT, UNKNOWN), id="two-bindings"),
    ],
)
def test_dictionary_of_the_file(code: str, expected: tuple[object, object]) -> None:
    assert passed(code) == expected


@for_every(
    "code, expected",
    [
        pytest.param("B['fused'] = 1", (4, UNKNOWN), id="item"),
        pytest.param("B['fused'], y = 1, 2", (4, UNKNOWN), id="item-unpacked"),
        pytest.param("B['num_workers'] += 1", (UNKNOWN, ABSENT), id="item-augmented"),
        pytest.param("del B['num_workers']", (UNKNOWN, ABSENT), id="item-deleted"),
        pytest.param("B[key] = 1", (UNKNOWN, UNKNOWN), id="unknown-item"),
        pytest.param("for k in x: B[k] = 1", (UNKNOWN, UNKNOWN), id="items-of-a-loop"),
        pytest.param("if x: B.update(fused=1)", (4, UNKNOWN), id="update-keyword"),
        pytest.param("if x: B.update({'fused': 1})", (4, UNKNOWN), id="update-literal"),
        pytest.param("B.update({'num_workers': 0})", (UNKNOWN, ABSENT), id="update-overrides"),
        pytest.param("B.update(x)", (UNKNOWN, UNKNOWN), id="update-unknown"),
        pytest.param("B.update(**x)", (UNKNOWN, UNKNOWN), id="update-double-star"),
        pytest.param("B.update([('fused', 1)])", (UNKNOWN, UNKNOWN), id="update-pairs"),
        pytest.param("B.setdefault('fused', 1)", (4, UNKNOWN), id="setdefault"),
        pytest.param("B.pop('num_workers', None)", (UNKNOWN, ABSENT), id="pop"),
        pytest.param("B.pop(key)", (UNKNOWN, UNKNOWN), id="pop-unknown"),
        pytest.param("B.clear()", (UNKNOWN, ABSENT), id="clear"),
        pytest.param("B.__setitem__('fused', 1)", (UNKNOWN, UNKNOWN), id="unknown-method"),
        pytest.param("change = B.update", (UNKNOWN, UNKNOWN), id="bound-method"),
        pytest.param("B |= {'fused': 1}", (4, UNKNOWN), id="augmented"),
        pytest.param("B |= x", (UNKNOWN, UNKNOWN), id="augmented-unknown"),
        pytest.param("tune(B)", (UNKNOWN, UNKNOWN), id="argument"),
        pytest.param("tune(cfg=B)", (UNKNOWN, UNKNOWN), id="keyword-argument"),
        pytest.param("def print(x): x['fused'] = 1\nprint(B)", (UNKNOWN, UNKNOWN), id="own-print"),
        pytest.param("self.cfg = B", (UNKNOWN, UNKNOWN), id="attribute"),
        pytest.param("x['cfg'] = B", (UNKNOWN, UNKNOWN), id="element"),
        pytest.param("D = {'cfg': B}", (UNKNOWN, UNKNOWN), id="value-of-another"),
        pytest.param("L = [B]", (UNKNOWN, UNKNOWN), id="list"),
        pytest.param("C = B\nC['fused'] = 1", (4, UNKNOWN), id="alias"),
        pytest.param("C = D = B\nD['fused'] = 1", (4, UNKNOWN), id="second-alias"),
        pytest.param("C = B if x else {}\nC['fused'] = 1", (4, UNKNOWN), id="conditional-alias"),
        pytest.param("C = B\nD = C\nB = D\nD.clear()", (UNKNOWN, UNKNOWN), id="aliases-in-a-circle"),
        pytest.param("def f():\n    B['fused'] = 1", (4, UNKNOWN), id="in-a-function"),
        pytest.param("later = lambda: B.update(fused=1)", (4, UNKNOWN), id="in-a-lambda"),
        pytest.param("B, y = f(), 1", (UNKNOWN, UNKNOWN), id="unpacked"),
        pytest.param("for B in x: ...", (UNKNOWN, UNKNOWN), id="loop-variable"),
        pytest.param("B = {**B, 'fused': 1}", (UNKNOWN, UNKNOWN), id="made-of-itself"),
    ],
)
def test_change_of_a_dictionary(code: str, expected: tuple[object, object]) -> None:
    """Before or after the call, guarded or not: what may change a key makes it unknown."""
    assert passed(f"{BASE}{code}\ntarget(**B)") == expected
    assert passed(f"{BASE}target(**B)\n{code}") == expected


@for_every(
    "code, expected",
    [
        pytest.param("target(**{**x, 'num_workers': 4})", (4, UNKNOWN), id="defaults-first"),
        pytest.param("target(**{'num_workers': 4, **x})", (UNKNOWN, UNKNOWN), id="overrides-last"),
        pytest.param("target(**({'num_workers': 4} | x))", (UNKNOWN, UNKNOWN), id="or-overrides"),
        pytest.param("target(**(x | {'num_workers': 4}))", (4, UNKNOWN), id="or-defaults"),
        pytest.param("target(**(x or {'num_workers': 4}))", (UNKNOWN, UNKNOWN), id="either"),
        pytest.param("target(**{key: 4})", (UNKNOWN, UNKNOWN), id="unknown-key"),
        pytest.param("target(**{k: 4 for k in x})", (UNKNOWN, UNKNOWN), id="comprehension"),
        pytest.param("target(**dict(x))", (UNKNOWN, UNKNOWN), id="dict-of-unknown"),
        pytest.param("target(**dict([('num_workers', 4)]))", (UNKNOWN, UNKNOWN), id="pairs"),
        pytest.param("def dict(**_): ...\ntarget(**dict(num_workers=4))", (UNKNOWN, UNKNOWN), id="own-dict"),
        pytest.param("target(**OrderedDict(num_workers=4))", (UNKNOWN, UNKNOWN), id="another-type"),
        pytest.param("B = C = {'num_workers': 4}\nC['fused'] = 1\ntarget(**B)", (4, UNKNOWN), id="two-names-for-one"),
        pytest.param("B = {**B}\ntarget(**B)", (UNKNOWN, UNKNOWN), id="only-itself"),
    ],
)
def test_partly_known_dictionary(code: str, expected: tuple[object, object]) -> None:
    assert passed(code) == expected


def test_hard_case_literal_update_and_copy() -> None:
    code = """
        def make(ds, train, fast):
            common = {'num_workers': 4}
            if fast:
                common.update({'persistent_workers': True, 'prefetch_factor': 4})
            kwargs = common.copy()
            kwargs['shuffle'] = train
            return target(ds, **kwargs)
    """
    arguments = Arguments(call(code), POSITIONAL)
    assert arguments["num_workers"].is_only(4)
    assert [arguments[name].state for name in ("persistent_workers", "prefetch_factor")] == [State.UNKNOWN] * 2
    assert arguments["pin_memory"].absent


def test_value_that_an_update_brings_is_at_hand() -> None:
    arguments = Arguments(call("B = {}\nif x: B.update(num_workers=args.workers)\ntarget(**B)"), POSITIONAL)
    node = arguments["num_workers"].node
    assert node is not None
    assert node.as_string() == "args.workers"


@for_every(
    "code, value, expected",
    [
        pytest.param("target(num_workers=True)", 1, False, id="true-is-not-one"),
        pytest.param("target(num_workers=1)", True, False, id="one-is-not-true"),
        pytest.param("target(num_workers=True)", True, True, id="true"),
        pytest.param("target(num_workers=2 if x else 2)", 2, True, id="twice"),
        pytest.param("target(num_workers=2 if x else 3)", 2, False, id="two-values"),
        pytest.param("target(num_workers=x)", 2, False, id="unknown"),
        pytest.param("target()", None, False, id="absent"),
    ],
)
def test_is_only(code: str, value: object, expected: bool) -> None:
    assert Arguments(call(code), POSITIONAL)["num_workers"].is_only(value) is expected


def test_may_be_passed() -> None:
    assert not Arguments(call("target()"))["fused"].may_be_passed()
    assert Arguments(call("target(**x)"))["fused"].may_be_passed()
    assert Arguments(call("target(fused=x)"))["fused"].may_be_passed()
