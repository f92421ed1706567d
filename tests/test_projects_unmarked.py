"""A repository without ``.git`` and ``pyproject.toml``, as an archive or an image holds it: one program all the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from calling import Enter, Run
from harness import lint, pylint_in_process, seen_by_engine

from ldlm_lint import engine
from ldlm_lint.config import Config, may_be_project, root_among
from ldlm_lint.discover import project_files

FILES = {
    "train.py": """
        from parts.trainer import Trainer

        if __name__ == "__main__":
            Trainer(None, None, None).train()
    """,
    "parts/optimizers.py": """
        from torch.optim import AdamW

        def make(parameters, lr):
            return AdamW(parameters, lr=lr)
    """,
    "parts/trainer.py": """
        from parts.optimizers import make
        from tools.loaders import loader_of

        class Trainer:
            def __init__(self, args, model, dataset):
                self.model = model.to("cuda")
                self.optimizer = make(model.parameters(), 1e-4)
                self.loader = loader_of(args, dataset)

            def train(self):
                for epoch in range(10):
                    for batch in self.loader:
                        self.optimizer.zero_grad()
                        self.model(batch.to("cuda", non_blocking=True)).mean().backward()
                        self.optimizer.step()
    """,
    "tools/loaders.py": """
        from torch.utils.data import DataLoader

        def loader_of(args, dataset):
            return DataLoader(dataset, args.batch, shuffle=True, num_workers=4, pin_memory=True)
    """,
}
EXPECTED = {
    ("parts/optimizers.py", "optimizer-not-fused"),
    ("tools/loaders.py", "dataloader-without-persistent-workers"),
    ("tools/loaders.py", "dataloader-without-prefetch"),
}
@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({name: "\n".join(line[8:] for line in text.split("\n")) for name, text in FILES.items()})


def test_its_folders_are_one_program(project: Path) -> None:
    assert {(one.path, one.rule) for one in seen_by_engine(project, lint(project))} == EXPECTED


def test_the_directory_that_is_named_is_its_root_wherever_the_command_runs(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent)
    for jobs in (1, 2):
        _, output, _ = run("check", project.name, "--format", "concise", "--no-cache", "--jobs", jobs)
        assert {rule for _, rule in EXPECTED} <= {word.strip(":") for word in output.split()}


def test_directories_that_are_named_together_are_projects_of_their_own(project: Path, run: Run) -> None:
    _, output, _ = run("check", "parts", "tools", "--no-cache", "--format", "concise")
    assert "No findings" in output


def test_files_that_are_named_together_are_one_program(project: Path) -> None:
    report = engine.run([project / name for name in FILES], Config.load(project), base=project)
    assert {(one.path, one.rule) for one in seen_by_engine(project, report)} == EXPECTED


def test_pylint_takes_the_directory_that_it_runs_in(project: Path) -> None:
    seen = {(Path(one["absolutePath"]).relative_to(project).as_posix(), one["symbol"]) for one in pylint_in_process(project)}
    assert seen >= EXPECTED


def test_what_is_marked_keeps_its_root(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    file = inner / "file.py"
    assert root_among(file, [tmp_path, tmp_path / "outer"]) == tmp_path
    assert root_among(file, [tmp_path / "elsewhere"]) == inner
    (tmp_path / "outer" / "pyproject.toml").touch()
    assert root_among(file, [tmp_path]) == tmp_path / "outer"


def test_not_all_that_there_is_is_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert not may_be_project(tmp_path)
    assert not may_be_project(Path(tmp_path.anchor))
    assert may_be_project(tmp_path / "repository")


def test_a_checkout_below_a_loose_script_is_another_program(project: Path) -> None:
    def belonging() -> set[str]:
        return {path.relative_to(project).as_posix() for path, _ in project_files(project, Config()).files}

    def found() -> set[str]:
        named = [project / "train.py", project / "tools" / "loaders.py"]
        return {one.rule for one in engine.run(named, Config.load(project), base=project).findings}

    assert belonging() == set(FILES)
    assert "dataloader-without-persistent-workers" in found()
    (project / "parts" / ".git").mkdir()
    assert belonging() == {"train.py", "tools/loaders.py"}
    assert not found()
    (project / "pyproject.toml").touch()
    assert belonging() >= set(FILES)


@pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="links need rights on Windows")
def test_a_link_leads_to_no_other_program_either(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "parts" / "clone").mkdir()
    (project / "parts" / "clone" / ".git").mkdir()
    (project / "parts" / "clone" / "other.py").touch()
    (project / "linked").symlink_to(project / "parts" / "clone", target_is_directory=True)
    assert {path.name for path, _ in project_files(project, Config()).files} == {Path(name).name for name in FILES}
    monkeypatch.setenv("HOME", str(project))
    (project / "tied").symlink_to(project / "tools", target_is_directory=True)
    assert [path.name for path, _ in project_files(project, Config()).files] == ["train.py"]


def test_a_script_at_home_is_no_program_with_all_that_lies_there(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project))
    monkeypatch.setenv("USERPROFILE", str(project))
    assert [path.name for path, _ in project_files(project, Config()).files] == ["train.py"]
    assert len(project_files(project / "parts", Config()).files) == 2
