"""Which classes of a project are derived from which."""

from __future__ import annotations

from collected import for_every

from ldlm_lint.project import Project
from ldlm_lint.project.derivations import Derivations

ROOT = "/project"
HERE = f"{ROOT}/a.py"


def derivations(**texts: str) -> Derivations:
    overlay = {f"{ROOT}/{name}.py": text.encode() for name, text in texts.items()}
    return Project(ROOT, overlay, overlay).derivations


@for_every(
    ("text", "names"),
    [
        ("class Small(Net):\n    pass\n", ["Small"]),
        ("class Small(nets.Net, Mixin):\n    pass\n", ["Small"]),
        ("class Small(\n    Mixin,\n    Net,\n):\n    pass\n", ["Small"]),
        ("class One(Net):\n    pass\nclass Two(Net): pass\n", ["One", "Two"]),
        ("class Outer:\n    class Inner (Net):\n        pass\n", ["Inner"]),
        ("class Small(Mixin, Net=1):\n    pass\n", []),
        ("class Small(Networks):\n    pass\n", []),
        ("subclass Small(Net)\n", []),
        ("class Small(Net", []),
    ],
)
def test_derived_classes(text: str, names: list[str]) -> None:
    found = derivations(a=text)
    assert found.derived("Net") == {(HERE, name) for name in names}


def test_the_files_of_a_project_are_one_index() -> None:
    found = derivations(a="class One(Net): pass\n", b="class Two(a.Net): pass\n")
    assert found.derived("Net") == {(HERE, "One"), (f"{ROOT}/b.py", "Two")}
    assert found.derived("Nobody") == frozenset()


def test_bases_of_a_class() -> None:
    found = derivations(a="class One(nn.Module, metaclass=Meta): pass\nclass One(Other): pass\nclass Bare: pass\n")
    assert found.bases(HERE, "One") == {"nn", "Module", "Meta"}
    assert found.bases(HERE, "Bare") == found.bases(HERE, "Nobody") == frozenset()
