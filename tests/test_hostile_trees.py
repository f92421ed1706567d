"""A repository made to be read wrongly: nothing is waited for, run, or read outside of it, and no name reaches a terminal raw."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ldlm_lint.cli import main
from ldlm_lint.report.formats import FORMATS

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes, links and names of POSIX systems")

TRAIN = "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(net, find_unused_parameters=True)\n"
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\n"
PIPES = ("a.py", "a.sh", "a.yaml", "plain", "requirements.txt", ".gitignore", "uv.lock", "Dockerfile", ".env", "a.ipynb", "sub/pyproject.toml")
LINKS = {
    "loop.py": "loop.py",
    "here": ".",
    "up": "..",
    "out.py": "../outside/secret.py",
    "outdir": "../outside",
    "zero.py": "/dev/zero",
    "zero.yaml": "/dev/zero",
    "root": "/",
    "requirements-dev.txt": "../outside/secret.py",
    "conda.yaml": "../outside/secret.py",
    "environment.yml": "/dev/zero",
    "sub/.gitignore": "../../outside/ignore",
    "other/.gitignore": "/dev/zero",
}
NAMES = (
    *(b"new\nline.py", b"esc\x1b[31mred.py", b"bad\xff\xfe.py", b"col::on.py", b"per%0Acent.py", b"rtl\xe2\x80\xae.py"),
    *(b"quote\"'.py", b"<b>&amp;.py", b"]]>.py", b"|pipe`tick`.py", b"-dash.py", b"::error file=x::y.py", b"cr\r.py"),
)
_WATCH = """
import os, sys
import ldlm_lint.cli
root, *arguments = sys.argv[1:]
inside = tuple(os.path.realpath(one) + os.sep for one in (root, sys.prefix, sys.base_prefix, os.path.dirname(ldlm_lint.__file__), *sys.path) if one)
writes = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.link", "os.symlink")
def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)) and args[0]:
        path = os.path.realpath(os.fsdecode(args[0]))
        mode, flags = args[1] or "", args[2] or 0
        if not path.startswith(inside) and os.path.exists(path):
            print("read outside:", ascii(path), file=sys.stderr)
        if set(mode) & set("wax+") or flags & (os.O_WRONLY | os.O_RDWR):
            print("written:", ascii(path), file=sys.stderr)
    elif event in writes or event.startswith(("subprocess", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "pickle")):
        print(event, ascii(args)[:200], file=sys.stderr)
    elif event == "import" and not args[0].startswith(("ldlm_lint",)) and args[1] and str(args[1]).startswith(root):
        print("imported:", args[0], file=sys.stderr)
sys.addaudithook(watch)
sys.exit(ldlm_lint.cli.main(arguments))
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    outside, root = tmp_path / "outside", tmp_path / "repository"
    for folder in (outside, root / "sub", root / "other"):
        folder.mkdir(parents=True)
    (outside / "secret.py").write_text(TRAIN)
    (outside / "ignore").write_text("*.py\n")
    (root / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (root / "good.py").write_text(TRAIN)
    (root / "setup.py").write_text("open('pwned', 'w')\nimport torch\n")
    (root / "run.sh").write_text(BEAT + "source ../outside/secret.sh\n. a.sh\nsource /etc/passwd\ntorchrun good.py --config ../outside/c.yaml\n")
    (root / "sub" / "nested.py").write_text(TRAIN)
    (root / "other" / "nested.py").write_text(TRAIN)
    for name in PIPES:
        os.mkfifo(root / name)
    for name, target in LINKS.items():
        os.symlink(target, root / name)
    try:
        for name in NAMES:
            Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_text(TRAIN)
    except OSError:
        pytest.skip("this file system takes only names that are text")
    return root


def test_nothing_is_run_or_read_outside_and_nothing_written(repository: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(repository)
    try:
        listener.bind("socket.py")
    finally:
        os.chdir(here)
        listener.close()
    command = [sys.executable, "-c", _WATCH, str(repository), "check", "--no-cache", "--select", "ALL", "--format", "json", str(repository)]
    done = subprocess.run(command, capture_output=True, timeout=120, stdin=subprocess.DEVNULL, check=False, cwd=repository)
    assert done.stderr.decode() == ""
    paths = {finding["path"] for finding in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1
    assert {"good.py", "run.sh", "sub/nested.py", "other/nested.py"} <= paths
    assert not any("outside" in path or path.startswith(("up/", "root/", "here/")) for path in paths)
    assert not (repository / "pwned").exists() and not list(repository.rglob("*.pyc"))


@pytest.mark.parametrize("name", FORMATS)
def test_no_name_reaches_its_reader_raw(name: str, repository: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    assert main(["check", "--no-cache", "--format", name, "."]) == 1
    out, err = capfd.readouterr()
    raw = [letter for letter in out + err if (letter < " " and letter != "\n") or "\x7f" <= letter < "\xa0" or letter in "\u202e\u2028"]
    assert raw == []
    # A command of a workflow begins with two colons; no name may be one.
    assert not [line for line in out.splitlines() if line.startswith("::error file=x::")]


def test_an_ignore_file_of_hostile_patterns(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitignore").write_text("*a" * 40 + "b\n" + "[" * 2000 + "\n" + "x" * 5000 + "\nhidden.py\n")
    for name in ("a" * 200 + ".py", "hidden.py"):
        (tmp_path / name).write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--no-cache", "--format", "json", "."]) == 1
    assert {one["path"] for one in json.loads(capsys.readouterr().out)["findings"]} == {"a" * 200 + ".py"}


def test_two_runs_of_fixes_at_once_leave_whole_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for number in range(12):
        (tmp_path / f"run{number}.sh").write_text(BEAT + "torchrun train.py\n")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.sh")}
    command = [sys.executable, "-m", "ldlm_lint", "check", "--fix", "--unsafe-fixes", "--no-cache", str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) for _ in range(2)]
    told = [one.communicate(timeout=120) for one in both]
    # The later one finds the files as the earlier one left them, or says that they changed under it.
    assert sorted(one.returncode for one in both) in ([0, 0], [0, 3], [0, 1]), told
    after = {path.name: path.read_bytes() for path in tmp_path.glob("*.sh")}
    assert len(set(after.values())) == 1 and after["run0.sh"] != before["run0.sh"]
    assert not list(tmp_path.glob(".*.tmp"))
    assert main(["undo", str(tmp_path)]) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.sh")} == before


def test_settings_that_are_a_link_out_of_the_project_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "sub").mkdir()
    (project / "sub" / "a.sh").write_text(BEAT)
    (tmp_path / "outside.toml").write_text("secret words\n")
    (project / "sub" / "pyproject.toml").symlink_to("../../outside.toml")
    assert main(["check", "--no-cache", (project / "sub").as_posix()]) == 2
    told = capsys.readouterr().err
    assert "a link that leads out of" in told
    assert "TOML" not in told
    (project / "shared.toml").touch()
    (project / "sub" / "pyproject.toml").unlink()
    (project / "sub" / "pyproject.toml").symlink_to("../shared.toml")
    assert main(["check", "--no-cache", (project / "sub").as_posix()]) == 1
