"""Which modules of a large library are followed: what trainings name, past the packages that hand it on."""

from __future__ import annotations

import pytest
from linking import program_of

from ldlm_lint.program import slices

LIBRARY = {
    "lib/__init__.py": "from .nets import *\nfrom .data import Loader, Reader\n",
    "lib/nets/__init__.py": "from .big import Big\nfrom .small import Small\nfrom .made import Made\nfrom . import extra\n",
    "lib/nets/big.py": "from .parts import Part\n\nclass Big:\n    part = Part\n",
    "lib/nets/parts.py": "class Part: pass\n",
    "lib/nets/small.py": "class Small: pass\n",
    "lib/nets/made.py": "from ..registry import register_model\n\n@register_model\nclass Made: pass\n",
    "lib/nets/extra.py": "def more(): pass\n",
    "lib/registry.py": "def register_model(one):\n    return one\n",
    "lib/data.py": "class Loader: pass\nclass Reader: pass\n",
    "lib/plugins/one.py": "class One: pass\n",
    "tests/test_nets.py": "from lib import Small\n",
}
HANDING = {"lib/__init__.py", "lib/nets/__init__.py"}
REGISTERED = {"lib/nets/made.py", "lib/registry.py"}


def followed(monkeypatch: pytest.MonkeyPatch, train: str) -> set[str]:
    """The modules of the library that are followed where a file trains so, if it counted as large."""
    monkeypatch.setattr(slices, "FOLLOWED_WHOLE", 0)
    monkeypatch.setattr(slices, "LINKED_WHOLE", 0)
    return {module.path for module in program_of({"train.py": train, **LIBRARY}).live} - {"train.py"}


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        pytest.param("from lib import Big\n", {*HANDING, *REGISTERED, "lib/nets/big.py", "lib/nets/parts.py"}, id="a-name-through-a-star"),
        pytest.param("from lib.nets import Small\n", {*HANDING, *REGISTERED, "lib/nets/small.py"}, id="a-name"),
        pytest.param("from lib.nets.small import Small\n", {*HANDING, *REGISTERED, "lib/nets/small.py"}, id="where-it-is-made"),
        pytest.param("import lib\n\nnet = lib.Loader()\n", {*HANDING, *REGISTERED, "lib/data.py"}, id="an-attribute-of-the-package"),
        pytest.param("from lib.nets import extra\n", {*HANDING, *REGISTERED, "lib/nets/extra.py"}, id="a-module"),
        pytest.param("import torch\n", set(), id="nothing-of-it"),
    ],
)  # fmt: skip
def test_of_a_large_library_what_is_named_is_followed(
    monkeypatch: pytest.MonkeyPatch, train: str, expected: set[str]
) -> None:
    assert followed(monkeypatch, train) == expected


def test_a_computed_name_leads_to_what_its_text_names(monkeypatch: pytest.MonkeyPatch) -> None:
    train = "import importlib\n\ndef load(name):\n    return importlib.import_module(f'lib.plugins.{name}')\n"
    assert "lib/plugins/one.py" in followed(monkeypatch, train)
    assert "lib/nets/small.py" not in followed(monkeypatch, train)


def test_who_imports_a_training_of_the_library_is_followed_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    train = "from lib.nets import Small\n"
    monkeypatch.setitem(LIBRARY, "main.py", "from lib import Loader\nimport train\n")
    monkeypatch.setitem(LIBRARY, "other.py", "from lib import Loader\n")
    found = followed(monkeypatch, train)
    assert {"main.py", "lib/data.py"} <= found
    assert "other.py" not in found


def test_a_small_library_is_followed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "FOLLOWED_WHOLE", 0)
    live = {module.path for module in program_of({"train.py": "from lib import Small\n", **LIBRARY}).live}
    assert live == {"train.py", *LIBRARY} - {"tests/test_nets.py", "lib/plugins/one.py"}


def test_what_reads_or_writes_files_of_torch_is_followed_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIBRARY, "scripts/convert.py", "import torch\nfrom lib import Small\n\ntorch.save(torch.load('a.pt'), 'b.pt')\n")
    monkeypatch.setitem(LIBRARY, "scripts/notes.py", "import json\n\njson.load(open('a.json'))\n")
    assert followed(monkeypatch, "import torch\n") == {"scripts/convert.py"}
