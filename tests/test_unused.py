"""``unused-suppression``: which comments silence nothing, who is judged, and that only comments change."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import engine
from ldlm_lint.config import Config, Overrides
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Finding, Report
from ldlm_lint.select import Layer
from ldlm_lint.source import Source

RULE = "unused-suppression"
LOADER = "from torch.utils.data import DataLoader\nloader = DataLoader(data, prefetch_factor=4)"
BROKEN = "dataloader-worker-options-without-workers"


def lint(folder: Path, name: str, text: str, select: tuple[str, ...] = ("ALL",), settings: str = "") -> Report:
    """The report on a file of a project of its own."""
    (folder / "pyproject.toml").write_text(f"[tool.ldlm-lint]\n{settings}")
    (folder / name).write_text(text)
    config = Config.load(folder, overrides=Overrides(Layer(select)))
    return engine.run([folder / name], config, base=folder)


def unused(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.rule == RULE]


def why(report: Report) -> list[str]:
    return [str(dict(one.args)["why"]) for one in unused(report)]


def fixed(report: Report) -> str:
    """The file with the first fix applied; raises where there is none."""
    finding = unused(report)[0]
    source = report.sources[finding.span.path]
    assert isinstance(source, Source) and finding.fix is not None
    return apply_edits(source.data, finding.fix.edits, source.encoding).decode()


@for_every(
    "comment, after",
    [
        pytest.param("  # ldlm-lint: ignore[data-parallel]", "", id="nothing-else"),
        pytest.param("  # ldlm-lint: ignore[data-parallel] two GPUs", "  # two GPUs", id="reason"),
        pytest.param("  # ldlm-lint: ignore[data-parallel] reason: ...", "", id="reason-not-filled-in"),
        pytest.param("  # noqa: E501  # ldlm-lint: ignore[data-parallel]", "  # noqa: E501", id="another-pragma"),
        pytest.param("  # ldlm-lint: ignore[data-parallel] # noqa", "  # noqa", id="another-pragma-behind"),
        pytest.param("  # ldlm-lint: ignore[data-parallel]  # why  ", "  # why", id="blanks"),
        pytest.param(f"  # ldlm-lint: ignore[{BROKEN}, W7235] x", f"  # ldlm-lint: ignore[{BROKEN}] x", id="one-of-two"),
        pytest.param(f"  # ldlm-lint: ignore[W7235,{BROKEN}]", f"  # ldlm-lint: ignore[{BROKEN}]", id="first-of-two"),
        pytest.param(f"  # ldlm-lint: ignore[E7104,{BROKEN},W7235]", f"  # ldlm-lint: ignore[E7104, {BROKEN}]", id="twice"),
        pytest.param("  # ldlm-lint: ignore[]", "", id="no-names"),
    ],
)
def test_a_fix_changes_nothing_but_comments(comment, after, tmp_path):
    report = lint(tmp_path, "a.py", f"{LOADER}{comment}\nx = 1\n")
    assert len(unused(report)) == 1
    assert fixed(report) == f"{LOADER}{after}\nx = 1\n"
    assert ast.dump(ast.parse(fixed(report))) == ast.dump(ast.parse(LOADER + "\nx = 1\n"))


@for_every(
    "name, before, after",
    [
        ("a.py", "# ldlm-lint: ignore[data-parallel]\nx = 1\n", "x = 1\n"),
        ("a.py", "def f():\n    # ldlm-lint: ignore[W7235]\n    return 1", "def f():\n    return 1"),
        ("a.py", "x = 1\n# ldlm-lint: ignore-file", "x = 1\n"),
        ("a.sh", "export A=1  # ldlm-lint: ignore[W7201]\n", "export A=1\n"),
        ("a.yaml", "a: 1  # ldlm-lint: ignore[W7201] soon\n", "a: 1  # soon\n"),
        ("a.toml", "# ldlm-lint: ignore[W7201]\na = 1\n", "a = 1\n"),
        ("Dockerfile", "FROM x\n# ldlm-lint: ignore[W7201]\nRUN y\n", "FROM x\nRUN y\n"),
        (".env", "# ldlm-lint: ignore[W7201]\nA=1\n", "A=1\n"),
    ],
)
def test_in_every_format_that_has_comments(name, before, after, tmp_path):
    assert fixed(lint(tmp_path, name, before)) == after


@pytest.mark.parametrize(
    "name, text",
    [
        pytest.param("a.yaml", "job: |\n  # ldlm-lint: ignore[W7201]\n  echo\n", id="text-in-yaml"),
        pytest.param("a.sh", "python - <<EOF\nx = 1  # ldlm-lint: ignore[W7201]\nEOF\n", id="here-document"),
    ],
)
def test_a_comment_that_is_part_of_a_value_stays(name, text, tmp_path):
    (finding,) = unused(lint(tmp_path, name, text))
    assert finding.fix is None


@pytest.mark.parametrize(
    "name, expected",
    [
        ("W7235", ["`data-parallel` is not reported here"]),
        ("data-paralel", ['unknown rule "data-paralel", did you mean "data-parallel"?']),
        ("F401", ['unknown rule "F401"']),
    ],
)
def test_what_is_wrong_with_a_name(name, expected, tmp_path):
    found = why(lint(tmp_path, "a.py", f"x = 1  # ldlm-lint: ignore[{name}]\n"))
    assert [one.split(", did")[0] for one in found] == [one.split(", did")[0] for one in expected]
    assert ("did you mean" in expected[0]) <= ("did you mean" in found[0])


def test_a_misspelt_name_is_not_removed(tmp_path):
    (finding,) = unused(lint(tmp_path, "a.py", "x = 1  # ldlm-lint: ignore[data-paralel]\n"))
    assert finding.fix is None


@pytest.mark.parametrize(
    "comment",
    [
        pytest.param("# ldlm-lint: ignore[data-parallel]", id="name"),
        pytest.param("# ldlm-lint: ignore-file[data-parallel]", id="file"),
        pytest.param("# ldlm-lint: ignore", id="bare"),
        pytest.param("# ldlm-lint: ignore[no-such-rule]", id="unknown"),
    ],
)
def test_the_rule_is_opt_in(comment, tmp_path):
    text = f"x = 1  {comment}\n"
    assert unused(lint(tmp_path, "a.py", text, ())) == []
    assert len(unused(lint(tmp_path, "a.py", text))) == 1


def test_a_name_is_judged_only_where_its_rule_was_looked_for(tmp_path):
    text = "x = 1  # ldlm-lint: ignore[data-parallel, optimizer-not-fused]\ny = 1  # ldlm-lint: ignore\n"
    assert why(lint(tmp_path, "a.py", text, (RULE, "data-parallel"))) == ["`data-parallel` is not reported here"]
    assert why(lint(tmp_path, "a.py", text, (RULE,))) == []
    off = 'per-file-ignores = {"a.py" = ["data-parallel", "optimizer-not-fused"]}\n'
    assert why(lint(tmp_path, "a.py", text, settings=off)) == []


def test_a_comment_may_be_idle_by_name_but_not_by_silencing_everything(tmp_path):
    assert unused(lint(tmp_path, "a.py", "x = 1  # ldlm-lint: ignore[data-parallel, unused-suppression]\n")) == []
    assert unused(lint(tmp_path, "a.py", f"# ldlm-lint: ignore-file[{RULE}]\nx = 1  # ldlm-lint: ignore[W7235]\n")) == []
    assert len(unused(lint(tmp_path, "a.py", "x = 1  # ldlm-lint: ignore\n"))) == 1


@pytest.mark.parametrize(
    "comment", [f"# ldlm-lint: ignore[{BROKEN}]", "# ldlm-lint: ignore[E7104]", "# ldlm-lint: ignore why", "# pylint: disable=E7104"]
)
def test_a_comment_that_silences_is_used(comment, tmp_path):
    report = lint(tmp_path, "a.py", f"{LOADER}  {comment}\n")
    assert unused(report) == []
    assert report.suppressed >= 1


def test_nothing_is_said_of_a_file_that_was_not_checked_in_full(tmp_path):
    assert unused(lint(tmp_path, "a.py", "x = 1  # ldlm-lint: ignore[data-parallel]\nx = = 1\n")) == []


NOQA = "# noqa: E501, R7311"


def test_a_noqa_that_silences_nothing_of_ours_is_told_and_left_to_its_author(tmp_path: Path) -> None:
    report = lint(tmp_path, "train.py", f"x = 1  {NOQA}\n")
    assert why(report) == ["`gradients-kept-as-zeros` is not reported here"]
    (finding,) = unused(report)
    assert finding.fix is None
    assert dict(finding.args)["what"] == "less than it names"
    source = report.sources[finding.span.path]
    assert isinstance(source, Source) and source.slice(finding.span) == NOQA


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: E501", "# noqa: F401 unused-import", "# noqa: W0611, C0415"])
def test_a_noqa_of_other_linters_is_not_judged(comment: str, tmp_path: Path) -> None:
    assert unused(lint(tmp_path, "train.py", f"x = 1  {comment}\n")) == []


def test_a_noqa_that_silences_something_is_not_told(tmp_path: Path) -> None:
    report = lint(tmp_path, "train.py", f"{LOADER}  # noqa: E7104\n")
    assert [one.rule for one in report.findings if one.rule in (RULE, BROKEN)] == []
