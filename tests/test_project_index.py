"""Files of a project and the imports between them."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every
from snippets import ROOT, context

from ldlm_lint.project import texts as texts_of_projects
from ldlm_lint.project.index import Project, dotted_name


def project(*names: str, **texts: str) -> Project:
    """A project of empty files, and of modules with a text."""
    files = dict.fromkeys(names, "") | {f"{name}.py": text for name, text in texts.items()}
    return context(files).project


def resolved(index: Project, importer: str, name: str) -> tuple[str, str] | None:
    found = index.resolve(f"{ROOT}/{importer}", name)
    return (found[0].removeprefix(f"{ROOT}/"), found[1]) if found else None


@for_every(
    "path, root, expected",
    [
        ("/p/pkg/data.py", "/p", "pkg.data"),
        ("/p/pkg/__init__.py", "/p", "pkg"),
        ("/p/stub.pyi", "/p", "stub"),
        ("/p/window.pyw", "/p", "window"),
        ("/p/data.py", "/p/", "data"),
        ("/other/data.py", "/p", "data"),
        ("/p2/data.py", "/p", "data"),
    ],
)
def test_dotted_name(path: str, root: str, expected: str) -> None:
    assert dotted_name(path, root) == expected


FILES = (
    "train.py",
    "data.py",
    "pkg/__init__.py",
    "pkg/data.py",
    "pkg/model.py",
    "pkg/deep/__init__.py",
    "pkg/deep/train.py",
    "scripts/train.py",
    "scripts/data.py",
    "src/lib/__init__.py",
    "src/lib/data.py",
)


@for_every(
    "importer, name, expected",
    [
        pytest.param("train.py", "data", ("data.py", ""), id="sibling"),
        pytest.param("train.py", "data.make", ("data.py", "make"), id="name-in-sibling"),
        pytest.param("train.py", "pkg", ("pkg/__init__.py", ""), id="package"),
        pytest.param("train.py", "pkg.data.Set.make", ("pkg/data.py", "Set.make"), id="two-names-deep"),
        pytest.param("train.py", "pkg.unknown", ("pkg/__init__.py", "unknown"), id="name-in-package"),
        pytest.param("train.py", "torch", None, id="another-package"),
        pytest.param("train.py", "torch.data", None, id="of-another-package"),
        pytest.param("pkg/model.py", "torch", None, id="another-package-from-inside"),
        pytest.param("pkg/model.py", "train", ("train.py", ""), id="root-from-inside"),
        pytest.param("pkg/model.py", "pkg.data", ("pkg/data.py", ""), id="absolute-from-inside"),
        pytest.param("pkg/model.py", "data.make", ("pkg/data.py", "make"), id="sibling-first"),
        pytest.param("scripts/train.py", "data.make", ("scripts/data.py", "make"), id="same-name-in-two-folders"),
        pytest.param("scripts/train.py", "lib.data.make", ("src/lib/data.py", "make"), id="src-layout"),
        pytest.param("pkg/model.py", ".data.make", ("pkg/data.py", "make"), id="relative"),
        pytest.param("pkg/model.py", ".", ("pkg/__init__.py", ""), id="own-package"),
        pytest.param("pkg/model.py", ".make", ("pkg/__init__.py", "make"), id="name-in-own-package"),
        pytest.param("pkg/model.py", ".Set.make", ("pkg/__init__.py", "Set.make"), id="class-in-own-package"),
        pytest.param("pkg/deep/train.py", "..data.make", ("pkg/data.py", "make"), id="parent"),
        pytest.param("pkg/deep/train.py", "...train", ("train.py", ""), id="grandparent"),
        pytest.param("train.py", "......train", None, id="above-the-root"),
        pytest.param("scripts/train.py", ".data", ("scripts/data.py", ""), id="relative-without-package"),
        pytest.param("scripts/train.py", ".unknown", None, id="no-such-file"),
    ],
)
def test_resolve(importer: str, name: str, expected: tuple[str, str] | None) -> None:
    assert resolved(project(*FILES), importer, name) == expected


@for_every(
    "text, name, expected",
    [
        pytest.param("from .data import make", "pkg.make", ("pkg/data.py", "make"), id="name"),
        pytest.param("from pkg.data import make", "pkg.make", ("pkg/data.py", "make"), id="absolute"),
        pytest.param(
            "from .data import (  # noqa\n    other,  # why\n    make,\n)",
            "pkg.make",
            ("pkg/data.py", "make"),
            id="comments",
        ),
        pytest.param("from .data import other, \\\n    make", "pkg.make", ("pkg/data.py", "make"), id="continued"),
        pytest.param("from .data import *", "pkg.make", ("pkg/data.py", "make"), id="star"),
        pytest.param("from .data import *", "pkg.Set.make", ("pkg/data.py", "Set.make"), id="of-a-star"),
        pytest.param("from .data import *", "pkg.unknown", ("pkg/__init__.py", "unknown"), id="not-behind-the-star"),
        pytest.param("from .torch import *", "pkg.make", ("pkg/__init__.py", "make"), id="star-of-nothing"),
        pytest.param("from . import *", "pkg.make", ("pkg/__init__.py", "make"), id="star-of-itself"),
        pytest.param("from . import data", "pkg.data.make", ("pkg/data.py", "make"), id="module"),
        pytest.param(
            "from .data import make\ndef make(): ...", "pkg.make", ("pkg/__init__.py", "make"), id="own-first"
        ),
        pytest.param("from .data import Set", "pkg.Set.make", ("pkg/data.py", "Set.make"), id="method"),
    ],
)
def test_re_export(text: str, name: str, expected: tuple[str, str]) -> None:
    files = {"train.py": "", "pkg/__init__.py": text, "pkg/data.py": "def make(): ...\nclass Set: ...\n"}
    assert resolved(context(files).project, "train.py", name) == expected


def test_re_export_over_two_packages() -> None:
    files = {
        "train.py": "",
        "a/__init__.py": "from .b import *",
        "a/b/__init__.py": "from .c import *",
        "a/b/c.py": "def make(): ...",
    }
    assert resolved(context(files).project, "train.py", "a.make") == ("a/b/c.py", "make")


@pytest.mark.parametrize(
    "a, b",
    [
        pytest.param("from b import make", "from a import make", id="names"),
        pytest.param("from b import *", "from a import *", id="stars"),
        pytest.param("from b import make\nfrom b import *", "from a import *\nimport a", id="both"),
        pytest.param("from a import *\nfrom a import make", "", id="itself"),
    ],
)
def test_circles_end(a: str, b: str) -> None:
    index = project(a=a, b=b)
    assert resolved(index, "b.py", "a.make") is not None
    assert {path.rpartition("/")[2] for path in index.reach(f"{ROOT}/a.py")} <= {"a.py", "b.py"}


def test_reach() -> None:
    files = {
        "train.py": "import pkg.model\nimport torch",
        "pkg/__init__.py": "",
        "pkg/model.py": "from . import layers\nimport torch",
        "pkg/layers.py": "import train",
        "other.py": "import train",
    }
    index = context(files).project
    reach = {path.removeprefix(f"{ROOT}/") for path in index.reach(f"{ROOT}/train.py")}
    assert reach == {"train.py", "pkg/__init__.py", "pkg/model.py", "pkg/layers.py"}


def test_a_module_of_the_package_does_not_reach_it_by_importing_another_one() -> None:
    index = context(
        {"pkg/__init__.py": "from . import heavy", "pkg/heavy.py": "", "pkg/a.py": "import torch, json"}
    ).project
    assert index.reach(f"{ROOT}/pkg/a.py") == {f"{ROOT}/pkg/a.py"}


@for_every(
    "path, expected",
    [
        ("tests/data.py", True),
        ("pkg/test/data.py", True),
        ("pkg/unittests/model_checks.py", True),
        ("integration_tests/data.py", True),
        ("test_data.py", True),
        ("data_test.py", True),
        ("conftest.py", True),
        ("train.py", False),
        ("latest.py", False),
        ("contest/data.py", False),
        ("pkg/latests/data.py", False),
        ("testing.py", False),
    ],
)
def test_is_test(path: str, expected: bool) -> None:
    assert project(path).is_test(f"{ROOT}/{path}") is expected


def test_a_project_below_a_folder_of_tests_is_no_test() -> None:
    assert not Project("/home/tests/project", ["/home/tests/project/train.py"]).is_test("/home/tests/project/train.py")


def test_trainers() -> None:
    files = {
        "train.py": "import model\nloss.backward()",
        "model.py": "",
        "run.py": "import train",
        "tests/test_model.py": "import model\nloss.backward()",
        "other.py": "import json\nloss.backward()",
    }
    index = context(files).project
    assert index.training_files == {f"{ROOT}/train.py", f"{ROOT}/other.py"}
    assert tuple(index.trainers_of(f"{ROOT}/model.py")) == (f"{ROOT}/run.py", f"{ROOT}/train.py")


def test_files_that_cannot_be_read_are_empty(tmp_path: Path) -> None:
    (tmp_path / "wide.py").write_bytes("import a\n".encode("utf-16"))
    (tmp_path / "nul.py").write_bytes(b"import a\n\0")
    (tmp_path / "broken.py").write_text("x = (\n")
    (tmp_path / "folder.py").mkdir()
    names = [(tmp_path / name).as_posix() for name in ("wide.py", "nul.py", "broken.py", "folder.py", "gone.py")]
    index = Project(tmp_path.as_posix(), names)
    assert [index.flow(name).complete for name in names] == [False, False, False, True, True]
    for name in names:
        assert (index.flow(name).calls, index.flow(name).moves, index.reach(name)) == ((), (), {name})


def test_overlay_takes_the_place_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import old\n")
    assert Project(tmp_path.as_posix(), [path.as_posix()], {path.as_posix(): b"import new\n"}).skim(
        path.as_posix()
    ).imports == ("new",)
    assert Project(tmp_path.as_posix(), [path.as_posix()]).skim(path.as_posix()).imports == ("old",)


def test_each_file_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from ldlm_lint.project import trees as module

    seen: list[str] = []
    parse = module.parse
    monkeypatch.setattr(module, "parse", lambda source, name: seen.append(source.path) or parse(source, name))
    index = project(a="x = 1", b="y = 2")
    for _ in range(3):
        index.flow(f"{ROOT}/a.py")
    assert seen == [f"{ROOT}/a.py"]


def test_no_more_of_the_texts_is_held_than_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {(tmp_path / f"m{number}.py").as_posix(): b"x = %d\n" % number * 50 for number in range(9)}
    for path, text in texts.items():
        Path(path).write_bytes(text)
    monkeypatch.setattr(texts_of_projects, "_MOST", 800)
    monkeypatch.setattr(texts_of_projects, "_RECENT", 200)
    project = Project(tmp_path.as_posix(), texts)
    for _ in range(2):
        assert {path: project.data(path) for path in texts} == texts
        assert project._texts.held <= 1000
    skims = [project.skim(path) for path in texts]
    assert all(not one.called.names and not one.cuda for one in skims)
    assert project._texts.held <= 1000
