"""The engine: the same report for any order and any source of the bytes, and only of what was asked for."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from collected import for_every
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snippets import source

from ldlm_lint import engine, linting
from ldlm_lint.checkers.unparsable import lint as lint_python
from ldlm_lint.config import Config
from ldlm_lint.model import Finding, Report
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.python.flow import summarize
from ldlm_lint.python.tree import parse
from ldlm_lint.rules import ALL, linter
from ldlm_lint.source import Kind, Source

FILES = {
    "pyproject.toml": "[tool.ldlm-lint]\n",
    "data.py": "from torch.utils.data import DataLoader\n\ndef make(data):\n    return DataLoader(data, "
    "num_workers=4)\n",
    "train.py": "from data import make\n\nloader = make(x)\nfor epoch in range(9):\n    for batch in "
    "loader:\n        step(batch).backward()\n",
    "wrap.py": "from torch.nn.parallel import DistributedDataParallel as DDP\n\nmodel = DDP(net, "
    "find_unused_parameters=True)\n",
    "run.sh": "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\nexport TORCH_NCCL_ENABLE_MONITORING=0\ntorchrun "
    "train.py\n",
    "broken.py": "import torch\nx = = 1\n",
}
EVERYTHING = {
    ("data.py", "dataloader-without-persistent-workers"),
    ("data.py", "dataloader-without-prefetch"),
    ("wrap.py", "ddp-find-unused-parameters"),
    ("run.sh", "excessive-heartbeat-timeout"),
    ("run.sh", "nccl-monitoring-disabled"),
    ("broken.py", "unparsable-file"),
}


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path, FILES)


def lint(root: Path, names: Sequence[str] = (".",), overlay: Mapping[str, str] | None = None) -> Report:
    contents = {(root / name).as_posix(): text.encode() for name, text in (overlay or {}).items()}
    return engine.run([root / name for name in names], Config.load(root), base=root, overlay=contents)


def found(root: Path, report: Report) -> set[tuple[str, str]]:
    return {(Path(one.span.path).relative_to(root).as_posix(), one.rule) for one in report.findings}


def test_everything_is_found(project: Path) -> None:
    report = lint(project)
    assert found(project, report) == EVERYTHING
    assert (report.files, report.problems, report.requested, report.excluded) == (5, (), 1, 0)
    assert list(report.findings) == sorted(report.findings, key=lambda one: one.order)


def test_order_of_paths_does_not_matter(project: Path) -> None:
    names = [name for name in FILES if name != "pyproject.toml"]
    reports = [lint(project, order) for order in itertools.permutations(names, len(names))][::7]
    assert all(report.findings == reports[0].findings for report in reports)
    assert reports[0].findings == lint(project).findings


def test_paths_named_twice_are_linted_once(project: Path) -> None:
    report = lint(project, ("data.py", ".", "data.py", "./data.py"))
    assert report.findings == lint(project).findings
    assert report.files == 5


def test_one_run_leaves_nothing_to_the_next(project: Path) -> None:
    first = lint(project)
    (project / "train.py").write_text("from data import make\n")
    assert ("data.py", "dataloader-without-persistent-workers") not in found(project, lint(project))
    (project / "train.py").write_text(FILES["train.py"])
    assert lint(project).findings == first.findings


@pytest.mark.parametrize(
    "name, expected",
    [
        pytest.param("data.py", {"dataloader-without-persistent-workers", "dataloader-without-prefetch"}, id="factory"),
        pytest.param("train.py", set(), id="loop-over-it"),
        pytest.param("run.sh", {"excessive-heartbeat-timeout", "nccl-monitoring-disabled"}, id="script"),
    ],
)
def test_findings_of_the_named_file_with_the_rest_as_context(project: Path, name: str, expected: set[str]) -> None:
    report = lint(project, (name,))
    assert found(project, report) == {(name, rule) for rule in expected}
    assert report.files == 1
    everything = [one for one in lint(project).findings if one.span.path.endswith(f"/{name}")]
    assert list(report.findings) == everything


def test_a_file_in_memory_is_as_good_as_one_on_disk(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    changed = FILES | {"data.py": "# a line more\n" + FILES["data.py"], "run.sh": "torchrun train.py\n"}
    report = lint(project, overlay=changed)
    on_disk = lint(write(project, changed))
    assert report.findings == on_disk.findings
    assert found(project, report) == {one for one in EVERYTHING if one[0] != "run.sh"}


@pytest.mark.parametrize(
    "name, text, gone",
    [
        pytest.param("train.py", "from data import make\nloader = make(x)\nfor b in loader: ...\n", 2, id="no-epochs"),
        pytest.param(
            "train.py", FILES["train.py"].replace("step(batch).backward()", "check(batch)"), 1, id="no-training"
        ),
    ],
)
def test_context_in_memory_counts(project: Path, name: str, text: str, gone: int) -> None:
    before = lint(project, ("data.py",))
    after = lint(project, ("data.py",), {name: text})
    assert len(before.findings) - len(after.findings) == gone


def test_script_asks_the_python_of_the_project(project: Path) -> None:
    write(project, {"job.sh": "export NCCL_TIMEOUT=1800\ntorchrun train.py\n"})
    assert found(project, lint(project, ("job.sh",))) == {("job.sh", "ineffective-environment-variable")}
    reads = {"wrap.py": "import os\ntimeout = int(os.environ['NCCL_TIMEOUT'])\n"}
    assert found(project, lint(project, ("job.sh",), reads)) == set()


def test_opt_in_rules_are_off(project: Path) -> None:
    default = {rule.symbol for rule in ALL if rule.default}
    assert {one.rule for one in lint(project).findings} <= default


def test_selection_and_per_file_ignores(project: Path) -> None:
    text = '[tool.ldlm-lint]\nignore = ["71"]\n[tool.ldlm-lint.per-file-ignores]\n"*.sh" = ["W7206"]\n'
    (project / "pyproject.toml").write_text(text)
    left = EVERYTHING - {("run.sh", "nccl-monitoring-disabled")}
    assert found(project, lint(project)) == {one for one in left if one[0] != "data.py"}


def group_of(report: Report, name: str = "run.sh") -> list[Finding]:
    return [one for one in report.findings if one.span.path.endswith(f"/{name}")]


def test_the_group_of_a_script_is_one_fix(project: Path) -> None:
    first, second = group_of(lint(project))
    assert first.fix == second.fix
    assert first.fix is not None
    assert first.fix.whole


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            {"run.sh": FILES["run.sh"].replace("=0\n", "=0  # ldlm-lint: ignore[nccl-monitoring-disabled] slow\n")},
            id="comment",
        ),
        pytest.param({"pyproject.toml": '[tool.ldlm-lint]\nignore = ["W7206"]\n'}, id="ignored"),
        pytest.param(
            {"pyproject.toml": '[tool.ldlm-lint.per-file-ignores]\n"run.sh" = ["W7206"]\n'}, id="ignored-in-file"
        ),
        pytest.param({"pyproject.toml": '[tool.ldlm-lint]\nselect = ["W7201"]\n'}, id="not-selected"),
    ],
)
def test_a_group_that_lost_a_member_has_no_fix(project: Path, files: dict[str, str]) -> None:
    report = lint(write(project, files))
    assert [(one.rule, one.fix) for one in group_of(report)] == [("excessive-heartbeat-timeout", None)]
    assert report.suppressed == ("run.sh" in files)


def test_suppressed_finding_is_counted(project: Path) -> None:
    silent = "# ldlm-lint: ignore[ddp-find-unused-parameters] the model needs it\n"
    text = FILES["wrap.py"].replace("model = ", silent + "model = ")
    report = lint(project, ("wrap.py",), {"wrap.py": text})
    assert (report.findings, report.suppressed) == ((), 1)


def test_sources_of_all_that_is_shown_are_at_hand(project: Path) -> None:
    report = lint(project)
    shown = {one.span.path for one in report.findings} | {
        place.span.path for one in report.findings for place in one.related
    }
    assert shown <= report.sources.keys()
    for one in report.findings:
        for span in (one.span, *(place.span for place in one.related)):
            assert 0 <= span.start <= span.end <= len(report.sources[span.path].data)


def test_a_checker_that_raises_is_a_problem_and_the_rest_goes_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = linting._lint

    def fail(source: Source, config: Config) -> object:
        if source.path.endswith("run.sh"):
            raise ValueError("no such node")
        return original(source, config)

    monkeypatch.setattr(linting, "_lint", fail)
    report = lint(project)
    assert found(project, report) == {one for one in EVERYTHING if one[0] != "run.sh"} | {("run.sh", "ldlm-internal-error")}
    assert [Path(one.path).name for one in report.problems] == ["run.sh"]
    assert "no such node" in report.problems[0].message


@for_every(
    "data, kind, expected",
    [
        pytest.param(b"import torch\n", Kind.PYTHON, False, id="torch-alone"),
        pytest.param(b"x = DataLoader(y)\n", Kind.PYTHON, True, id="loader"),
        pytest.param(b"# DataLoader\n", Kind.PYTHON, False, id="comment"),
        pytest.param(b"", Kind.PYTHON, False, id="empty"),
        pytest.param(b"echo hello\n", Kind.SHELL, False, id="harmless-script"),
        pytest.param(b"export NCCL_TIMEOUT=1\n", Kind.SHELL, True, id="script"),
    ],
)
def test_prefilter(data: bytes, kind: Kind, expected: bool) -> None:
    assert bool(rules_at_risk(data, kind)) is expected


_FIXTURES = Path(__file__).parent / "fixtures"
# What is hidden in a bad case is missing from its recorded output: here it counts that nothing else comes to light.
EVERY_FILE = [path for path in sorted(_FIXTURES.rglob("*.py")) if "unreadable-file" not in path.parts]
EXAMPLES = [path for path in EVERY_FILE if path.parent.parent == _FIXTURES and path.stem in ("bad", "good", "bad_short")]


@pytest.mark.parametrize("paths", [pytest.param(EXAMPLES, id="examples"), pytest.param(EVERY_FILE, id="all", marks=pytest.mark.slow)])
def test_the_prefilter_hides_nothing(paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every file linted in full the report is the same."""
    files = {f"{number}/{path.name}": path.read_text(encoding="utf-8") for number, path in enumerate(paths)}
    write(tmp_path, files | {"pyproject.toml": ""})
    with_filter = lint(tmp_path)
    everything = frozenset(rule.symbol for rule in ALL)
    monkeypatch.setattr(linting, "rules_at_risk", lambda data, kind: everything)
    assert lint(tmp_path).findings == with_filter.findings
    assert len(with_filter.findings) > 20


def test_selecting_everything_adds_only_what_is_opt_in(project: Path) -> None:
    everything = replace(Config.load(project), select=("ALL",))
    report = engine.run([project], everything, base=project)
    assert found(project, report) >= EVERYTHING


_WORDS = st.sampled_from(
    [
        "from torch.utils.data import DataLoader\n",
        "import torch\n",
        "DataLoader(x, num_workers=4)",
        "torch.save(x, f'{step}.pt')",
        "for epoch in range(9):\n    ",
        "def f(self, *a, **k):\n    ",
        "class M(nn.Module):\n    ",
        "loss.backward()",
        "timedelta(hours=",
        "x = ",
        "**{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ":",
        ",",
        "\n",
        "    ",
        "lambda: ",
        " if x else ",
        " for y in z",
        "match x:\n    case ",
        "'''",
        "\\",
        "é",
        "\x0c",
        "\r",
    ]
)


def check(text: str) -> None:
    """Lint a text with all checkers and look at every span."""
    linted = source(text.encode())
    result = lint_python(linted)
    internal = [one for one in result.findings if one.rule == linter.INTERNAL_ERROR.symbol]
    assert not internal, internal[0].args
    for one in result.findings:
        spans = [
            one.span,
            *(place.span for place in one.related),
            *(edit.span for edit in (one.fix.edits if one.fix else ())),
        ]
        assert all(0 <= span.start <= span.end <= len(linted.data) for span in spans)
    module = parse(linted, "module").module
    if module is not None:
        assert summarize(module, linted.path).path == linted.path


HYPOTHESIS = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def _encodable(text: str) -> bool:
    return "\0" not in text and "coding" not in text and not any("\ud800" <= one <= "\udfff" for one in text)


@HYPOTHESIS
@given(st.text().filter(_encodable))
def test_any_text_is_linted(text: str) -> None:
    check(text)


@HYPOTHESIS
@given(st.lists(_WORDS, max_size=25).map("".join))
def test_any_words_are_linted(text: str) -> None:
    check(text)


@HYPOTHESIS
@given(st.data())
def test_damaged_code_is_linted(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(EVERY_FILE)).read_text(encoding="utf-8")
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 40, len(text))))
        text = text[:start] + data.draw(_WORDS | st.just("")) + text[end:]
    check(text)
