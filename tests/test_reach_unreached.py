"""What no program reaches, and everything that may reach it after all: negative cases first."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from calling import Enter, Run

OLD = "import torch\n\n\ndef load_old(path):\n    return torch.load(path)\n\n\ndef load_new(path):\n    return open(path)\n"
MAIN = "from tools import load_new\n\nif __name__ == '__main__':\n    load_new('a.pt')\n"
HOLDER = "import torch\n\n\nclass {name}{bases}:\n    def __init__(self, path):\n        self.state = torch.load(path)\n\n\ndef used():\n    return 1\n"


def reaches(enter: Enter, run: Run, files: Mapping[str, str]) -> list[tuple[str, int]]:
    """The findings in code that no program reaches, by path and line."""
    enter({"pyproject.toml": "", **files})
    found = json.loads(run("--format", "json", "--select", "checkpoint-load-unspecified", "--no-cache")[1])["findings"]
    assert found
    assert not any("copied_from" in one for one in found)
    return [(one["path"], one["line"]) for one in found if one.get("reach") == "unreached"]


def holder(name: str = "Old", bases: str = "") -> str:
    return HOLDER.format(name=name, bases=bases)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"tools.py": OLD}, id="nobody-imports-it"),
        pytest.param({"tools.py": OLD, "old/train.py": MAIN.replace("load_new", "load_old")}, id="an-old-program-uses-it"),
        pytest.param({"tools.py": OLD, "main.py": MAIN, "b.py": MAIN.replace("load_new('", "load = load_old; load('")}, id="one-program-of-two"),
        pytest.param({"tools.py": OLD, "api.py": "from tools import load_new\n\n\ndef serve():\n    return load_new\n"}, id="who-imports-it-is-no-program"),
        pytest.param({"tools.py": OLD, "main.py": MAIN, "api.py": "from tools import load_new\nserve = load_new\n"}, id="one-of-them-is-none"),
        pytest.param({"tools.py": OLD, "main.py": MAIN, "tests/test_tools.py": "import tools\n\n\ndef test_it():\n    tools.load_old('a')\n"}, id="a-test"),
        pytest.param({"tools.py": OLD + "LOADERS = {'old': load_old}\n", "main.py": MAIN}, id="handed-on-as-a-value"),
        pytest.param({"tools.py": OLD + "__all__ = ['load_old', 'load_new']\n", "main.py": MAIN, "setup.py": "py_modules = ['tools']\n"}, id="offered-by-name"),
        pytest.param({"tools.py": OLD, "main.py": MAIN, "configs/a.yaml": "loader: load_old\n"}, id="a-configuration"),
        pytest.param({"tools.py": OLD, "main.py": MAIN, "go.sh": "#!/bin/bash\npython -c 'import tools; tools.load_old(1)'\n"}, id="a-script"),
        pytest.param({"tools.py": OLD, "main.py": MAIN.replace("load_new(", "import tools, sys; getattr(tools, sys.argv[1])(")}, id="looked-up"),
        pytest.param({"tools.py": OLD, "main.py": MAIN + "    import tools, sys\n    tools.__dict__[sys.argv[1]]()\n"}, id="looked-up-in-the-dictionary"),
        pytest.param({"tools.py": OLD + "\n\ndef get(name):\n    return globals()[name]\n", "main.py": MAIN}, id="its-own-globals"),
        pytest.param({"tools.py": OLD, "main.py": MAIN + "    import tools\n    eval(input())('a')\n"}, id="a-computed-name-of-a-module-it-holds"),
        pytest.param({"tools.py": OLD, "main.py": "from tools import *\n\nif __name__ == '__main__':\n    load_new('a')\n    globals()[input()]('a')\n"}, id="a-computed-name-of-all-it-took"),
        pytest.param({"tools.py": OLD, "main.py": MAIN + "    import importlib\n    importlib.import_module(input()).run()\n"}, id="a-computed-module"),
        pytest.param({"tools.py": OLD.replace("def load_old", "@register\ndef load_old"), "main.py": MAIN}, id="registered"),
        pytest.param({"tools.py": OLD, "main.py": MAIN.replace("import load_new", "import load_new, load_old as load")}, id="under-another-name"),
        pytest.param({"tools.py": OLD, "main.py": MAIN, "setup.py": "py_modules = ['tools']\n"}, id="a-module-for-others"),
        pytest.param(
            {"pkg/__init__.py": "", "pkg/tools.py": OLD, "main.py": MAIN.replace("from tools", "from pkg.tools"), "setup.py": "name='pkg'\n"},
            id="a-package-for-others",
        ),
        pytest.param({"tools.py": holder() + "\n\nclass New(Old):\n    pass\n", "main.py": "from tools import New\n\nNew('a.pt')\n"}, id="a-base"),
        pytest.param(
            {"tools.py": "class Base:\n    def __init_subclass__(cls):\n        all_of_them.append(cls)\n\n\n" + holder(bases="(Base)"), "main.py": "from tools import used\n\nused()\n"},
            id="a-base-that-keeps-its-subclasses",
        ),
        pytest.param({"main.py": OLD + "\n\nload_new('a')\n"}, id="in-the-program-itself"),
        pytest.param({"tools.py": "import torch\nstate = torch.load('a.pt')\n\n\ndef load_new(path):\n    return state\n", "main.py": MAIN}, id="code-of-the-module"),
    ],
)
def test_reached_or_unknown(enter: Enter, run: Run, files: Mapping[str, str]) -> None:
    assert reaches(enter, run, files) == []


CLASS = "import torch\n\n\nclass {bases}:\n    def load_old(self, path):\n        return torch.load(path)\n\n    def load_new(self, path):\n        return hasattr(self, 'state')\n"
USES = "from tools import Store\n\nif __name__ == '__main__':\n    Store().load_new('a.pt')\n"


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"tools.py": CLASS.format(bases="Store(Trainer)"), "main.py": USES}, id="the-class-of-another-package"),
        pytest.param({"tools.py": CLASS.format(bases="Store(make())"), "main.py": USES}, id="a-computed-class"),
        pytest.param({"tools.py": CLASS.format(bases="Store").replace("hasattr(self, 'state')", "self.load_old(path)"), "main.py": USES}, id="the-class-itself"),
        pytest.param({"tools.py": CLASS.format(bases="Store"), "main.py": USES + "    Store().load_old('b.pt')\n"}, id="the-program"),
        pytest.param({"tools.py": CLASS.format(bases="Store"), "main.py": USES + "    getattr(Store(), f'load_{1}')('b.pt')\n"}, id="a-name-that-is-put-together"),
        pytest.param({"tools.py": CLASS.format(bases="Store"), "main.py": USES, "go.yaml": "call: load_old\n"}, id="a-configuration"),
        pytest.param({"tools.py": CLASS.format(bases="Store").replace("load_old", "__call__"), "main.py": USES}, id="python"),
        pytest.param({"tools.py": CLASS.format(bases="Store(torch.nn.Module)").replace("load_old", "forward"), "main.py": USES}, id="a-module-of-torch"),
        pytest.param({"tools.py": CLASS.format(bases="Store").replace("    def load_old", "    @hook\n    def load_old"), "main.py": USES}, id="a-decorator"),
    ],
)
def test_a_method_that_may_be_called(enter: Enter, run: Run, files: Mapping[str, str]) -> None:
    assert reaches(enter, run, files) == []


@pytest.mark.parametrize("bases", ["Store", "Store(object)", "Store(torch.nn.Module)", "Base:\n    pass\n\n\nclass Store(Base)"])
def test_a_method_that_nobody_calls(enter: Enter, run: Run, bases: str) -> None:
    text = CLASS.format(bases=bases)
    line = text[: text.index("torch.load")].count("\n") + 1
    assert reaches(enter, run, {"tools.py": text, "main.py": USES}) == [("tools.py", line)]


def test_a_method_that_only_another_such_method_calls(enter: Enter, run: Run) -> None:
    text = CLASS.format(bases="Store") + "\n    def load_both(self, path):\n        return self.load_old(path)\n"
    assert reaches(enter, run, {"tools.py": text, "main.py": USES}) == [("tools.py", 6)]
    assert reaches(enter, run, {"tools.py": text, "main.py": USES + "    Store().load_both('a')\n"}) == []


def test_a_function_that_no_program_mentions(enter: Enter, run: Run) -> None:
    assert reaches(enter, run, {"tools.py": OLD, "main.py": MAIN}) == [("tools.py", 5)]


@pytest.mark.parametrize("computed", ["eval(input())", "globals()[input()]"])
def test_a_computed_name_reaches_what_its_file_holds(enter: Enter, run: Run, computed: str) -> None:
    assert reaches(enter, run, {"tools.py": OLD, "main.py": MAIN + f"    print({computed})\n"}) == [("tools.py", 5)]


def test_a_name_in_all_alone_reaches_nothing(enter: Enter, run: Run) -> None:
    """Whoever takes it with a star mentions it, and the package is not built for others."""
    tools = OLD + "\n\n__all__ = ['load_old', 'load_new']\n"
    assert reaches(enter, run, {"tools.py": tools, "main.py": MAIN.replace("import load_new", "import *")}) == [("tools.py", 5)]


def test_a_comment_or_a_docstring_reaches_nothing(enter: Enter, run: Run) -> None:
    main = '"""As load_old did."""\n# load_old is gone\n' + MAIN
    assert reaches(enter, run, {"tools.py": OLD, "main.py": main}) == [("tools.py", 5)]


def test_a_class_that_only_a_package_hands_on(enter: Enter, run: Run) -> None:
    files = {
        "models/__init__.py": "from .old import Old, used\n",
        "models/old.py": holder(),
        "main.py": "import models\n\nprint(models.used())\n",
    }
    assert reaches(enter, run, files) == [("models/old.py", 6)]


def test_what_only_unreached_code_mentions(enter: Enter, run: Run) -> None:
    tools = OLD + "\n\ndef restore(path):\n    return load_old(path)\n\n\ndef resume(path):\n    return restore(path)\n"
    assert reaches(enter, run, {"tools.py": tools, "main.py": MAIN}) == [("tools.py", 5)]
    assert reaches(enter, run, {"tools.py": tools, "main.py": MAIN.replace("    load_new(", "    import tools\n    tools.resume(")}) == []


def test_findings_of_several_files_are_counted_by_their_folder(enter: Enter, run: Run) -> None:
    files = {f"old/{name}.py": OLD for name in ("a", "b")}
    enter({"pyproject.toml": "", **files, "main.py": "import old.a\nimport old.b\n\nprint(old.a.load_new(1), old.b.load_new(2))\n", "load.py": OLD})
    code, text, _ = run("--select", "checkpoint-load-unspecified", "--no-cache")
    assert "2 more in code that no program reaches (old/)\n--show-unreached shows them in full.\n" in text
    assert "Found 1 finding:" in text and code == 1


def test_a_long_chain_at_the_top_and_a_broken_file_are_taken_in_stride(enter: Enter, run: Run) -> None:
    chain = "if x == 0:\n    pass\n" + "".join(f"elif x == {number}:\n    load_new\n" for number in range(1, 900))
    files = {"tools.py": OLD, "main.py": MAIN, "chain.py": "x = 1\n" + chain, "broken.py": "def load_old(:\n"}
    assert reaches(enter, run, files) == []


def test_a_licence_that_is_no_text_tells_nothing(enter: Enter, run: Run) -> None:
    root = enter({"pyproject.toml": "", "lib/load.py": OLD, "main.py": "from lib.load import load_old\n\nload_old(1)\n"})
    (root / "LICENSE").mkdir()
    (root / "lib/LICENSE").write_bytes(b"Copyright (c) 2020 \xff\xfe\x00" * 1000)
    found = json.loads(run("--format", "json", "--select", "checkpoint-load-unspecified", "--no-cache")[1])["findings"]
    assert [one.get("reach") for one in found] == [None]
