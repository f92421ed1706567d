"""Selectors: what each names, which of two wins, and how layers follow each other."""

from __future__ import annotations

import pytest
from collected import for_every

from ldlm_lint.model import Consequence, Rule, Severity
from ldlm_lint.select import Layer, SelectorError, at_level, deprecated, find, named, selected, selected_by_layers


def rule(code: str, symbol: str, consequence: Consequence = Consequence.SLOW, *, default: bool = True, old_names: tuple[str, ...] = ()) -> Rule:
    texts = dict.fromkeys(("message", "summary", "rationale", "cost", "exceptions", "versions", "verification"), "x")
    return Rule(
        code=code,
        symbol=symbol,
        consequence=consequence,
        references=(),
        reads=("py",),
        triggers=(),
        default=default,
        old_names=old_names,
        **texts,
    )


RULES = (
    rule("E6802", "unparsable-file", Consequence.CONFIG),
    rule("W7201", "heartbeat", Consequence.HANG, old_names=("old-heartbeat",)),
    rule("I7209", "redundant", Consequence.CONFIG, default=False),
    rule("R7301", "not-fused"),
    rule("I7304", "lost-on-resume", default=False),
)
DEFAULT = {"unparsable-file", "heartbeat", "not-fused"}
EVERY = {one.symbol for one in RULES}


@for_every(
    "select, extend, ignore, expected",
    [
        pytest.param(None, [], [], DEFAULT, id="default"),
        pytest.param(["ALL"], [], [], EVERY, id="all-with-opt-in"),
        pytest.param(["all"], [], [], EVERY, id="all-in-small-letters"),
        pytest.param(["heartbeat"], [], [], {"heartbeat", "unparsable-file"}, id="name"),
        pytest.param(["w7201"], [], [], {"heartbeat", "unparsable-file"}, id="code"),
        pytest.param(["old-heartbeat"], [], [], {"heartbeat", "unparsable-file"}, id="old-name"),
        pytest.param(["redundant"], [], [], {"redundant", "unparsable-file"}, id="opt-in-by-name"),
        pytest.param(["I7209"], [], [], {"redundant", "unparsable-file"}, id="opt-in-by-code"),
        pytest.param(["72"], [], [], {"heartbeat", "unparsable-file"}, id="family-without-opt-in"),
        pytest.param(["I"], [], [], {"unparsable-file"}, id="letter-without-opt-in"),
        pytest.param(["R", "W72"], [], [], {"heartbeat", "not-fused", "unparsable-file"}, id="letter-and-prefix"),
        pytest.param([], [], [], {"unparsable-file"}, id="nothing"),
        pytest.param(None, ["72"], [], DEFAULT | {"redundant"}, id="extend-by-family-with-opt-in"),
        pytest.param(
            ["heartbeat"], ["I73"], [], {"heartbeat", "lost-on-resume", "unparsable-file"}, id="extend-select"
        ),
        pytest.param(None, [], ["72"], {"unparsable-file", "not-fused"}, id="ignore-family"),
        pytest.param(["slow"], [], [], {"not-fused", "unparsable-file"}, id="consequence-without-opt-in"),
        pytest.param(["SLOW"], [], [], {"not-fused", "unparsable-file"}, id="consequence-in-capitals"),
        pytest.param(None, ["slow"], [], DEFAULT | {"lost-on-resume"}, id="extend-by-consequence-with-opt-in"),
        pytest.param(None, [], ["hang"], {"unparsable-file", "not-fused"}, id="ignore-consequence"),
        pytest.param(["W7201"], [], ["hang"], {"heartbeat", "unparsable-file"}, id="a-name-beats-a-consequence"),
        pytest.param(["hang"], [], ["72"], {"unparsable-file"}, id="a-consequence-is-as-specific-as-a-family"),
        pytest.param(["72"], [], ["hang"], {"unparsable-file"}, id="of-two-equal-ones-the-ignoring-wins"),
        pytest.param(["hang"], [], ["W"], {"heartbeat", "unparsable-file"}, id="a-consequence-beats-a-letter"),
        pytest.param(None, [], ["ALL"], set(), id="ignore-all"),
        pytest.param(["72"], [], ["W7201"], {"unparsable-file"}, id="specific-ignore-wins"),
        pytest.param(["W7201"], [], ["72"], {"heartbeat", "unparsable-file"}, id="specific-select-wins"),
        pytest.param(["W7201"], [], ["heartbeat"], {"unparsable-file"}, id="ignore-wins-a-draw"),
        pytest.param(["ALL"], [], ["I"], EVERY - {"redundant", "lost-on-resume"}, id="all-but-a-letter"),
        pytest.param(None, ["redundant"], ["I"], DEFAULT | {"redundant"}, id="extend-beats-a-weaker-ignore"),
        pytest.param(["W"], [], ["unparsable-file"], {"heartbeat"}, id="linter-rule-can-be-ignored"),
    ],
)
def test_one_layer(select: list[str] | None, extend: list[str], ignore: list[str], expected: set[str]) -> None:
    assert selected(RULES, select, extend, ignore) == expected


@pytest.mark.parametrize(
    "layers, expected",
    [
        pytest.param([], DEFAULT, id="none"),
        pytest.param(
            [Layer(ignore=("72",)), Layer(select=("heartbeat",))], {"heartbeat", "unparsable-file"}, id="replaced"
        ),
        pytest.param([Layer(select=("W7201",)), Layer(ignore=("72",))], {"unparsable-file"}, id="command-line-decides"),
        pytest.param(
            [Layer(ignore=("73",)), Layer(extend=("redundant",))], EVERY - {"not-fused", "lost-on-resume"}, id="both"
        ),
    ],
)
def test_layers(layers: list[Layer], expected: set[str]) -> None:
    assert selected_by_layers(RULES, layers) == expected


@for_every(
    "selector, hint",
    [("hartbeat", '"heartbeat"'), ("W7202", '"W7201"'), ("74", ""), ("", ""), ("X", ""), ("not_fused", '"not-fused"')],
)
def test_unknown_selector_names_the_nearest(selector: str, hint: str) -> None:
    with pytest.raises(SelectorError, match=f'unknown rule "{selector}"') as caught:
        selected(RULES, [selector])
    assert hint in str(caught.value)


def test_a_deprecated_rule_is_switched_on_by_its_own_name_alone() -> None:
    old = rule("W7290", "old-rule", default=False)._replace(status="deprecated", successor="new-rule")
    rules = (*RULES, old)
    for layer in (Layer(("ALL",)), Layer(("72",)), Layer(("W7",)), Layer((), ("ALL",))):
        assert "old-rule" not in selected_by_layers(rules, [layer]) and deprecated(rules, [layer]) == ()
    assert "old-rule" not in selected(rules, None, opt_in=True)
    for layer in (Layer(("old-rule",)), Layer(None, ("W7290",))):
        assert "old-rule" in selected_by_layers(rules, [layer]) and deprecated(rules, [layer]) == (old,)
    assert deprecated(rules, [Layer(None, (), ("old-rule",))]) == ()


def test_level_deselects_what_is_less_severe() -> None:
    assert at_level(RULES, EVERY, Severity.WARNING) == {"unparsable-file", "heartbeat"}
    assert at_level(RULES, {"not-fused"}, Severity.INFO) == {"not-fused"}


def test_find_takes_one_rule_only() -> None:
    assert find(RULES, "old-heartbeat") is find(RULES, "w7201") is RULES[1]
    with pytest.raises(SelectorError):
        find(RULES, "72")
    assert named(RULES, "72") == {"heartbeat", "redundant"}
