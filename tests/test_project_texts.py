"""The bytes of a project: kept as far as they fit, else read again, and never in two states."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldlm_lint.config import Config
from ldlm_lint.project import texts
from ldlm_lint.project.flows import Facts
from ldlm_lint.project.index import Project
from ldlm_lint.project.texts import ChangedError, Texts
from ldlm_lint.projects import Projects
from ldlm_lint.python.flow import ModuleFlow


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two files, of which the first fits and the second neither fits nor stays."""
    monkeypatch.setattr(texts, "_MOST", 10)
    monkeypatch.setattr(texts, "_RECENT", 10)
    found = []
    for name, text in (("a.py", "x = 1\n"), ("b.py", "y = 2\nz = 3\n")):
        (tmp_path / name).write_text(text)
        found.append((tmp_path / name).as_posix())
    return found


def test_what_does_not_fit_is_read_again(paths: list[str]) -> None:
    files = Texts({})
    for _ in range(2):
        assert [files.of(path) for path in paths] == [b"x = 1\n", b"y = 2\nz = 3\n"]
    assert files.of(paths[0]) is files.of(paths[0])
    assert files.of(paths[1]) is not files.of(paths[1])


@pytest.mark.parametrize("change", ["text", "gone"])
def test_a_file_that_changes_meanwhile_is_not_put_together_with_what_it_was(paths: list[str], change: str) -> None:
    files = Texts({})
    for path in paths:
        files.of(path)
        Path(path).write_text("longer = 'than before'\n") if change == "text" else Path(path).unlink()
    assert files.of(paths[0]) == b"x = 1\n"
    with pytest.raises(ChangedError, match=r"b\.py has changed"):
        files.of(paths[1])


def test_the_last_ones_asked_for_stay(paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_RECENT", 100)
    files = Texts({})
    for path in paths:
        files.of(path)
    assert files.of(paths[1]) is files.of(paths[1])


def test_what_is_on_no_disk_and_what_cannot_be_read(paths: list[str]) -> None:
    files = Texts({paths[1]: b"a longer text than fits\n"})
    assert files.of(paths[1]) is files.of(paths[1]) == b"a longer text than fits\n"
    assert files.of(f"{paths[0]}.gone") == b""


def test_facts_of_files_that_are_read_again(tmp_path: Path, paths: list[str]) -> None:
    (tmp_path / "c.py").write_text("from a import thing as other\nother(1)\nthing(2)\n")
    project = Project(tmp_path.as_posix(), [*paths, (tmp_path / "c.py").as_posix()])
    assert [Path(one).name for one in project.calling("thing")] == ["c.py"]
    assert [Path(one).name for one in project.calling_by_name("other")] == ["c.py"]
    assert not project.calling_by_name("a")
    # The index has taken the names over; whoever asks the file finds them again.
    assert project.skim((tmp_path / "c.py").as_posix()).called.names == {"other", "thing"}


def test_what_is_drawn_from_a_flow_is_drawn_once() -> None:
    facts, drawn = Facts(ModuleFlow("a.py", (), (), (), ())), []
    assert facts.drawn(lambda flow: drawn.append(flow.path)) is None

    def draw(flow: ModuleFlow) -> list[str]:
        drawn.append("again")
        return [flow.path]

    assert facts.drawn(draw) is facts.drawn(draw)
    assert drawn == ["a.py", "again"]


def test_projects_that_are_forgotten_hold_nothing(tmp_path: Path, paths: list[str]) -> None:
    projects = Projects(paths, Config(), {})
    context = projects.of(paths[0])
    calls, project = context.calls, context.project
    projects.forget()
    assert not vars(calls) and not vars(project) and not list(projects.known)
    assert projects.of(paths[0]) is not context
