"""editors/vscode: its manifest fits the server, it can be built, and the built package holds what it should."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

from ldlm_lint import __version__
from ldlm_lint.config import LEVELS
from ldlm_lint.configs import detect as config_names
from ldlm_lint.discover import PYTHON_SUFFIXES, kind_of_name
from ldlm_lint.server.convert import FIX_ALL
from ldlm_lint.server.features import RULE, RULES
from ldlm_lint.server.settings import ON_SAVE, ON_TYPE, Settings, merged
from ldlm_lint.shell import detect as shell_names

ROOT = Path(__file__).parent.parent
EXTENSION = ROOT / "editors" / "vscode"
MANIFEST = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
PROPERTIES = MANIFEST["contributes"]["configuration"]["properties"]


def source(name: str) -> str:
    return (EXTENSION / "src" / name).read_text(encoding="utf-8")


def listed(name: str, constant: str) -> list[str]:
    """The texts of a constant list of a module."""
    found = re.search(rf"const {constant} = \[(.*?)\]", source(name), re.S)
    assert found, constant
    return re.findall(r'"([^"]*)"', found[1])


def test_versions_agree() -> None:
    assert MANIFEST["version"] == __version__
    oldest = re.search(r'OLDEST_VERSION = "([^"]+)"', source("failure.ts"))
    assert oldest and Version(oldest[1]) <= Version(__version__)
    lock = json.loads((EXTENSION / "package-lock.json").read_text(encoding="utf-8"))
    assert lock["version"] == lock["packages"][""]["version"] == __version__


def test_the_server_understands_every_value_of_a_setting() -> None:
    levels, runs = listed("settings.ts", "LEVELS"), listed("settings.ts", "RUNS")
    assert PROPERTIES["ldlmLint.level"]["enum"] == levels == ["fromProject", *sorted(LEVELS, key=LEVELS.__getitem__, reverse=True)]
    assert PROPERTIES["ldlmLint.run"]["enum"] == runs == [ON_TYPE, ON_SAVE]
    assert PROPERTIES["ldlmLint.run"]["default"] == Settings().run
    for level in ("", *levels[1:]):
        for run in runs:
            settings, complaints = merged(Settings(), {"level": level, "run": run})
            assert (settings.level, settings.run, complaints) == (level, run, [])


def test_every_value_is_described_and_every_setting_is_documented() -> None:
    readme = (EXTENSION / "README.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `(ldlmLint\.[\w.]+)` \| (\S+) \|", readme, re.M))
    assert table.keys() == PROPERTIES.keys()
    for name, setting in PROPERTIES.items():
        assert setting.get("description") or setting.get("markdownDescription"), name
        assert len(setting.get("enumDescriptions", [])) == len(setting.get("enum", [])), name
        assert table[name].strip("`") == (json.dumps(setting["default"]).strip('"') or "empty")


def test_the_extension_asks_what_the_server_answers() -> None:
    assert f'"{RULES}"' in source("requests.ts") and f'"{RULE}"' in source("requests.ts")
    assert f'FIX_ALL = "{FIX_ALL}"' in source("requests.ts")


def test_files_that_the_server_reads_reach_it() -> None:
    suffixes = {f".{suffix}" for suffix in listed("documents.ts", "SUFFIXES")}
    notebooks = {".ipynb"}
    assert suffixes == (PYTHON_SUFFIXES | shell_names.SUFFIXES | config_names.SUFFIXES.keys() | {".env"}) - notebooks
    assert all(kind_of_name(f"name{suffix}") for suffix in suffixes)
    assert set(listed("documents.ts", "LANGUAGES")) >= {"python", "shellscript", "yaml", "json", "toml", "dockerfile"}


def test_every_command_is_offered_documented_and_done() -> None:
    readme = (EXTENSION / "README.md").read_text(encoding="utf-8")
    code = source("extension.ts") + source("middleware.ts")
    for command in MANIFEST["contributes"]["commands"]:
        assert f"| *{command['title']}* |" in readme
        assert f'"{command["command"]}"' in code
        assert command["category"] == "ldlm-lint"
    registered = set(re.findall(r'register\("([\w.]+)"', code)) | {"ldlmLint.explainRule"}
    assert registered == {command["command"] for command in MANIFEST["contributes"]["commands"]}


def test_a_workspace_that_is_not_trusted_cannot_choose_the_command() -> None:
    untrusted = MANIFEST["capabilities"]["untrustedWorkspaces"]
    assert (untrusted["supported"], untrusted["restrictedConfigurations"]) == ("limited", ["ldlmLint.path"])
    assert PROPERTIES["ldlmLint.path"]["scope"] == "machine-overridable"


def test_the_page_of_the_marketplace_has_what_it_needs() -> None:
    assert MANIFEST["license"] == "GPL-3.0-or-later"
    assert (EXTENSION / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert set(MANIFEST["categories"]) <= {"Linters", "Machine Learning", "Data Science", "Programming Languages"}
    assert 5 <= len(MANIFEST["keywords"]) <= 30 and len(MANIFEST["description"]) <= 200
    for field in ("publisher", "displayName", "repository", "bugs", "homepage", "galleryBanner", "qna"):
        assert MANIFEST[field], field
    head = (EXTENSION / MANIFEST["icon"]).read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and [int.from_bytes(head[at : at + 4], "big") for at in (16, 20)] == [128, 128]


def test_the_lock_file_names_no_other_registry() -> None:
    lock = json.loads((EXTENSION / "package-lock.json").read_text(encoding="utf-8"))
    for name, package in lock["packages"].items():
        assert package.get("resolved", "https://registry.npmjs.org/").startswith("https://registry.npmjs.org/"), name
        assert not name or package["integrity"], name


def copied(folder: Path) -> Path:
    """The extension's sources where nothing was built yet."""
    return Path(shutil.copytree(EXTENSION, folder / "vscode", ignore=shutil.ignore_patterns("node_modules", "out", "*.vsix")))


def environment() -> dict[str, str]:
    """What makes the tests start the command that is tested here."""
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "LDLM_LINT": str(Path(sys.executable).with_name("ldlm-lint")), "PYTHONPATH": search}


@pytest.mark.node
def test_it_can_be_built_and_its_tests_pass(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    assert npm, "npm is not installed"
    copy = copied(tmp_path)
    for arguments in (["ci", "--no-audit", "--no-fund"], ["test"], ["run", "package"]):
        done = subprocess.run([npm, *arguments], cwd=copy, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    (package,) = copy.glob("*.vsix")
    assert package.name == f"ldlm-lint-{__version__}.vsix"
    with zipfile.ZipFile(package) as archive:
        assert sorted(archive.namelist()) == [
            "[Content_Types].xml",
            "extension.vsixmanifest",
            "extension/LICENSE.txt",
            "extension/changelog.md",
            "extension/icon.png",
            "extension/out/THIRD-PARTY-NOTICES.txt",
            "extension/out/extension.js",
            "extension/package.json",
            "extension/readme.md",
        ]
        manifest = json.loads(archive.read("extension/package.json"))
        bundle = archive.read("extension/out/extension.js").decode()
        readme = archive.read("extension/readme.md").decode()
        notices = archive.read("extension/out/THIRD-PARTY-NOTICES.txt").decode()
    assert manifest["contributes"] == MANIFEST["contributes"]
    # Its pictures are shown from the repository.
    pictures = re.findall(r"!\[[^]]*\]\(https://github.com/ldlm-lint/ldlm-lint/raw/main/editors/vscode/([^)]+)\)", readme)
    assert pictures and all((EXTENSION / picture).is_file() for picture in pictures) and "](images/" not in readme
    required = set(re.findall(r'\brequire\("([^"]+)"\)', bundle))
    builtin = {"child_process", "crypto", "fs", "fs/promises", "net", "os", "path", "readline", "util"}
    assert {name.removeprefix("node:") for name in required} <= builtin | {"vscode"}
    assert all(library in notices for library in ("markdown-it ", "vscode-languageclient ", "vscode-jsonrpc "))
    assert str(tmp_path) not in bundle


@pytest.mark.node
@pytest.mark.browser
@pytest.mark.skipif("CODE_SERVER" not in os.environ, reason="needs code-server, whose out/node/entry.js CODE_SERVER names")
def test_it_works_in_a_window_of_vs_code(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    assert npm, "npm is not installed"
    copy = copied(tmp_path)
    for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "test:session"]):
        done = subprocess.run([npm, *arguments], cwd=copy, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
