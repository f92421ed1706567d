"""`ldlm-lint rules` fits the terminal, shows the consequence first and takes every name that a user would try."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ldlm_lint.cli import main
from ldlm_lint.model import Consequence
from ldlm_lint.report.rule_list import listed, ordered
from ldlm_lint.rules import ALL, by_symbol


def shown(width: int | None, rules=ALL) -> list[str]:
    return ["".join(text for text, _ in pieces) for pieces in listed(rules, width)]


def listing(capsys: pytest.CaptureFixture[str], *names: str) -> list[str]:
    """The names of the rules that the command lists, in its order."""
    assert main(["rules", *names]) == 0
    return [line.split()[2] for line in capsys.readouterr().out.splitlines()[1:]]


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize("width", [80, 100, 116, 120, 200])
def test_no_line_is_wider_than_the_terminal(width):
    lines = shown(width)
    assert max(map(len, lines)) <= width, max(lines, key=len)
    words = " ".join(" ".join(lines).split())
    if width < 116:
        assert all(" ".join(rule.summary.split()) in words for rule in ALL)


def test_a_pipe_gets_one_line_for_each_rule():
    lines = shown(None)
    assert len(lines) == len(ALL) + 1
    assert lines[0].split() == ["consequence", "code", "name", "fix", "what", "it", "finds"]
    for rule, text in zip(ordered(ALL), lines[1:], strict=True):
        assert text.split()[:3] == [rule.consequence.value, rule.code, rule.symbol]
        assert text.endswith(rule.summary)


def test_a_wide_terminal_wraps_in_the_last_column_and_a_narrow_one_below():
    rule = [by_symbol["dataloader-in-main-process"]]
    assert shown(100, rule)[1] == (
        "slow         W7103  dataloader-in-main-process  unsafe  A training loader with `num_workers=0` or no"
    )
    assert shown(80, rule)[1:] == [
        "slow         W7103  dataloader-in-main-process  unsafe",
        "    A training loader with `num_workers=0` or no `num_workers`, over a dataset",
        "    that does work for each item.",
    ]


def test_families_stay_together_with_the_worst_consequence_first():
    rules = ordered(ALL)
    assert sorted(rule.symbol for rule in rules) == sorted(rule.symbol for rule in ALL)
    keys = [(rule.family, rule.consequence.rank) for rule in rules]
    assert keys == sorted(keys)


def test_an_opt_in_rule_says_so():
    assert shown(None, [by_symbol["dead-config-key"]])[1].split()[4] == "(opt-in)"


def test_rules_are_chosen_by_family_code_number_and_a_part_of_the_name(capsys):
    assert {by_symbol[name].family for name in listing(capsys, "72")} == {"72"}
    assert listing(capsys, "W7604") == listing(capsys, "w7604") == listing(capsys, "7604") == ["checkpoint-load-unspecified"]
    assert set(listing(capsys, "dataloader")) == {rule.symbol for rule in ALL if "dataloader" in rule.symbol}
    assert set(listing(capsys, "DataLoader", "7604")) == {*listing(capsys, "dataloader"), "checkpoint-load-unspecified"}


@pytest.mark.parametrize("word", [one.value for one in Consequence])
def test_rules_are_chosen_by_consequence(word, capsys):
    assert set(listing(capsys, word)) == {rule.symbol for rule in ALL if rule.consequence.value == word}


@pytest.mark.parametrize("word", ["nix", "xy", "lo"])
def test_a_word_that_no_name_holds_is_an_error(word, capsys):
    assert main(["rules", word]) == 2
    assert f'unknown rule "{word}"' in capsys.readouterr().err


def test_colour_is_for_terminals_and_for_who_asks(capsys):
    assert main(["rules", "72"]) == 0
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    assert main(["rules", "72", "--color", "always"]) == 0
    assert "\x1b[" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_terminal_decides_the_width():
    import fcntl
    import struct
    import termios

    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")} | {"TERM": "xterm"}
    with subprocess.Popen([sys.executable, "-m", "ldlm_lint", "rules", "7604"], stdout=slave, env=environment):
        os.close(slave)
        text = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:
                break
            if not part:
                break
            text += part
    os.close(master)
    assert b"\x1b[" in text
    assert b"\r\n    `torch.load` that does not say" in text
