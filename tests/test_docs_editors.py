"""docs/editors.md: every snippet is what its language allows, and what it makes editors run is what there is."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ldlm_lint.commands.table import parser_of
from ldlm_lint.parsing import parsed
from ldlm_lint.server.settings import Settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")
EXTENSION = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text(encoding="utf-8"))
SNIPPETS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)


WRITE_TOLD = 'call writefile([json_encode(g:told)], "found")'


def snippets(language: str) -> list[str]:
    found = [text for name, text in SNIPPETS if name == language]
    assert found, language
    return found


def one_with(language: str, word: str) -> str:
    (found,) = [text for text in snippets(language) if word in text]
    return found


def understood(*command: str) -> None:
    """Raise for a command line that the program would refuse."""
    assert command[0] == "ldlm-lint"
    arguments = list(command[1:])
    if arguments[0] != "server":
        arguments.insert(0, "check")
    parsed(parser_of(arguments[:1]), arguments, "ldlm-lint")


def balanced(text: str) -> bool:
    """Whether the parentheses of a Lisp text close, strings left out."""
    depth = 0
    for sign in re.sub(r'"(?:\\.|[^"\\])*"', "", text):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0


def test_every_language_of_a_snippet_is_looked_at_here():
    assert {name for name, _ in SNIPPETS} == {"bash", "json", "toml", "yaml", "lua", "elisp", "vim", "console"}


def test_json():
    extension, client, pylint, tasks, sublime = map(json.loads, snippets("json"))
    properties = EXTENSION["contributes"]["configuration"]["properties"]
    assert extension["ldlmLint.run"] in properties["ldlmLint.run"]["enum"]
    assert extension["editor.codeActionsOnSave"] == client["editor.codeActionsOnSave"]
    understood(client["glspc.server.command"], *client["glspc.server.commandArguments"])
    assert client["editor.codeActionsOnSave"].keys() == {"source.fixAll.ldlm-lint"}
    assert pylint["pylint.args"] == ["--load-plugins=ldlm_lint"]
    understood(*shlex.split(tasks["tasks"][0]["command"]))
    understood(*sublime["clients"]["ldlm-lint"]["command"])


def test_bash():
    (build,) = snippets("bash")
    ci, package, install = re.split(r" && |\n", build.strip())
    assert ci == "npm ci" and package.removeprefix("npm run ") in EXTENSION["scripts"]
    assert install == f"code --install-extension {EXTENSION['name']}-*.vsix"


def test_the_problem_matcher_reads_the_format():
    pattern = json.loads(one_with("json", "problemMatcher"))["tasks"][0]["problemMatcher"]["pattern"]
    (line,) = [line for line in one_with("console", "--stdin-filename").splitlines() if re.match(r"\S+:\d", line)]
    found = re.search(pattern["regexp"], line)
    assert found and (found[pattern["file"]], found[pattern["line"]], found[pattern["column"]]) == (
        "captions/optimizer.py",
        "25",
        "12",
    )
    assert found[pattern["code"]] == "R7301" and found[pattern["message"]].startswith("optimizer-not-fused: ")


def test_toml():
    (helix,) = map(tomllib.loads, snippets("toml"))
    server = helix["language-server"]["ldlm-lint"]
    understood(server["command"], *server["args"])
    assert all("ldlm-lint" in language["language-servers"] for language in helix["language"])


def test_yaml():
    (efm,) = map(yaml.safe_load, snippets("yaml"))
    tool = efm["tools"]["ldlm-lint"]
    for command in (tool["lint-command"], tool["format-command"]):
        understood(*shlex.split(command.replace("${INPUT}", "/project/train.py")))
    assert all(tools == [tool] for tools in efm["languages"].values())


def test_lua():
    tree_sitter = pytest.importorskip("tree_sitter")
    lua = pytest.importorskip("tree_sitter_lua")
    parser = tree_sitter.Parser(tree_sitter.Language(lua.language()))
    for text in snippets("lua"):
        assert not parser.parse(text.encode()).root_node.has_error, text
        assert 'cmd = { "ldlm-lint", "server" }' in text


def test_elisp():
    for text in snippets("elisp"):
        assert balanced(text) and '("ldlm-lint" "server")' in text


def test_the_settings_are_those_that_there_are():
    section = PAGE.split("## Settings")[1].split("\n## ")[0]
    told = {name for row in re.findall(r"^\| (`[^|]*) \|", section, re.M) for name in re.findall(r"`([\w-]+)`", row)}
    assert told == {one.name.replace("_", "-") for one in dataclasses.fields(Settings)}
    flags = set(re.findall(r"`(--[\w-]+)`", section.split("editor can")[0]))
    # When to lint is for the editor alone to say.
    assert flags == {f"--{name}" for name in told - {"run"}}


@pytest.fixture
def example(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples" / "latent-captions", tmp_path / "example")
    return tmp_path / "example"


def tools() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def test_the_session_shown_is_what_the_command_prints(example: Path):
    for text in snippets("console"):
        command, output = re.fullmatch(r"\$ ([^\n]*)\n(.*)", text, re.S).groups()
        done = subprocess.run(
            ["bash", "-c", command], cwd=example, env=tools(), capture_output=True, text=True, check=False
        )
        assert (done.returncode, (done.stdout + done.stderr).strip()) == (1, output.strip())


def vim(folder: Path, settings: str, script: str, *files: str) -> object:
    """What a script of Vim writes as JSON to the file ``found``, after some settings were read."""
    (folder / "settings.vim").write_text(settings)
    command = ["vim", "-N", "-u", "NONE", "-es", "-S", "settings.vim", "-c", f"{script} | qa!", *files]
    environment = {**tools(), "TERM": "dumb"}
    subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=60, check=False)
    return json.loads((folder / "found").read_text())


@pytest.mark.skipif(shutil.which("vim") is None, reason="needs vim")
def test_vim_fills_its_quickfix_list(example: Path):
    listed = "map(getqflist(), {_, v -> [bufname(v.bufnr), v.lnum, v.col, v.text]})"
    script = f'silent make! | call writefile([json_encode({listed})], "found")'
    found = vim(example, one_with("vim", "makeprg"), script, "captions/optimizer.py")
    ((path, line, column, text),) = [one for one in found if one[1]]
    assert (path, line, column) == ("captions/optimizer.py", 25, 12) and "optimizer-not-fused" in text


@pytest.mark.skipif(shutil.which("vim") is None, reason="needs vim")
def test_ale_is_told_of_the_server(example: Path):
    plugin = example / "autoload" / "ale" / "linter.vim"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(
        "let g:told = []\n"
        "function! ale#linter#Define(language, linter)\n"
        "  call add(g:told, [a:language, a:linter.executable, a:linter.command, a:linter.project_root(bufnr('%'))])\n"
        "endfunction\n"
    )
    (example / ".git").mkdir()
    (example / "ale.vim").write_text("set runtimepath+=.\n" + one_with("vim", "ale#linter"))
    told = vim(example, "", f"edit captions/data.py | source ale.vim | {WRITE_TOLD}")
    assert [one[0] for one in told] == ["python", "sh", "yaml", "json", "toml", "dockerfile"]
    assert {tuple(one[1:]) for one in told} == {("ldlm-lint", "%e server", str(example))}
