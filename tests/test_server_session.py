"""Sessions of an editor with `ldlm-lint server`, over the protocol, with the program as it is started by editors."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from collected import for_every
from editor import Editor, applied, changes_of
from editor_project import AMP, AMP_FIXED, FILES, PYPROJECT, TRAIN
from lsprotocol import types


def project(folder: Path) -> Path:
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def codes(found: list[types.Diagnostic]) -> list[str]:
    return [str(one.code) for one in found]


def place(line: int, character: int = 0) -> types.Range:
    return types.Range(types.Position(line, character), types.Position(line, character))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("workspace") / "project")


@pytest.fixture(scope="module")
def editor(root: Path) -> Iterator[Editor]:
    editor = Editor()
    found = editor.start(root)
    assert found.server_info is not None and found.server_info.name == "ldlm-lint"
    assert found.capabilities.position_encoding == "utf-16"
    yield editor
    assert editor.leave() == 0


def test_diagnostics_say_everything_that_the_report_says(editor: Editor, root: Path) -> None:
    found = editor.open(root / "data.py")
    assert codes(found) == ["dataloader-without-prefetch", "dataloader-without-persistent-workers"]
    info, refactor = found
    assert (info.severity, refactor.severity) == (types.DiagnosticSeverity.Hint, types.DiagnosticSeverity.Information)
    assert refactor.range == types.Range(types.Position(4, 11), types.Position(4, 94))
    assert refactor.source == "ldlm-lint"
    assert refactor.message.startswith("slow: this DataLoader is iterated repeatedly")
    assert refactor.data["consequence"] == "slow"
    assert refactor.code_description and refactor.code_description.href.endswith(
        "/rules/dataloader-without-persistent-workers.md"
    )
    # The loop that iterates it stands in a file that is not open.
    assert refactor.related_information
    location = refactor.related_information[0].location
    assert location.uri == (root / "train.py").as_uri() and location.range.start.line == 9
    assert refactor.data["fingerprint"]
    (script,) = editor.open(root / "run.sh")
    assert (
        list(script.tags or ()) == [types.DiagnosticTag.Deprecated]
        and script.severity == types.DiagnosticSeverity.Warning
    )


def test_watched_files_are_registered(editor: Editor) -> None:
    (one,) = editor.until(lambda: editor.registered or None)
    assert one.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    patterns = [watcher["globPattern"] if isinstance(watcher, dict) else watcher.glob_pattern for watcher in _watchers(one)]
    assert "**/.ldlm-lint.toml" in patterns and any("toml" in pattern and "{" in pattern for pattern in patterns)


def _watchers(registration: types.Registration) -> list:
    options = registration.register_options
    return list(options["watchers"] if isinstance(options, dict) else options.watchers)


def test_a_safe_fix_is_preferred_and_leaves_nothing_behind(editor: Editor, root: Path) -> None:
    path = root / "amp.py"
    (found,) = editor.open(path)
    # print("🙂🙂", name);  is 24 characters and 26 units long, behind four blanks.
    assert found.range.start == types.Position(4, 34)
    offered = editor.actions(path, found.range)
    fix, ignore, everything = offered
    assert fix.is_preferred and "safe fix" in fix.title and fix.kind == types.CodeActionKind.QuickFix
    assert codes(list(fix.diagnostics or ())) == ["deprecated-amp-api"]
    assert ignore.edit is None and everything.edit is None and everything.kind == "source.fixAll.ldlm-lint"
    editor.apply(fix)
    assert editor.text(path) == AMP_FIXED
    assert editor.diagnostics(path) == []
    assert editor.actions(path, place(4, 34)) == []


def test_all_safe_fixes_of_a_file_in_one_action(editor: Editor, root: Path) -> None:
    path = root / "amp.py"
    editor.type(path, AMP + AMP)
    # At once, as an editor asks on saving: the answer is about what was typed last.
    (action,) = editor.actions(path, place(0), only=["source.fixAll"])
    editor.apply(action)
    assert editor.text(path) == AMP_FIXED + AMP_FIXED
    assert editor.diagnostics(path) == []


def test_a_comment_silences_the_line(editor: Editor, root: Path) -> None:
    path = root / "run.sh"
    (found,) = editor.diagnostics(path)
    ignore = next(one for one in editor.actions(path, found.range) if "ignore" in one.title)
    editor.apply(ignore)
    assert "# ldlm-lint: ignore[deprecated-nccl-variable]" in editor.text(path)
    assert editor.diagnostics(path) == []
    line = editor.text(path).splitlines()[1]
    page = editor.hover(path, 1, line.index("deprecated-nccl") + 3)
    assert "### deprecated-nccl-variable (W7210)" in page and "**Why**" in page and "[The rule's page](" in page


def test_an_unsafe_fix_says_why(editor: Editor, root: Path) -> None:
    path = root / "data.py"
    found = editor.diagnostics(path)
    (fix,) = [one for one in editor.actions(path, found[0].range) if one.edit is not None]
    assert not fix.is_preferred and fix.title == "set prefetch_factor=4; set persistent_workers=True (unsafe fix)"
    assert codes(list(fix.diagnostics or ())) == codes(found)
    (annotation,) = (fix.edit.change_annotations or {}).values()
    assert annotation.label == "set prefetch_factor=4; set persistent_workers=True"
    assert "host memory" in annotation.description
    page = editor.hover(path, 4, 20)
    assert "### [dataloader-without-prefetch](" in page and annotation.description.split(";")[0] in page.replace("\\", "")
    assert editor.hover(path, 0, 0) == ""


def test_what_is_typed_elsewhere_counts(editor: Editor, root: Path) -> None:
    data, train = root / "data.py", root / "train.py"
    before = len(editor.published[data.as_uri()])
    editor.open(train)
    once = TRAIN.replace("    for epoch in range(epochs):\n        sampler.set_epoch(epoch)\n", "    if sampler:\n")
    editor.type(train, once)
    # Nothing but the buffer has changed; on disk the loop is still there.
    editor.until(lambda: editor.published[data.as_uri()][before:] or None)
    editor.until(
        lambda: codes(list(editor.published[data.as_uri()][-1].diagnostics)) == ["dataloader-without-prefetch"] or None
    )
    editor.client.text_document_did_close(
        types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(train.as_uri()))
    )
    editor.until(lambda: len(editor.published[data.as_uri()][-1].diagnostics) == 2 or None)
    assert editor.published[train.as_uri()][-1].diagnostics == ()


def test_a_file_that_is_not_on_disk_yet(editor: Editor, root: Path) -> None:
    found = editor.open(root / "new.py", AMP)
    assert codes(found) == ["deprecated-amp-api"]


def test_outdated_results_are_not_published(editor: Editor, root: Path) -> None:
    path = root / "new.py"
    versions = [editor.type(path, AMP + "# typing\n" * count) for count in range(8)]
    assert codes(editor.diagnostics(path)) == ["deprecated-amp-api"]
    published = [one.version for one in editor.published[path.as_uri()]]
    assert published == sorted(published) and published[-1] == versions[-1]
    assert len(set(published).intersection(versions)) < len(versions)


def test_a_wrong_configuration_is_said_once_and_mended(editor: Editor, root: Path) -> None:
    settings = root / "pyproject.toml"
    settings.write_text("[tool.ldlm-lint]\nselct = ['ALL']\n")
    changed = types.DidChangeWatchedFilesParams([types.FileEvent(settings.as_uri(), types.FileChangeType.Changed)])
    editor.client.workspace_did_change_watched_files(changed)
    uri = (root / "data.py").as_uri()
    editor.until(lambda: (editor.shown and not editor.published[uri][-1].diagnostics) or None)
    assert len(editor.shown) == 1 and 'unknown key, did you mean "select"' in editor.shown[0]
    # The file that is wrong says so where it is wrong, though nobody has opened it.
    (wrong,) = editor.until(lambda: editor.published.get(settings.as_uri()))[-1].diagnostics
    assert wrong.message == 'selct: unknown key, did you mean "select"?' and wrong.range.start == types.Position(1, 0)
    assert wrong.severity == types.DiagnosticSeverity.Error
    settings.write_text(PYPROJECT + 'ignore = ["dataloader-without-prefetch"]\n')
    editor.client.workspace_did_change_watched_files(changed)
    editor.until(
        lambda: codes(list(editor.published[uri][-1].diagnostics)) == ["dataloader-without-persistent-workers"] or None
    )
    editor.until(lambda: not editor.published[settings.as_uri()][-1].diagnostics or None)
    settings.write_text(PYPROJECT)
    assert len(editor.shown) == 1


def test_each_file_has_the_configuration_that_is_nearest_to_it(tmp_path: Path) -> None:
    root = project(tmp_path / "several")
    (root / "nested").mkdir()
    for name in ("data.py", "train.py"):
        shutil.copy(root / name, root / "nested" / name)
    nearest = root / "nested" / "ldlm-lint.toml"
    nearest.write_text('ignore = ["dataloader-without-prefetch"]\n')
    editor = Editor()
    editor.start(root)
    assert len(editor.open(root / "data.py")) == 2
    assert codes(editor.open(root / "nested" / "data.py")) == ["dataloader-without-persistent-workers"]
    nearest.write_text("ignore = 3\nlevel = 'loud'\n")
    changed = types.DidChangeWatchedFilesParams([types.FileEvent(nearest.as_uri(), types.FileChangeType.Changed)])
    editor.client.workspace_did_change_watched_files(changed)
    found = editor.until(lambda: editor.published.get(nearest.as_uri()))[-1].diagnostics
    assert [(one.range.start.line, one.message.partition(":")[0]) for one in found] == [(0, "ignore"), (1, "level")]
    # The other project goes on, and all that is wrong is one message.
    assert len(editor.shown) == 1 and "ignore" in editor.shown[0] and "level" in editor.shown[0]
    assert len(editor.diagnostics(root / "data.py")) == 2
    assert editor.leave() == 0


@for_every(
    ("name", "text"),
    [
        ("broken.py", "def f(:\n    torch.cuda.amp.GradScaler(\n"),
        ("lone.py", "import torch\nx = '\ud83d'\ntorch.cuda.amp.GradScaler()\n"),
        ("latin.py", "# -*- coding: latin-1 -*-\nimport torch\nprint('é'); torch.cuda.amp.GradScaler()\n"),
        ("odd.py", "# -*- coding: no-such-encoding -*-\nimport torch\n"),
        ("feeds.py", "import torch\n\x0c\nx = '\u2028'\ntorch.cuda.amp.GradScaler()\n"),
        ("nul.sh", "export X=1\0\n"),
        ("broken.yaml", "a: [1\nb: {\n"),
        ("Dockerfile", "FROM x\nENV NCCL_ASYNC_ERROR_HANDLING=1\n"),
        ("notes.md", "# nothing of ours\n"),
        ("empty.py", ""),
    ],
)
def test_any_text_is_answered(editor: Editor, root: Path, name: str, text: str) -> None:
    path = root / name
    found = editor.open(path, text)
    if name in ("lone.py", "latin.py", "feeds.py"):
        (one,) = found
        assert (
            one.range.start == types.Position(3, 0)
            if name == "feeds.py"
            else types.Position(2, 0 if name == "lone.py" else 12)
        )
        editor.apply(editor.actions(path, one.range)[0])
        assert 'torch.amp.GradScaler("cuda")' in editor.text(path)
        assert editor.diagnostics(path) == []
    assert not [line for line in editor.logged if "Traceback" in line]


def test_libraries_and_other_schemes_are_left_alone(editor: Editor, root: Path) -> None:
    library = root / ".venv" / "lib" / "site-packages" / "torch" / "amp.py"
    assert editor.open(library, AMP) == []
    item = types.TextDocumentItem("untitled:Untitled-1", "python", 1, AMP)
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    editor.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(item.uri)))
    assert editor.hover(root / "never-opened.py", 0, 0) == ""
    assert "untitled:Untitled-1" not in editor.published


@pytest.mark.skipif(shutil.which("pgrep") is None, reason="needs pgrep to find the process")
def test_a_linting_process_that_dies_is_replaced(editor: Editor, root: Path) -> None:
    server = editor.client._server.pid
    (child,) = subprocess.run(["pgrep", "-P", str(server)], capture_output=True, text=True).stdout.split()
    os.kill(int(child), signal.SIGKILL)
    assert codes(editor.open(root / "after.py", AMP)) == ["deprecated-amp-api"]


def test_a_simple_editor_with_settings_of_its_own(tmp_path: Path) -> None:
    root = project(tmp_path / "simple")
    editor = Editor(encodings=("utf-8", "utf-16"), plain=True)
    found = editor.start(
        root, {"ignore": ["dataloader-without-prefetch"], "selct": [], "level": "loud"}, "--ignore", "I"
    )
    assert found.capabilities.position_encoding == "utf-8"
    assert codes(editor.open(root / "data.py")) == ["dataloader-without-persistent-workers"]
    editor.until(lambda: len(editor.shown) == 2 or None)
    assert 'unknown setting "selct", did you mean "select"' in editor.shown[0]
    assert 'setting "level" must be one of' in editor.shown[1]
    (one,) = editor.open(root / "amp.py")
    assert one.related_information is None and one.range.start == types.Position(4, 38)
    fix, ignore, everything = editor.actions(root / "amp.py", one.range)
    # It cannot ask for an edit later, so that each action brings its own.
    assert fix.edit is not None and ignore.edit is not None and everything.edit is not None
    assert fix.edit.document_changes is None
    editor.apply(fix)
    assert editor.text(root / "amp.py") == AMP_FIXED
    assert editor.registered == []
    assert editor.leave() == 0


def test_findings_on_saving_only(tmp_path: Path) -> None:
    root = project(tmp_path / "saving")
    editor = Editor()
    editor.start(root, {"run": "onSave"})
    path, uri = root / "amp.py", (root / "amp.py").as_uri()
    (found,) = editor.open(path)
    version = editor.type(path, AMP + AMP)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([]))
    # Neither the text, nor a change elsewhere, nor a question about a place of it makes the server lint it.
    assert editor.actions(path, found.range) == [] and editor.hover(path, 4, 36) == ""
    assert [message.version for message in editor.published[uri]] == [1]
    editor.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
    assert codes(editor.diagnostics(path)) == ["deprecated-amp-api"] * 2
    assert editor.published[uri][-1].version == version
    # An editor that is about to save asks for what it applies on saving.
    editor.type(path, AMP)
    (action,) = editor.actions(path, place(0), only=["source.fixAll.ldlm-lint"])
    editor.apply(action)
    assert editor.text(path) == AMP_FIXED
    editor.client.workspace_did_change_configuration(
        types.DidChangeConfigurationParams({"ldlm-lint": {"run": "onType", "level": "error"}})
    )
    assert editor.diagnostics(path) == []
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams({"ldlm-lint": {"run": "never"}}))
    editor.until(lambda: editor.shown or None)
    assert editor.shown == ['setting "run" must be one of onType, onSave, not \'never\'']
    assert editor.leave() == 0


def test_the_pages_of_rules_are_answered(editor: Editor) -> None:
    listed = editor.ask("ldlm-lint/rules")
    assert [rule["name"] for rule in listed if rule["code"] == "W7210"] == ["deprecated-nccl-variable"]
    assert (listed[0]["consequence"], listed[-1]["consequence"]) == ("hang", "config") and all(rule["summary"] for rule in listed)
    page = editor.ask("ldlm-lint/rule", {"name": "W7210"})
    assert page.name == "deprecated-nccl-variable" and page.url.endswith("/rules/deprecated-nccl-variable.md")
    assert page.markdown.startswith("# deprecated-nccl-variable (W7210)\n") and "## Why it costs\n" in page.markdown
    answer = editor.ask("ldlm-lint/rule", {"name": "optimizer-not-fussed"})
    assert answer.problem == 'unknown rule "optimizer-not-fussed", did you mean "optimizer-not-fused"?'


def test_a_notebook_is_its_cells(editor: Editor, root: Path) -> None:
    path = root / "amp.ipynb"
    uris = [f"vscode-notebook-cell:{path.as_posix()}#{name}" for name in ("title", "magic", "code")]
    kinds = [types.NotebookCellKind.Markup, types.NotebookCellKind.Code, types.NotebookCellKind.Code]
    texts = ["# Scaling", "%matplotlib inline\nimport torch", AMP.split("\n\n\n")[1]]
    languages = ["markdown", "python", "python"]
    items = [types.TextDocumentItem(*one) for one in zip(uris, languages, (1, 1, 1), texts, strict=True)]
    cells = [types.NotebookCell(kind, uri) for kind, uri in zip(kinds, uris, strict=True)]
    notebook = types.NotebookDocument(path.as_uri(), "jupyter-notebook", 1, cells)
    editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))
    code = uris[2]
    (found,) = editor.until(lambda: editor.published.get(code))[-1].diagnostics
    assert found.code == "deprecated-amp-api" and found.range.start == types.Position(1, 34)
    assert editor.published[uris[1]][-1].diagnostics == ()
    params = types.CodeActionParams(types.TextDocumentIdentifier(code), found.range, types.CodeActionContext([]))
    fix = editor.wait(editor.client.text_document_code_action_async(params))[0]
    ((uri, version, edits),) = changes_of(fix.edit)
    assert (uri, version) == (code, 1)
    assert applied(texts[2], edits, "utf-16") == AMP_FIXED.split("\n\n\n")[1]
    # A line is typed above the finding, as VS Code says it: by the range that it takes the place of.
    start = types.Position(1, 0)
    text = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, code),
        [types.TextDocumentContentChangePartial(types.Range(start, start), "    # 🙂\n")],
    )
    moved = types.NotebookDocumentCellChanges(text_content=[text])
    editor.client.notebook_document_did_change(changed_notebook(path, 2, moved))
    editor.until(lambda: [one for one in editor.published[code] if one.version == 2] or None)
    assert editor.published[code][-1].diagnostics[0].range.start == types.Position(2, 34)
    # The cell is taken out.
    array = types.NotebookCellArrayChange(start=2, delete_count=1, cells=[])
    gone = types.NotebookDocumentCellChangeStructure(array, did_close=[types.TextDocumentIdentifier(code)])
    removed = types.NotebookDocumentCellChanges(structure=gone)
    editor.client.notebook_document_did_change(changed_notebook(path, 3, removed))
    editor.until(lambda: editor.published[code][-1].diagnostics == () or None)


def changed_notebook(
    path: Path, version: int, cells: types.NotebookDocumentCellChanges
) -> types.DidChangeNotebookDocumentParams:
    document = types.VersionedNotebookDocumentIdentifier(version, path.as_uri())
    return types.DidChangeNotebookDocumentParams(document, types.NotebookDocumentChangeEvent(cells=cells))
