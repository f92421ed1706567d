"""``--add-ignores``: where comments go, that the code stays what it was, and that the findings are silent afterwards."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest
from collected import for_every
from harness import cases, lint, materialize
from outline import outline

from ldlm_lint.add_ignores import REASON, add_ignores, same_code
from ldlm_lint.cli import main
from ldlm_lint.config import Config
from ldlm_lint.configs.read import read
from ldlm_lint.fixing import ignore_all
from ldlm_lint.model import Consequence, Finding, Rule, Span
from ldlm_lint.rules.linter import INTERNAL_ERROR, UNREADABLE_FILE, UNUSED_SUPPRESSION
from ldlm_lint.source import Kind, Source
from ldlm_lint.suppress import suppressions

NOTE = f"# ldlm-lint: ignore[eval-used] {REASON}"
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\n"


def rule(symbol: str = "eval-used", code: str = "W0123") -> Rule:
    texts = dict.fromkeys(("message", "summary", "rationale", "cost", "exceptions", "versions", "verification"), "x")
    return Rule(code=code, symbol=symbol, consequence=Consequence.SLOW, references=(), reads=("py",), triggers=(b"",), **texts)


RULES = {one.symbol: one for one in (rule(), rule("exec-used", "W0122"))}


def commented(
    text: str, piece: str = "eval(a)", kind: Kind = Kind.PYTHON, *, symbols: tuple[str, ...] = ("eval-used",)
) -> str:
    """The text with comments about a finding at each place where ``piece`` stands; raises where there is none."""
    data = text.encode()
    source = Source.from_bytes("/p/file", data, kind)
    found, start = [], -1
    while (start := data.find(piece.encode(), start + 1)) >= 0:
        span = Span(source.path, start, start + len(piece.encode()))
        found += [Finding(symbol, RULES[symbol].code, span) for symbol in symbols]
    result = add_ignores(found, {source.path: source}, RULES)
    if result.problems:
        raise LookupError(result.problems[0].message)
    assert result.silenced == len(found)
    after = result.contents.get(source.path, data)
    again = Source.from_bytes(source.path, after, kind)
    assert same_code(source, again)
    return after.decode()


@for_every(
    "before, after",
    [
        pytest.param("x = eval(a)\n", f"x = eval(a)  {NOTE}\n", id="one-line"),
        pytest.param("x = eval(a)", f"x = eval(a)  {NOTE}", id="no-line-end"),
        pytest.param("x = eval(a) \n", f"x = eval(a)  {NOTE}\n", id="blank-behind"),
        pytest.param("x = f(\n    eval(a),\n)\n", f"x = f(\n    eval(a),  {NOTE}\n)\n", id="inside-a-statement"),
        pytest.param("x = eval(a)  # why\n", f"x = eval(a)  # why  {NOTE}\n", id="behind-a-comment"),
        pytest.param("x = eval(a)  # noqa: S307\n", f"x = eval(a)  # noqa: S307  {NOTE}\n", id="behind-a-pragma"),
        pytest.param(
            "x = eval(a)  # ldlm-lint: ignore[other] it is ours\n",
            "x = eval(a)  # ldlm-lint: ignore[other, eval-used] it is ours\n",
            id="name-added",
        ),
        pytest.param(
            "# ldlm-lint: ignore[other] ours\nx = eval(a)\n",
            "# ldlm-lint: ignore[other, eval-used] ours\nx = eval(a)\n",
            id="name-added-above",
        ),
        pytest.param("x = eval(a)  # ldlm-lint: ignore[]\n", "x = eval(a)  # ldlm-lint: ignore[eval-used]\n", id="empty"),
        pytest.param(
            "# ldlm-lint: ignore-file[other]\nx = eval(a)\n",
            f"# ldlm-lint: ignore-file[other]\nx = eval(a)  {NOTE}\n",
            id="a-pragma-for-the-file-is-left",
        ),
        pytest.param("x = eval(a) + \\\n    b\n", f"{NOTE}\nx = eval(a) + \\\n    b\n", id="backslash"),
        pytest.param(
            "if b:\n    x = b + \\\n        eval(a) + \\\n        c\n",
            f"if b:\n    {NOTE}\n    x = b + \\\n        eval(a) + \\\n        c\n",
            id="between-backslashes",
        ),
        pytest.param('x = eval(a), """\n"""\n', f'{NOTE}\nx = eval(a), """\n"""\n', id="string-goes-on"),
        pytest.param('x = """\n""", eval(a)\n', f'x = """\n""", eval(a)  {NOTE}\n', id="string-ends"),
        pytest.param('x = f"""\n{eval(a)}\n"""\n', f'{NOTE}\nx = f"""\n{{eval(a)}}\n"""\n', id="inside-a-string"),
        pytest.param("if b:\n    pass\nelif eval(a):\n    pass\n", None, id="elif"),
        pytest.param("x = 1; y = eval(a)\n", f"x = 1; y = eval(a)  {NOTE}\n", id="semicolon"),
        pytest.param(f"x = eval(a), '{'y' * 90}'\n", f"{NOTE}\nx = eval(a), '{'y' * 90}'\n", id="too-long"),
        pytest.param(
            f"f(\n    b,\n    eval(a), '{'y' * 90}'\n)\n",
            f"f(\n    b,\n    {NOTE}\n    eval(a), '{'y' * 90}'\n)\n",
            id="too-long-inside",
        ),
        pytest.param("x = eval(a)\r\ny = 1\r\n", f"x = eval(a)  {NOTE}\r\ny = 1\r\n", id="carriage-return"),
        pytest.param(
            "x = eval(a) + \\\r\n    b\r\n", f"{NOTE}\r\nx = eval(a) + \\\r\n    b\r\n", id="carriage-return-above"
        ),
        pytest.param("\ufeffx = eval(a)\n", f"\ufeffx = eval(a)  {NOTE}\n", id="byte-order-mark"),
        pytest.param("\ufeffx = eval(a) + \\\n    b\n", f"\ufeff{NOTE}\nx = eval(a) + \\\n    b\n", id="mark-above"),
        pytest.param("ü = 'ü', eval(a)\n", f"ü = 'ü', eval(a)  {NOTE}\n", id="wide"),
        pytest.param("\tx = (\n", None, id="nothing-found"),
        pytest.param("x = (eval(a)\ny = 1\n", f"x = (eval(a)  {NOTE}\ny = 1\n", id="syntax-error"),
        pytest.param("@f(eval(a))\ndef g(): pass\n", f"@f(eval(a))  {NOTE}\ndef g(): pass\n", id="decorator"),
        pytest.param("x = eval(a)\ny = eval(a)\n", f"x = eval(a)  {NOTE}\ny = eval(a)  {NOTE}\n", id="two-lines"),
        pytest.param("x = eval(a), eval(a)\n", f"x = eval(a), eval(a)  {NOTE}\n", id="twice-on-a-line"),
    ],
)
def test_python(before: str, after: str | None) -> None:
    got = commented(before)
    assert got == (before.replace("eval(a):", f"eval(a):  {NOTE}") if after is None else after)
    assert commented(got) == got


@for_every(
    "before, after",
    [
        pytest.param("export A=1\n", f"export A=1  {NOTE}\n", id="one-line"),
        pytest.param("a \\\n  A=1 \\\n  b\n", f"{NOTE}\na \\\n  A=1 \\\n  b\n", id="continued"),
        pytest.param("A=1 \\\n  b\n", f"{NOTE}\nA=1 \\\n  b\n", id="continued-first"),
        pytest.param("a \\\n  A=1\n", f"a \\\n  A=1  {NOTE}\n", id="continued-last"),
        pytest.param("  x && \\\n  A=1 \\\n  b\n", f"  {NOTE}\n  x && \\\n  A=1 \\\n  b\n", id="list"),
        pytest.param("x=(\n  A=1\n)\n", f"x=(\n  A=1  {NOTE}\n)\n", id="array"),
        pytest.param('A=1 echo "\n"\n', f'{NOTE}\nA=1 echo "\n"\n', id="quote-goes-on"),
        pytest.param("A=1 cat <<E\n$b\nE\n", f"A=1 cat <<E  {NOTE}\n$b\nE\n", id="heredoc"),
        pytest.param("cat <<E >config\nA=1\nE\n", f"{NOTE}\ncat <<E >config\nA=1\nE\n", id="inside-a-heredoc"),
        pytest.param("if x; then A=1; fi\n", f"if x; then A=1; fi  {NOTE}\n", id="one-line-if"),
        pytest.param("#!/bin/sh\nA=1 \\\n b\n", f"#!/bin/sh\n{NOTE}\nA=1 \\\n b\n", id="shebang"),
        pytest.param("a \\\n  # A=1 \\\n  b\n", f"{NOTE}\na \\\n  # A=1 \\\n  b\n", id="continued-into-a-comment"),
        pytest.param("a \\ # A=1\n  b\n", f"a \\ # A=1  {NOTE}\n  b\n", id="blank-behind-the-backslash"),
        pytest.param("f() {\n\tA=1 b \\\n\t  c\n}\n", f"f() {{\n\t{NOTE}\n\tA=1 b \\\n\t  c\n}}\n", id="tabs"),
        pytest.param("A=1 b | \\\r\n  c\r\n", f"{NOTE}\r\nA=1 b | \\\r\n  c\r\n", id="carriage-return"),
        pytest.param(
            "A=1 # ldlm-lint: ignore[W7201] ours\n", "A=1 # ldlm-lint: ignore[W7201, eval-used] ours\n", id="name-added"
        ),
        pytest.param(
            "# ldlm-lint: ignore[other] ours\na \\\n  A=1 \\\n  b\n",
            "# ldlm-lint: ignore[other, eval-used] ours\na \\\n  A=1 \\\n  b\n",
            id="name-added-above",
        ),
    ],
)
def test_shell(before: str, after: str) -> None:
    got = commented(before, "A=1", Kind.SHELL)
    assert got == after
    assert commented(got, "A=1", Kind.SHELL) == got


@pytest.mark.parametrize(
    "text",
    ["#!/bin/sh A=1\n", "#!/bin/sh\n"],
    ids=["the-shebang", "nothing"],
)
def test_where_no_comment_can_be_the_file_is_left(text: str) -> None:
    if "A=1" not in text:
        assert commented(text, "A=1", Kind.SHELL) == text
        return
    with pytest.raises(LookupError, match="no ignore comment for eval-used is possible"):
        commented(text, "A=1", Kind.SHELL)


def test_two_rules_share_a_comment() -> None:
    got = commented("x = eval(a)\n", symbols=("eval-used", "exec-used"))
    assert got == f"x = eval(a)  # ldlm-lint: ignore[eval-used, exec-used] {REASON}\n" or got == (
        f"x = eval(a)  # ldlm-lint: ignore[exec-used, eval-used] {REASON}\n"
    )


def test_a_declared_encoding_stays_where_it_counts() -> None:
    before = "# -*- coding: latin-1 -*-\nx = eval(a), 'é' + \\\n  b\n"
    data = before.encode("latin-1")
    source = Source.from_bytes("/p/file", data, Kind.PYTHON)
    start = data.index(b"eval")
    result = add_ignores([Finding("eval-used", "W0123", Span("/p/file", start, start + 7))], {"/p/file": source}, RULES)
    lines = result.contents["/p/file"].split(b"\n")
    assert lines[:2] == [b"# -*- coding: latin-1 -*-", NOTE.encode()]


DOCUMENTS = {".yaml": Kind.YAML, ".yml": Kind.YAML, ".json": Kind.JSON, ".toml": Kind.TOML}
# Of a comment that silences nothing, a comment that silences it would say the same again.
WITHOUT_PLACE = (UNREADABLE_FILE.symbol, INTERNAL_ERROR.symbol, UNUSED_SUPPRESSION.symbol)
ALL_CASES = [case for case in cases() if case.bad and case.symbol not in WITHOUT_PLACE]
# Where a comment goes depends on the kind of file and on the statement there, hardly on the rule: some cases of each kind.
KINDS = {suffix: [case for case in ALL_CASES if case.path.suffix == suffix] for suffix in sorted({case.path.suffix for case in ALL_CASES})}
CASES = [case for of_kind in KINDS.values() for case in of_kind[:: max(1, len(of_kind) // 8)]]


@for_every("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_a_bad_case_is_silent_afterwards(number: int, tmp_path: Path) -> None:
    case = CASES[number]
    root = materialize(case, case.path, tmp_path / "case")
    # Every second one as editors of Windows write it.
    if number % 2:
        for path in case_files(root):
            path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    before = {path: path.read_bytes() for path in case_files(root)}
    found = lint(root)
    outcome = ignore_all([root], Config.load(root), root)
    # JSON has no comments.
    stay = [one for one in found.findings if one.span.path.endswith(".json")]
    assert [note.message for note in outcome.notes if "JSON has no comments" not in note.message] == []
    assert len(outcome.notes) == len(outcome.report.findings) == len(stay)
    assert outcome.applied == len(found.findings) - len(stay)
    assert len(lint(root).findings) == len(stay)
    for path, data in before.items():
        after = path.read_bytes()
        assert is_windows(after) == is_windows(data) and after.startswith(b"\xef\xbb\xbf") == data.startswith(b"\xef\xbb\xbf")
        if path.suffix == ".py" and parses(data):
            assert ast.dump(ast.parse(data)) == ast.dump(ast.parse(after))
        if path.suffix == ".sh":
            assert words(data) == words(after)
        if path.suffix in DOCUMENTS and "unparsable" not in case.symbol:
            assert values(DOCUMENTS[path.suffix], data) == values(DOCUMENTS[path.suffix], after)
    assert ignore_all([root], Config.load(root), root).files == ()


def is_windows(data: bytes) -> bool:
    """Whether lines end as on Windows; raises AssertionError where some do and others do not."""
    ends = data.count(b"\r\n")
    assert ends in (0, data.count(b"\n"))
    return ends > 0


def case_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and path.name != "pyproject.toml")


def values(kind: Kind, data: bytes) -> list[tuple[object, ...]]:
    return [(one.path, one.text) for one in read(Source.from_bytes("/p/file", data, kind)).entries]


def parses(data: bytes) -> bool:
    try:
        ast.parse(data)
    except SyntaxError:
        return False
    return True


def words(data: bytes) -> list[bytes]:
    return [text for types, text in outline(Kind.SHELL, data.replace(b"\r", b""), []) if types[-1] != "comment"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.ldlm-lint]\nselect = ["72"]\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "run.sh").write_text(BEAT)
    (project / "run.sh").chmod(0o755)
    assert main(["check", "--add-ignores"]) == 0
    out = "Silenced 1 finding in 1 file.\nNo findings remain.\n1 file read, 1 finding suppressed.\nNext: undo these fixes  ldlm-lint undo\n"
    assert capsys.readouterr() == (out, "")
    written = (project / "run.sh").read_text()
    assert written == f"{BEAT.strip()}  # ldlm-lint: ignore[excessive-heartbeat-timeout] {REASON}\n"
    assert os.stat(project / "run.sh").st_mode & 0o777 == 0o755
    assert main(["--add-ignores", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["suppressed"] == 1
    assert (project / "run.sh").read_text() == written


def test_only_what_would_be_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BEAT + "export NCCL_TIMEOUT=7200\n"
    (project / "run.sh").write_text(text)
    main(["baseline", "--select", "W7204"])
    assert main(["--add-ignores", "--level", "error"]) == 0
    assert (project / "run.sh").read_text() == text
    assert main(["--add-ignores"]) == 0
    first, second = (project / "run.sh").read_text().splitlines()
    assert "ignore[excessive-heartbeat-timeout]" in first
    assert second == "export NCCL_TIMEOUT=7200"
    capsys.readouterr()


def test_what_cannot_be_written_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "run.sh").write_text(BEAT)
    (project / "run.sh").chmod(0o444)
    assert main(["--add-ignores"]) == 3
    assert capsys.readouterr().err.startswith("error: run.sh: no comment written: ")
    assert (project / "run.sh").read_text() == BEAT


@pytest.mark.parametrize("flag", ["--fix", "--diff"])
def test_with_fixes_it_makes_no_sense(project: Path, capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert main(["--add-ignores", flag]) == 2
    assert "--add-ignores cannot be combined with --fix or --diff" in capsys.readouterr().err


def test_an_unreadable_file_stays_a_finding(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "bad.sh").write_bytes(b"# caf\xe9\n")
    assert main(["--add-ignores"]) == 3
    assert (project / "bad.sh").read_bytes() == b"# caf\xe9\n"
    assert "unreadable-file (E6803)" in capsys.readouterr().out


def test_a_comment_that_a_string_swallows_does_not_count() -> None:
    before = Source.from_bytes("/p/x", b'x = """\na\n"""\n', Kind.PYTHON)
    after = Source.from_bytes("/p/x", b'x = """\na  # b\n"""\n', Kind.PYTHON)
    assert not same_code(before, after)
    assert suppressions(after).lines == ()
