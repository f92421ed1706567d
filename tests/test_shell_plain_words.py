"""Commands that are read without bashlex have the words that bashlex finds, and are read in one pass."""

from __future__ import annotations

import random
import time

import bashlex
import pytest
from collected import for_every

from ldlm_lint.shell import words
from ldlm_lint.shell.plain_words import PlainWord, plain_words
from ldlm_lint.shell.quotes import unquoted

ATOMS = (
    *("a", "b1", "A=", "X+=", "--x=", '"', "'", "$", "${", "}", "$(", ")", "$A", "${B}", "${C:-", "${D-", "${L[$I]}", "$1", "$@"),
    *(" ", " ", "\t", " \\\n", "\\\n", "\\", "|", " | ", "(", "{", "[", "]", "~", "~/", "<", ">", "é", "²", "12", ".", "/", "#", "!", "%"),
    *("^", "-", "in", "time", "=", "*", "?", "&", ";", "@", "`", "\n", '\\"', '"$A"', '"${B}"', "'q r'", '"it\'s"', '"p q"'),
    *("$(date +%Y)", '"$(f "${X}")"', "awk", "'{print $1}'", '${P:-"q"}', "\\ ", "export"),
)
READ = (
    "python train.py --lr 1e-3",
    "CUDA_VISIBLE_DEVICES=$GPU torchrun \\\n  --nproc_per_node=${N} \\\n  main.py name=\"run-$N\"",
    "x \"${MASTER_ADDR:-$(hostname -I | awk '{print $1}')}\"",
    "x \"run_${SIZE}nodes_$(date +%Y%m%d)\"",
    'x $(scale "${STEPS}")',
    'x ${PARTITION:-"GPU"}',
    "x crop='(0.4, 1.0)'",
    'x "import torch; print(f\'{torch.__version__}\', \\"N/A\\")"',
    "x ~/data/${NAME}",
    "x '{print $1}')",
    "python eval.py --model <model name> \\\n  --steps 10",
    'a > log b>"$LOG" c < /dev/null',
)
LEFT = (
    *("", "a; b", "a | b", "a 2> log", "a1> log", "a >> log", "a >& b", "a >(b)", "a <<b", "a >", "> log a", "A=1 >b c", "a > in", "if a", "export A=b"),
    *("x $(a $(b))", "x `a`", "x 'a'b'c'", "x\\\n y", "x (", "x é", "x\ny", "a # b"),
)


def told_by_bashlex(text: str) -> tuple[PlainWord, ...] | None:
    """The words of a simple command, none where bashlex cannot read it, None where it sees more than words."""
    try:
        trees = bashlex.parse(text)
    except Exception:  # its grammar fails in many ways
        return ()
    if len(trees) != 1 or trees[0].kind != "command" or any(part.kind not in ("assignment", "word", "redirect") for part in trees[0].parts):
        return None
    words = [part for part in trees[0].parts if part.kind != "redirect"]
    return tuple(PlainWord(*part.pos, unquoted(text[slice(*part.pos)]) or "", not part.parts, part.kind == "assignment") for part in words)


@for_every("text", READ)
def test_what_scripts_are_full_of_is_read(text: str) -> None:
    found = plain_words(text)
    assert found is not None and found == told_by_bashlex(text)


@for_every("text", LEFT)
def test_everything_else_is_left(text: str) -> None:
    assert plain_words(text) is None


def test_what_is_read_is_read_as_bashlex_does() -> None:
    chance = random.Random(7)
    read = 0
    for _ in range(4000):
        text = ("x " if chance.random() < 0.5 else "") + "".join(chance.choices(ATOMS, k=chance.randint(1, 9)))
        found = plain_words(text)
        if found is not None:
            read += 1
            assert found == told_by_bashlex(text), text
    assert read > 200


def test_redirections_are_left_out_as_bashlex_does() -> None:
    chance = random.Random(8)
    read = 0
    for _ in range(3000):
        text = "x " + "".join(chance.choices((*ATOMS[:4], *ATOMS[18:22], "<", ">", "<", ">", " > ", '"$A"', "'q r'", "a", "b"), k=chance.randint(2, 8)))
        found = plain_words(text)
        if found is not None and ("<" in text or ">" in text):
            read += 1
            assert found == told_by_bashlex(text), text
    assert read > 200


@for_every("part", ["a", "$a", '"$a"', "$(a ", '"${A:-', '${A:-"x"', "a=$(b 'c' | d \"e\") ", "~a/", '"\\"', 'x"$(f "a" '])
def test_a_long_command_is_read_in_one_pass(part: str) -> None:
    text = part * (20_000 // len(part)) + "("
    start = time.process_time()
    assert plain_words(text) is None
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("raw", "text"),
    [('"[\\"a\\", \\"b\\"]"', '["a", "b"]'), ('"\\"4x1\\""', '"4x1"'), ("a'b c'", "ab c"), ("~/data", None), ('"a" b', None), ("a\\ b", "a b")],
)
def test_the_value_of_a_plain_word_is_what_bashlex_makes_of_it(raw: str, text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    found = words.read_value(raw)
    assert (found and (found.text, found.start, found.end)) == (text and (text, 0, len(raw)))
    monkeypatch.setattr(words, "_plain", lambda _: None)
    assert words.read_value(raw) == found


def test_a_plain_value_loads_no_bashlex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_bashlex", lambda: pytest.fail("loaded"))
    assert words.read_value('"\\"4x1\\""') == words.Literal('"4x1"', 0, 9)
