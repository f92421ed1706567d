"""The baseline: what a finding is known by, what a check holds back, what is new, what is gone, and bad files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ldlm_lint import baseline
from ldlm_lint.cli import main
from ldlm_lint.identity import LONGEST, folded, shortened
from ldlm_lint.model import Identity
from ldlm_lint.scopes import by_tokens, python_scopes, scopes, symbol_at
from ldlm_lint.source import Kind, Source
from ldlm_lint.tomlfile import ConfigError

FILE = ".ldlm-lint-baseline.json"
WRAP = "    model = DDP(model, find_unused_parameters=True)\n"
HEAD = "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
TRAIN = "    for batch in loader:\n        model(batch).mean().backward()\n"
MODULE = HEAD + "def main(model, loader):\n" + WRAP + TRAIN
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\n"
# The rules that these tests speak of, so that a new rule does not change what they find.
RULES = (
    *("ddp-find-unused-parameters", "excessive-heartbeat-timeout", "ineffective-environment-variable"),
    *("nccl-monitoring-disabled", "dataloader-without-persistent-workers", "dataloader-without-prefetch"),
)
SETTINGS = f"[tool.ldlm-lint]\nselect = {list(RULES)}\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    (tmp_path / "train.py").write_text(MODULE)
    (tmp_path / "run.sh").write_text(BEAT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def rules(out: str) -> list[tuple[str, str]]:
    return [(one["path"], one["rule"]) for one in json.loads(out)["findings"]]


def entries(path: Path) -> list[dict[str, object]]:
    return json.loads(path.read_text())["findings"]


def test_a_baseline_silences_what_it_holds(project: Path, run: Run) -> None:
    assert run("check")[0] == 1
    assert run("baseline") == (0, f"Wrote 2 known findings to {FILE}: 2 new, 0 gone.\n", "")
    code, out, err = run("check")
    assert (code, err) == (0, "")
    assert out == "No findings.\n2 files read, 2 findings known from the baseline.\n"
    code, out, _ = run("check", "--format", "json")
    assert (code, rules(out), json.loads(out)["summary"]["baselined"]) == (0, [], 2)
    assert run("check", "--no-baseline")[0] == 1
    assert run("check", "--isolated", "--select", RULES[0])[0] == 1


def test_the_file_is_sorted_has_a_line_for_each_entry_and_names_no_machine(project: Path, run: Run) -> None:
    (project / "src").mkdir()
    (project / "src" / "träin.py").write_text(MODULE.replace("main", "Träiner"), encoding="utf-8")
    run("baseline", "src", "train.py", "run.sh")
    text = (project / FILE).read_bytes()
    assert text.isascii() and text.endswith(b"]\n}\n") and b"\r" not in text
    assert str(project).encode() not in text
    assert text.splitlines()[:4] == [
        b"{",
        b'  "schema": "ldlm-lint-baseline/1",',
        b'  "findings": [',
        b'    {"path": "run.sh", "rule": "excessive-heartbeat-timeout", "symbol": "", '
        b'"code": "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000", "count": 1},',
    ]
    assert [one["path"] for one in entries(project / FILE)] == ["run.sh", "src/träin.py", "train.py"]
    assert run("baseline")[1] == f"{FILE} is up to date: 3 known findings.\n"
    assert (project / FILE).read_bytes() == text


def test_where_the_command_is_called_from_changes_nothing(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("baseline")
    text = (project / FILE).read_bytes()
    (project / "inner").mkdir()
    monkeypatch.chdir(project / "inner")
    assert run("check", "..")[0] == 0
    assert run("baseline", "..")[1] == f"{project.as_posix()}/{FILE} is up to date: 2 known findings.\n"
    assert (project / FILE).read_bytes() == text


MOVED = {
    "lines-above": "import os\n\n\ndef other():\n    return os\n\n\n" + MODULE,
    "layout": MODULE.replace("find_unused_parameters=True", "find_unused_parameters = True,  # sic\n    "),
    "windows": "\ufeff" + MODULE.replace("\n", "\r\n"),
    "last-lines-gone": MODULE + "\n\n# the end",
}


@pytest.mark.parametrize("name", MOVED)
def test_known_defects_may_move(project: Path, run: Run, name: str) -> None:
    run("baseline")
    (project / "train.py").write_bytes(MOVED[name].encode())
    assert run("check")[:2] == (0, "No findings.\n2 files read, 2 findings known from the baseline.\n")


NEW = {
    "second-equal-defect": (MODULE.replace(WRAP, WRAP + WRAP), False),
    "another-function": (MODULE + "\n\ndef again(model, loader):\n" + WRAP + TRAIN, False),
    "renamed-function": (MODULE.replace("main", "run"), True),
}


@pytest.mark.parametrize("name", NEW)
def test_what_the_baseline_does_not_hold_is_new(project: Path, run: Run, name: str) -> None:
    run("baseline")
    text, stale = NEW[name]
    (project / "train.py").write_text(text)
    code, out, err = run("check", "--format", "json")
    assert (code, err) == (1, "")
    assert rules(out) == [("train.py", "ddp-find-unused-parameters")]
    assert bool(json.loads(out)["summary"]["stale"]) is stale


def test_the_first_of_equal_defects_is_the_known_one(project: Path, run: Run) -> None:
    run("baseline")
    (project / "train.py").write_text(MODULE.replace(WRAP, WRAP + WRAP))
    found = json.loads(run("check", "--format", "json")[1])["findings"]
    assert [one["line"] for one in found] == [6]


def test_stale_entries_are_a_note_and_no_failure(project: Path, run: Run) -> None:
    run("baseline")
    (project / "train.py").write_text(MODULE.replace("True", "False"))
    code, out, err = run("check")
    assert code == 0
    assert out.endswith("1 known finding of the baseline gone, see ldlm-lint baseline --update\n")
    assert err == "note: train.py: ddp-find-unused-parameters in main is in the baseline, but gone\n"
    assert run("check", "--quiet") == (0, "", "")
    (one,) = json.loads(run("check", "--format", "json")[1])["summary"]["stale"]
    assert (one["path"], one["rule"], one["symbol"], one["count"]) == (
        *("train.py", "ddp-find-unused-parameters", "main"),
        1,
    )
    assert one["fingerprint"]


@pytest.mark.parametrize(
    "arguments",
    [("run.sh",), ("--select", "W7201"), ("--ignore", "ddp-find-unused-parameters"), ("--level", "error")],
    ids=" ".join,
)
def test_what_a_run_does_not_look_at_is_not_stale(project: Path, run: Run, arguments: tuple[str, ...]) -> None:
    run("baseline")
    (project / "train.py").write_text("")
    assert run("check")[2] != ""
    assert run("check", *arguments)[2] == ""
    before = (project / FILE).read_bytes()
    run("baseline", "--update", *arguments)
    assert (project / FILE).read_bytes() == before


def test_entries_of_a_deleted_file_and_of_a_rule_that_is_no_more_are_stale(project: Path, run: Run) -> None:
    run("baseline")
    path = project / FILE
    path.write_text(path.read_text().replace("excessive-heartbeat-timeout", "rule-of-old"))
    (project / "train.py").unlink()
    code, _, err = run("check")
    assert code == 1
    assert [line.split()[1:3] for line in err.splitlines()] == [
        ["run.sh:", "rule-of-old"],
        ["train.py:", "ddp-find-unused-parameters"],
    ]
    assert run("check", "run.sh")[2].count("\n") == 1


def test_a_suppressed_defect_needs_no_entry(project: Path, run: Run) -> None:
    run("baseline")
    (project / "run.sh").write_text("# ldlm-lint: ignore[W7201] a long first step\n" + BEAT)
    assert "excessive-heartbeat-timeout is in the baseline, but gone" in run("check")[2]


def test_update_adds_what_is_new_and_removes_what_is_gone(project: Path, run: Run) -> None:
    run("baseline", "train.py")
    (project / "train.py").write_text(MODULE.replace("main", "fit"))
    assert run("baseline", "--update") == (0, f"Wrote 2 known findings to {FILE}: 2 new, 1 gone.\n", "")
    assert [(one["path"], one["symbol"]) for one in entries(project / FILE)] == [("run.sh", ""), ("train.py", "fit")]
    assert run("check")[0] == 0


def test_without_update_the_file_holds_this_run_alone(project: Path, run: Run) -> None:
    run("baseline")
    run("baseline", "run.sh")
    assert [one["path"] for one in entries(project / FILE)] == ["run.sh"]
    (project / "run.sh").write_text("")
    run("baseline", "run.sh")
    assert entries(project / FILE) == []
    assert run("check", "run.sh")[0] == 0


def test_many_stale_entries_are_cut_short(project: Path, run: Run) -> None:
    body = "".join(f"def f{number}(model, loader):\n{WRAP}{TRAIN}\n\n" for number in range(13))
    (project / "train.py").write_text(HEAD + body)
    run("baseline")
    (project / "train.py").write_text("")
    assert run("check")[2].splitlines()[-1] == "note: and 3 more"


@pytest.mark.parametrize("where", ["configured", "named"])
def test_another_place(project: Path, run: Run, where: str) -> None:
    (project / "ci").mkdir()
    options = ()
    if where == "configured":
        (project / "pyproject.toml").write_text(f'{SETTINGS}baseline = "ci/known.json"\n')
    else:
        options = ("--baseline", "ci/known.json")
    code, _, err = run("check", *options)
    assert code == 2
    assert err == (
        f"ldlm-lint: error: {project.as_posix()}/ci/known.json: does not exist; ldlm-lint baseline writes it\n"
    )
    assert run("baseline", *options)[0] == 0
    assert not (project / FILE).exists()
    assert entries(project / "ci" / "known.json")[0]["path"] == "run.sh"
    assert run("check", *options)[0] == 0
    assert run("check", "--no-baseline")[0] == 1


@pytest.mark.parametrize("value", ["/etc/known.json", "../known.json", "a/../../b", "", "."])
def test_the_configuration_may_not_name_a_file_outside_of_the_project(project: Path, run: Run, value: str) -> None:
    (project / "pyproject.toml").write_text(f'[tool.ldlm-lint]\nbaseline = "{value}"\n')
    code, _, err = run("baseline")
    assert code == 2
    assert f'pyproject.toml:2: baseline: must be a path inside the project, not "{value}"' in err


def test_a_link_that_leads_out_of_the_project_is_not_followed(
    project: Path, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    victim = tmp_path_factory.mktemp("elsewhere") / "known.json"
    victim.write_text(baseline.render({}))
    (project / FILE).symlink_to(victim)
    code, _, err = run("baseline")
    assert (code, victim.read_text()) == (3, baseline.render({}))
    assert "leads out of" in err


def entry(**changes: object) -> dict[str, object]:
    return {"path": "a.py", "rule": "r", "symbol": "", "code": "x", "count": 1, **changes}


def of(*found: object) -> str:
    listed = ",\n".join(json.dumps(one) for one in found)
    return f'{{"schema": "{baseline.SCHEMA}",\n"findings": [\n{listed}\n]}}'


@pytest.mark.parametrize(
    "text, line, words",
    [
        pytest.param("", 1, "is not valid JSON: Expecting value", id="empty"),
        pytest.param(of(entry())[:-4], 3, "is not valid JSON", id="cut-off"),
        pytest.param(of(entry()).replace("\n]", "\n=======\n]"), 4, "is not valid JSON", id="merge-conflict"),
        pytest.param("[]", 1, 'must be an object with "schema" and "findings"', id="list"),
        pytest.param("[" * 100_000, 1, "is no baseline", id="deep"),
        pytest.param(of().replace("/1", "/2"), 1, 'schema: must be "ldlm-lint-baseline/1"', id="schema"),
        pytest.param(of().replace("[\n\n]", "7"), 2, "findings: must be a list", id="no-list"),
        pytest.param(of(entry(), 7), 4, "an entry must be an object with path, rule, symbol, code and count", id="7"),
        pytest.param(of(entry(), entry(line=1)), 4, "an entry must be an object with", id="another-field"),
        pytest.param(of(entry(), {"path": "a.py"}), 4, "an entry must be an object with", id="missing-field"),
        pytest.param(of(entry(), entry(), entry(symbol=None)), 5, "symbol must be a string", id="type"),
        pytest.param(of(entry(count=0)), 3, "count must be at least 1", id="zero"),
        pytest.param(of(entry(count=True)), 3, "count must be at least 1", id="true"),
        pytest.param(of(entry()) + "\n\udcff", 5, "is not valid UTF-8", id="encoding"),
    ],
)
def test_a_file_that_is_no_baseline(project: Path, run: Run, text: str, line: int, words: str) -> None:
    path = project / FILE
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    for command in ("check", "baseline"):
        code, out, err = run(command)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"ldlm-lint: error: {path.as_posix()}:{line}: ")
        assert words in err
    assert path.read_bytes() == before
    assert run("check", "--no-baseline")[0] == 1


def test_a_directory_and_an_unreadable_file_are_no_baseline(project: Path, run: Run) -> None:
    (project / FILE).mkdir()
    assert run("check")[2].endswith(f"{FILE}: is no file\n")
    (project / FILE).rmdir()
    (project / FILE).symlink_to("nowhere")
    assert run("check")[0] == 2


def test_equal_entries_of_a_merge_are_one(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(of(entry(count=2), entry(count=3), entry()))
    assert baseline.read(tmp_path / "x") == {Identity("a.py", "r", "", "x"): 3}


def test_nothing_to_check_writes_nothing(project: Path, run: Run) -> None:
    (project / "empty").mkdir()
    code, out, err = run("baseline", "empty")
    assert (code, out) == (3, "")
    assert err == "error: empty: no Python file, shell script or configuration file to check here\n"
    assert not (project / FILE).exists()


def test_what_cannot_be_read_is_never_known(project: Path, run: Run) -> None:
    (project / "bad.sh").write_bytes(b"# caf\xe9\n")
    code, out, err = run("baseline")
    assert (code, out) == (3, f"Wrote 2 known findings to {FILE}: 2 new, 0 gone.\n")
    assert err.startswith("error: bad.sh: cannot be read")
    assert run("check")[0] == 3


def test_a_directory_that_may_not_be_written(project: Path, run: Run) -> None:
    code, _, err = run("baseline", "--baseline", "missing/known.json")
    assert code == 3
    assert err.startswith("ldlm-lint: error: cannot write ")
    assert sorted(os.listdir(project)) == ["pyproject.toml", "run.sh", "train.py"]


def test_known_and_fixed_together(project: Path, run: Run) -> None:
    text = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\nexport NCCL_TIMEOUT=7200\ntorchrun train.py\n"
    (project / "run.sh").write_text(text)
    run("baseline", "--select", "W7201")
    code, out, _ = run("check", "run.sh", "--fix", "--unsafe-fixes")
    assert code == 0
    assert "Fixed 1 finding in 1 file.\n" in out
    assert (project / "run.sh").read_text() == text.replace("export NCCL_TIMEOUT=7200\n", "")


def test_a_known_member_takes_the_fix_of_a_whole_group(project: Path, run: Run) -> None:
    block = (
        BEAT + "export TORCH_NCCL_ENABLE_MONITORING=0\nexport NCCL_TIMEOUT=7200\n"
    )
    (project / "run.sh").write_text(block + "torchrun train.py\n")
    plain = json.loads(run("run.sh", "--format", "json")[1])["findings"]
    assert all(one["fix"] for one in plain)
    run("baseline", "run.sh", "--select", "nccl-monitoring-disabled")
    found = json.loads(run("run.sh", "--format", "json")[1])["findings"]
    assert len(found) == len(plain) - 1
    assert not any(one["fix"] for one in found if one["rule"] == "excessive-heartbeat-timeout")


LOADER = """from torch.utils.data import DataLoader


def train(dataset, model, epochs):
    loader = DataLoader(dataset, num_workers=4)
    for epoch in range(epochs):
        for batch in loader:
            model(batch).backward()
"""


def test_a_fix_beside_a_known_defect_leaves_it_alone(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LOADER)
    run("baseline", "--select", "dataloader-without-persistent-workers", "train.py")
    run("check", "train.py", "--fix", "--unsafe-fixes")
    after = (project / "train.py").read_text()
    assert "prefetch_factor" in after
    assert "persistent_workers" not in after


@pytest.mark.parametrize(
    "code, other",
    [
        ("f(a, b)", "f(\n    a,\n    b,\n)"),
        ("f(a, b)", "f(a,  # first\n  b)"),
        ("f('x', '')", 'f("x", "")'),
        ("x = a if b else c", "x  =  a if b \\\n  else c"),
        ("not x", "not  x"),
        ("f'''a'''", 'f"""a"""'),
        ("x[1 :]", "x[1:]"),
    ],
)
def test_layout_does_not_count_in_python(code: str, other: str) -> None:
    assert folded(code, Kind.PYTHON) == folded(other, Kind.PYTHON)


@pytest.mark.parametrize(
    "code, other",
    [
        ("f('a b')", "f('a  b')"),
        ("f('# a')", "f('# b')"),
        ("notx", "not x"),
        ("f('\"')", "f('')"),
        ("'''\n# a'''", "'''\n# b'''"),
        (r"'\'# a'", r"'\'# b'"),
        ("f(a, b)", "f(a, c)"),
    ],
)
def test_code_counts_in_python(code: str, other: str) -> None:
    assert folded(code, Kind.PYTHON) != folded(other, Kind.PYTHON)


def test_layout_in_shell() -> None:
    assert folded("torchrun \\\n  --x 1   train.py # go", Kind.SHELL) == "torchrun --x 1 train.py"
    assert folded("a\r\n", Kind.SHELL) == "a"
    for kept in ("echo 'a  b'", 'echo "a  # b"', "echo ${#a} $# a#b", "echo \\# a", "echo it\\'s '  '"):
        assert folded(kept, Kind.SHELL) == kept


def test_long_code_is_a_beginning_and_a_hash() -> None:
    code = "x" * LONGEST
    assert shortened(code) == code
    assert shortened(code + "y") != shortened(code + "z")
    assert shortened(code + "y").startswith(code + "... sha256:")


SCOPES = '''\
"""doc"""
a = 1

@wrap(
    b=2,
)
class A:
    c = 3

    async def f(self):
        def g(): return 4
        d = """
e
"""
        if d:
            class B: h = 5
    i = 6

def j(): pass
k = 7
if k:
    def m():
        n = 8
# o
p = 9
'''


def test_symbols_of_python() -> None:
    source = Source("/p/x.py", SCOPES.encode(), Kind.PYTHON)
    found = scopes(source)
    at = {word: symbol_at(found, SCOPES.index(word)) for word in ("a =", "b=", "c =", "4", "d:", "h =", "i =", "p =")}
    assert at == {
        **{"a =": "", "b=": "A", "c =": "A", "4": "A.f.g"},
        **{"d:": "A.f", "h =": "A.f.B", "i =": "A", "p =": ""},
    }
    assert symbol_at(found, SCOPES.index("\ne\n") + 1) == "A.f"
    assert [symbol_at(found, SCOPES.index(word)) for word in ("j()", "k =", "m()", "n =")] == ["j", "", "m", "m"]


def test_symbols_of_a_file_that_breaks_off() -> None:
    text = "class A:\n    def f(self):\n        x = 1\n        y = (\n"
    found = scopes(Source("/p/x.py", text.encode(), Kind.PYTHON))
    assert symbol_at(found, text.index("x =")) == "A.f"
    assert symbol_at(found, len(text)) == "A.f"


def test_symbols_of_shell() -> None:
    text = "\ufeffa=1\r\nf() {\r\n  b=2\r\n  g() { c=3; }\r\n}\r\nfunction h { d=4; }\r\ne=5\r\n"
    data = text.encode()
    found = scopes(Source("/p/x.sh", data, Kind.SHELL))
    assert [symbol_at(found, data.index(word)) for word in (b"a=", b"b=", b"c=", b"d=", b"e=")] == ["", "f", "f.g", "h", ""]


def test_the_fingerprint_is_the_same_on_every_machine_and_moves_along(project: Path, run: Run) -> None:
    def prints() -> list[str]:
        return [one["fingerprint"] for one in json.loads(run("train.py", "--format", "json")[1])["findings"]]

    before = prints()
    assert before == ["1986960373eff16665bbad0593879938"]
    (project / "train.py").write_text(MOVED["lines-above"])
    assert prints() == before


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        baseline.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1\n",
        "class A:\n    @property\n    # a comment\n    def f(self):\n        pass\n\n    # trailing\n\n\ny = 2\n",
        "def f():\n    def g(): pass\n    return g\n# the end\n",
        "if x:\n    async def f():\n        pass\nelse:\n    class B: y = '''\n    '''\n",
        "try:\n    pass\nexcept E:\n    def f(): pass\nfinally:\n    def g(): pass\nmatch x:\n    case 1:\n        def h(): pass\n",
        "def f():\r\n    pass\r\n\r\ndef g():\r    pass\r",
        "\ufeffdef ü():\n\tpass\n",
    ],
)
def test_scopes_are_the_same_by_tree_and_by_tokens(text: str) -> None:
    source = Source("/p/x.py", text.encode(), Kind.PYTHON)
    by_tree = sorted(python_scopes(source), key=repr)
    assert by_tree == sorted(by_tokens(source), key=repr)
    assert len(by_tree) == len(re.findall(r"\b(?:def|class) ", text))
