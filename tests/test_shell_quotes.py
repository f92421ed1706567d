"""The values of shell words are those that bash gives its programs."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest
from collected import for_every

from ldlm_lint.shell import words
from ldlm_lint.shell.quotes import unquoted

VALUES = (
    ("logger='[\"console\",\"wandb\"]'", 'logger=["console","wandb"]'),
    ('"a\\nb"', "a\\nb"),
    ('--sep="\\n"', "--sep=\\n"),
    ("a\\ b", "a b"),
    ('"say \\"hi\\" at \\$5"', 'say "hi" at $5'),
    ("'a'\"b\"'c'", "abc"),
    ("'it'\\''s'", "it's"),
    ("$'tab\\there\\x21\\041'", "tab\there!!"),
    ("key=\"['a', 'b']\"", "key=['a', 'b']"),
    ('{"lr":1}', "{lr:1}"),
    ("--json='{\"lr\": 1e-3}'", '--json={"lr": 1e-3}'),
    ('"one\\\ntwo"', "onetwo"),
)
KEPT = (
    ('"${RUN:-"a b"}"/x', '${RUN:-"a b"}/x'),
    ('"run_$(date "+%Y")"', 'run_$(date "+%Y")'),
    ("`ls 'a b'`", "`ls 'a b'`"),
    ("$(awk '{print $1}' hosts)'.txt'", "$(awk '{print $1}' hosts).txt"),
)
ATOMS = ("a", "b1", "=", "'", '"', "\\", " ", "n", "[", "]", "{", "}", ",", ":", "'x y'", '"p q"', '\\"', "\\'", "$'", "\\n")


@for_every(("raw", "value"), [*VALUES, *KEPT])
def test_quotes_are_removed_as_bash_does(raw: str, value: str) -> None:
    assert unquoted(raw) == words.read_word(raw) == value
    read = words.read_command(f"x {raw} end")
    assert read is not None
    assert [one.text for one in read.words] == ["x", value, "end"]


@for_every(("raw", "value"), [(raw, value) for raw, value in VALUES if "$'" not in raw and "\n" not in raw])
def test_so_are_those_of_assignments(raw: str, value: str) -> None:
    found = words.read_value(raw)
    assert isinstance(found, words.Literal)
    assert found.text == value


@for_every("raw", ["'a", '"a', "$'a", "${A", '"$(a"', "`a"])
def test_an_open_quote_is_no_word(raw: str) -> None:
    assert unquoted(raw) is None
    assert words.read_word(raw) == raw


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_agrees() -> None:
    chance = random.Random(3)
    texts = {"".join(chance.choices(ATOMS, k=chance.randint(1, 7))) for _ in range(1500)}
    wanted = [one for one in sorted(texts) if unquoted(one) is not None and not one.endswith("\\")]
    # A word with bare blanks is several, and braces with a comma are expanded.
    script = "".join(f"set -- {one} 2>/dev/null; printf '%s\\0' \"$#\" \"$1\"\n" for one in wanted)
    out = subprocess.run(["bash", "+B", "-f", "-c", script], capture_output=True, check=True).stdout.decode().split("\0")
    counts, values = out[:-1:2], out[1::2]
    assert len(counts) == len(wanted)
    judged = [(raw, value) for raw, count, value in zip(wanted, counts, values, strict=True) if count == "1" and raw == raw.strip()]
    assert len(judged) > 200
    for raw, value in judged:
        assert unquoted(raw) == value, raw
