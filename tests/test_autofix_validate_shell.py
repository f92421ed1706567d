"""What a fix of a shell script may do to the commands around its edits: nothing; each case is edits by their texts."""

from __future__ import annotations

from collected import for_every

from ldlm_lint.autofix.validate_shell import validate_shell
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Edit, Span

BLOCK = "set -u\nexport A=1 \\\n  B=2\nif true; then\n  run x\nfi\npython train.py --a 1 \\\n  --b 2\n"


def judge(code: str, *changes: tuple[str, str]) -> str | None:
    """The verdict on replacing texts, each the first of its kind in ``code``; ``¦`` marks where text is inserted."""
    data = code.replace("¦", "").encode()
    edits = []
    for old, new in changes:
        start = len(code[: code.index(old)].replace("¦", "").encode())
        edits.append(Edit(Span("/a.sh", start, start + len(old.replace("¦", "").encode())), new))
    return validate_shell(data, apply_edits(data, edits), edits)


@for_every(
    ("code", "changes"),
    [
        (BLOCK, [("export A=1 \\\n  B=2\n", "export B=2\n")]),
        (BLOCK, [("A=1 \\\n  ", "")]),
        (BLOCK, [("  run x\n", "  :\n")]),
        (BLOCK, [("  run x\n", "  run x\n  run y\n")]),
        (BLOCK, [(" \\\n  --b 2", "")]),
        (BLOCK, [("--b 2", "--b 3")]),
        (BLOCK, [("python", "torchrun")]),
        (BLOCK, [("set -u\n", "set -u\nset -o pipefail\n")]),
        ("a¦\nb\n", [("¦", " --x")]),
        ("a && b\nc\n", [(" && b", "")]),
        ("A=1 b c\n", [("A=1 ", "")]),
        ("export A=1\r\nb \\\r\n  c\r\n", [("1", "2")]),
        ("cat <<E\nx\nE\nb\n", [("b", "c")]),
        # A comment behind a backslash cuts the command; without it the next line is meant to belong to it.
        ("run \\ # why\n  --a\nb\n", [(" # why", "")]),
        ("run \\\n  # why\n  +a=1 \\\n  b=2\nc\n", [("  # why\n", "")]),
        ("run x¦\n  --a b\nc\n", [("¦", " \\")]),
        ("run x\n  --a b\nc\n", [("\n  ", " \\\n  ")]),
    ],
)
def test_what_is_meant_is_accepted(code: str, changes: list[tuple[str, str]]) -> None:
    assert judge(code, *changes) is None


@for_every(
    ("code", "changes", "words"),
    [
        # What was a command of its own becomes words of another one.
        ("export A=1 \\\n  B=2\nrun x\n", [("  B=2\n", "")], "run x"),
        ("a \\\n  --b\nrun x\n", [("  --b\n", "")], "run x"),
        ("a\nrun x\n", [("\n", " ")], "run x"),
        ("a # c\nrun x\n", [(" # c\n", " ")], "run x"),
        # Words become a comment or a string.
        ("a; run x\n", [("a", "a #")], "run"),
        ('a\nrun "x"\n', [("a", 'a "')], ""),
        ("run x y\n", [("x", "x #")], "y"),
        ("a\nrun x\n", [("a", "a <<E")], ""),
        # A string of several lines is indented along.
        ("run 'x\n¦y'\n", [("¦", "  ")], "run"),
        # A block loses its end, or its only statement.
        ("if a; then\n  b\nfi\nc\n", [("fi\n", "")], "syntax errors"),
        ("if a; then\n  b\nfi\n", [("  b\n", "")], "syntax errors"),
        ("a && b\n", [("b", "")], "syntax errors"),
    ],
)
def test_what_nobody_means_is_refused(code: str, changes: list[tuple[str, str]], words: str) -> None:
    reason = judge(code, *changes)
    assert reason is not None
    assert words in reason


def test_a_broken_script_is_judged_by_its_errors_alone() -> None:
    assert judge("if then fi (\nb\nc\n", ("b\n", "b ")) is None
