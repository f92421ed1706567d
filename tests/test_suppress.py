"""Which comments silence which findings, in Python and in shell, and that pylint agrees about its own."""

from __future__ import annotations

import contextlib
import io
import json
import textwrap
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.model import Consequence, Finding, Rule, Span
from ldlm_lint.pragmas import comments
from ldlm_lint.source import Kind, Source
from ldlm_lint.suppress import suppressions

PATH = "/p/file"


def rule(symbol: str = "eval-used", code: str = "W0123", old_names: tuple[str, ...] = ("eval-old",)) -> Rule:
    texts = dict.fromkeys(("message", "summary", "rationale", "cost", "exceptions", "versions", "verification"), "x")
    return Rule(code=code, symbol=symbol, consequence=Consequence.SLOW, references=(), reads=("py",), triggers=(b"",), old_names=old_names, **texts)


def source_of(text: str, kind: Kind = Kind.PYTHON) -> Source:
    return Source(PATH, textwrap.dedent(text).lstrip("\n").encode(), kind)


def silenced(source: Source, first: int, last: int | None = None, *, of: Rule | None = None) -> bool:
    """Whether a finding that spans whole lines is silenced."""
    of = of or rule()
    last = last or first
    span = Span(source.path, source.line_starts[first - 1], source.line_starts[last - 1] + len(source.lines[last - 1]))
    return suppressions(source).covers(Finding(of.symbol, of.code, span), of)


@for_every(
    "comment, expected",
    [
        pytest.param("# ldlm-lint: ignore[eval-used] because", True, id="name"),
        pytest.param("# ldlm-lint: ignore[W0123]", True, id="code"),
        pytest.param("# ldlm-lint: ignore[eval-old]", True, id="old-name"),
        pytest.param("# ldlm-lint: ignore[other, eval-used]", True, id="one-of-two"),
        pytest.param("# ldlm-lint: ignore", True, id="bare"),
        pytest.param("# ldlm-lint: ignore the config wins", True, id="bare-with-reason"),
        pytest.param("#ldlm-lint:ignore[eval-used]", True, id="no-blanks"),
        pytest.param("# noqa: E501  # ldlm-lint: ignore[eval-used]", True, id="behind-another-pragma"),
        pytest.param("# pylint: disable=eval-used", True, id="pylint-name"),
        pytest.param("# pylint: disable=W0123", True, id="pylint-code"),
        pytest.param("# noqa # pylint: disable=other, eval-used", True, id="pylint-list"),
        pytest.param("# ldlm-lint: ignore[0123]", True, id="number"),
        pytest.param("# ldlm-lint: ignore[w0123]", True, id="lower-case-code"),
        pytest.param("# noqa: W0123", True, id="noqa"),
        pytest.param("#noqa:w0123", True, id="noqa-no-blanks"),
        pytest.param("# NOQA: E501, W0123 we trust this line", True, id="noqa-list-and-reason"),
        pytest.param("# noqa: E501 W0123", True, id="noqa-blanks"),
        pytest.param("# noqa: eval-used", True, id="noqa-name"),
        pytest.param("# noqa: eval-old", True, id="noqa-old-name"),
        pytest.param("# noqa: 0123", True, id="noqa-number"),
        pytest.param("# fmt: skip  # noqa: W0123", True, id="noqa-behind-another"),
        pytest.param("# noqa", False, id="noqa-bare"),
        pytest.param("# noqa: E501", False, id="noqa-of-others"),
        pytest.param("# noqa: PLW0123", False, id="noqa-longer-prefix"),
        pytest.param("# noqa W0123", False, id="noqa-without-colon"),
        pytest.param("# no noqa: none here", False, id="noqa-prose"),
        pytest.param("# ldlm-lint: ignore[other]", False, id="another-rule"),
        pytest.param("# ldlm-lint: ignore[]", False, id="no-name"),
        pytest.param("# ldlm-lint: ignore[eval-used", False, id="bracket-left-open"),
        pytest.param("# ldlm-lint: ignored", False, id="another-word"),
        pytest.param("# ldlm-lint: ignore-next", False, id="unknown-verb"),
        pytest.param("# pylint: disable=other", False, id="pylint-other"),
        pytest.param("# a word about ldlm-lint", False, id="prose"),
    ],
)
def test_comment_behind_a_line(comment: str, expected: bool) -> None:
    source = source_of(f"first()\neval(a)  {comment}\nlast()\n")
    assert silenced(source, 2) is expected
    assert not silenced(source, 1)
    assert not silenced(source, 3)


@for_every(
    "text, lines",
    [
        pytest.param('x = "# ldlm-lint: ignore"\n', (), id="in-a-string"),
        pytest.param('"""\n# ldlm-lint: ignore\n"""\ny = 1\n', (), id="in-a-docstring"),
        pytest.param("# ldlm-lint: ignore\nx = 1\ny = 1\n", (1, 2), id="alone-above"),
        pytest.param("# ldlm-lint: ignore\n\n# more\nx = 1\ny = 1\n", (1, 3, 4), id="alone-comments-between"),
        pytest.param("# ldlm-lint: ignore\nx = f(\n    a,\n)\ny = 1\n", (1, 2, 3, 4), id="alone-above-a-statement"),
        pytest.param("x = f(\n    a,\n)  # ldlm-lint: ignore\ny = 1\n", (1, 2, 3), id="behind-a-statement"),
        pytest.param("x = f(\n    a,  # ldlm-lint: ignore\n    b,\n)\n", (2,), id="inside-a-statement"),
        pytest.param("x = f(\n    # ldlm-lint: ignore\n    b,\n)\n", (2, 3), id="alone-inside-a-statement"),
        pytest.param("def f():\n    # ldlm-lint: ignore\n    x = 1\n    y = 1\n", (2, 3), id="alone-in-a-body"),
        pytest.param("# ldlm-lint: ignore-file\nx = 1\ny = 1\n", (1, 2, 3), id="file"),
        pytest.param("x = 1\ny = 1\n# ldlm-lint: ignore-file[eval-used]\n", (1, 2, 3), id="file-at-the-end"),
        pytest.param("# ldlm-lint: ignore-file[other]\nx = 1\n", (), id="file-another-rule"),
        pytest.param("def f(:\n    x = 1  # ldlm-lint: ignore\n    y = 1\n", (2,), id="syntax-error"),
        pytest.param('x = (1\n"""\ny = 1  # ldlm-lint: ignore\n', (3,), id="does-not-tokenize"),
        pytest.param("# pylint: skip-file\nx = 1\n", (1, 2), id="pylint-skip-file"),
    ],
)
def test_python_lines(text: str, lines: tuple[int, ...]) -> None:
    source = source_of(text)
    count = len(source.lines) - 1
    got = tuple(line for line in range(1, count + 1) if silenced(source, line))
    # A comment's own line holds no finding, so whether it is covered is not part of the contract.
    own = {comment.line for comment in comments(source) if comment.alone}
    assert set(got) - own == set(lines) - own


@for_every(
    "text, lines",
    [
        pytest.param("export A=1  # ldlm-lint: ignore\nexport B=1\n", {1}, id="behind"),
        pytest.param("# ldlm-lint: ignore\nexport A=1\nexport B=1\n", {2}, id="alone-above"),
        pytest.param("# ldlm-lint: ignore\ntorchrun \\\n  a.py \\\n  --b\nexport B=1\n", {2, 3, 4}, id="continued"),
        pytest.param("torchrun \\\n  a.py  # ldlm-lint: ignore\nexport B=1\n", {1, 2}, id="end-of-continued"),
        pytest.param("# ldlm-lint: ignore\na \\\n  # b\nexport B=1\n", {2}, id="continued-into-a-comment"),
        pytest.param("# ldlm-lint: ignore\na \\\n\nexport B=1\n", {2, 3}, id="continued-into-nothing"),
        pytest.param("echo '# ldlm-lint: ignore'\n", set(), id="single-quotes"),
        pytest.param('echo "\n# ldlm-lint: ignore\n"\nx=1\n', set(), id="double-quotes-over-lines"),
        pytest.param("echo a# ldlm-lint: ignore\n", set(), id="not-at-a-word-start"),
        pytest.param("echo ${#a} $# # ldlm-lint: ignore\nx=1\n", {1}, id="hash-that-is-no-comment"),
        pytest.param("echo it\\'s  # ldlm-lint: ignore\nx=1\n", {1}, id="escaped-quote"),
        pytest.param("echo $'it\\'s'  # ldlm-lint: ignore\nx=1\n", {1}, id="ansi-c-quotes"),
        pytest.param("# don't\nx=1  # ldlm-lint: ignore\ny=1\n", {2}, id="apostrophe-in-a-comment"),
        pytest.param("cat <<'E'\ndon't\nE\nx=1  # ldlm-lint: ignore\ny=1\n", {4}, id="apostrophe-in-a-heredoc"),
        pytest.param("cat <<-E\n\tdon't\n\tE\nx=1  # ldlm-lint: ignore\ny=1\n", {4}, id="heredoc-with-tabs"),
        pytest.param("cat <<<it\nx=1  # ldlm-lint: ignore\ny=1\n", {2}, id="here-string"),
        pytest.param('echo "a <<E"\nx=1  # ldlm-lint: ignore\nE\n', {2}, id="heredoc-in-quotes"),
        pytest.param("((n = 1 << k))\nx=1  # ldlm-lint: ignore\ny=1\n", {2}, id="shift"),
        pytest.param("python - <<E\nx = 1  # ldlm-lint: ignore\nE\ny=1\n", {2}, id="inside-a-heredoc"),
        pytest.param("x='open\ny=1  # ldlm-lint: ignore\nz=1\n", {2}, id="quote-never-closed"),
        pytest.param("A=(\n  1\n  2  # ldlm-lint: ignore\n)\n", {3}, id="array-element"),
        pytest.param("x=1  # pylint: disable=eval-used\n", set(), id="pylint-is-for-python"),
    ],
)
def test_shell_lines(text: str, lines: set[int]) -> None:
    source = source_of(text, Kind.SHELL)
    own = {comment.line for comment in comments(source) if comment.alone}
    assert {line for line in range(1, len(source.lines)) if silenced(source, line)} - own == lines


def test_bare_pragma_inside_a_finding_silences_only_what_begins_or_ends_there() -> None:
    source = source_of("class A:\n    x = 1  # ldlm-lint: ignore\n    y = 1\n")
    assert not silenced(source, 1, 3)
    assert silenced(source, 1, 2)
    named = source_of("class A:\n    x = 1  # ldlm-lint: ignore[eval-used]\n    y = 1\n")
    assert silenced(named, 1, 3)


def test_carriage_returns_and_a_byte_order_mark_do_not_move_lines() -> None:
    source = Source(PATH, b"\xef\xbb\xbfa = 1\r\n# ldlm-lint: ignore\r\nb = 1\r\nc = 1\r\n", Kind.PYTHON)
    assert [silenced(source, line) for line in (1, 3, 4)] == [False, True, False]


SCOPES = {
    "module": "# pylint: disable=eval-used\neval(a)\ndef f():\n    eval(b)\n",
    "rest-of-module": "eval(a)\n# pylint: disable=eval-used\neval(b)\ndef f():\n    eval(b)\n",
    "function-first": "def f():\n    # pylint: disable=eval-used\n    eval(a)\n    eval(b)\neval(c)\n",
    "function-docstring": 'def f():\n    """doc"""\n    # pylint: disable=eval-used\n    eval(a)\neval(c)\n',
    "function-later": "def f():\n    eval(a)\n    # pylint: disable=eval-used\n    eval(b)\neval(c)\n",
    "def-line": "def f(x):  # pylint: disable=eval-used\n    eval(a)\n    eval(b)\neval(c)\n",
    "class-line": "class A:  # pylint: disable=eval-used\n    x = eval(a)\n    def f(s):\n        eval(b)\neval(c)\n",
    "if-line": "if eval(x):  # pylint: disable=eval-used\n    eval(a)\nelse:\n    eval(b)\neval(c)\n",
    "if-body": "if x:\n    # pylint: disable=eval-used\n    eval(a)\n    eval(b)\nelse:\n    eval(c)\neval(d)\n",
    "else-body": "if x:\n    eval(a)\nelse:\n    # pylint: disable=eval-used\n    eval(b)\n    eval(c)\neval(d)\n",
    "for-body": "for x in y:\n    eval(a)\n    # pylint: disable=eval-used\n    eval(b)\neval(d)\n",
    "try": "try:\n    # pylint: disable=eval-used\n    eval(a)\nexcept E:\n    eval(b)\nfinally:\n    eval(c)\n",
    "with": "with x:\n    # pylint: disable=eval-used\n    eval(a)\neval(b)\n",
    "while": "while x:  # pylint: disable=eval-used\n    eval(a)\neval(b)\n",
    "next": "# pylint: disable-next=eval-used\neval(a)\neval(b)\n",
    "next-def": "# pylint: disable-next=eval-used\ndef f():\n    eval(a)\neval(b)\n",
    "enable": "# pylint: disable=eval-used\neval(a)\n# pylint: enable=eval-used\neval(b)\n",
    "enable-in-function": (
        "# pylint: disable=eval-used\ndef f():\n    eval(a)\n    # pylint: enable=eval-used\n    eval(b)\neval(c)\n"
    ),
    "enable-one-line": "# pylint: disable=eval-used\neval(a)\neval(b)  # pylint: enable=eval-used\neval(c)\n",
    "statement-first-line": "x = f(  # pylint: disable=eval-used\n    eval(a),\n    eval(b),\n)\neval(c)\n",
    "statement-middle": "x = f(\n    eval(a),  # pylint: disable=eval-used\n    eval(b),\n)\neval(c)\n",
    "statement-last-line": "x = f(\n    eval(a),\n    eval(b),\n)  # pylint: disable=eval-used\neval(c)\n",
    "statement-alone": "x = f(\n    # pylint: disable=eval-used\n    eval(a),\n    eval(b),\n)\neval(c)\n",
    "backslash": "import y\nx = eval(a) + \\\n    y  # pylint: disable=eval-used\neval(c)\n",
    "decorator": "@d(eval(a))  # pylint: disable=eval-used\ndef f():\n    eval(b)\neval(c)\n",
    "end-of-function": "def f():\n    eval(a)\n    # pylint: disable=eval-used\neval(b)\n",
    "two-blocks": (
        "def f():\n    # pylint: disable=eval-used\n    eval(a)\ndef g():\n    eval(b)\n    # pylint: disable=W0123\n"
        "    eval(c)\neval(d)\n"
    ),
    "category": "# pylint: disable=W\neval(a)\n",
    "all": "def f():\n    eval(a)  # pylint: disable=all\neval(b)\n",
    "reason": "eval(a)  # pylint: disable=eval-used; it is ours\neval(b)\n",
    "two-actions": "# pylint: disable=eval-used\neval(a)\neval(b) # pylint: enable=eval-used, disable=other\n",
    "in-a-string": 'x = "# pylint: disable=eval-used"; eval(a)\neval(b)\n',
    "case": "match x:\n    case 1:\n        # pylint: disable=W0123\n        eval(a)\n    case _:\n        eval(b)\n",
    "async": "async def f():  # pylint: disable=eval-used\n    eval(a)\neval(b)\n",
    "lambda": "f = lambda: (  # pylint: disable=eval-used\n    eval(a)\n)\neval(b)\n",
}


@for_every("name", SCOPES)
def test_pylint_scopes_are_those_of_pylint(name: str, tmp_path: Path) -> None:
    from pylint.lint import Run
    from pylint.reporters.json_reporter import JSON2Reporter

    text = SCOPES[name]
    path = tmp_path / "module.py"
    path.write_text(text)
    output = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        options = ["--disable=all", "--enable=eval-used", "--rcfile=", "--persistent=n"]
        Run([*options, str(path)], reporter=JSON2Reporter(output), exit=False)
    reported = {message["line"] for message in json.loads(output.getvalue())["messages"]}
    source = source_of(text)
    present = {number for number, line in enumerate(source.lines, start=1) if "eval(" in line}
    assert {line for line in present if not silenced(source, line)} == reported


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("export A=1  # noqa: W0123\n", Kind.SHELL, 1),
        ("a: 1  # noqa: W0123\n", Kind.YAML, 1),
        ("a = 1  # noqa: W0123\n", Kind.TOML, 1),
        ("# noqa: W0123\nA=1\n", Kind.DOTENV, 2),
        ("# noqa: W0123\nENV A=1\n", Kind.DOCKERFILE, 2),
    ],
)
def test_a_noqa_works_in_every_kind_of_file(text: str, kind: Kind, line: int) -> None:
    assert silenced(source_of(text, kind), line)
    assert not silenced(source_of(text.replace("W0123", "W9999"), kind), line)


def test_a_noqa_behind_a_statement_is_about_the_whole_statement_and_no_other() -> None:
    source = source_of("a = f(\n    1,\n)  # noqa: W0123\nb = 2\n")
    assert silenced(source, 1, 3)
    assert not silenced(source, 4)
    assert not silenced(source_of('a = "# noqa: W0123"\n'), 1)
