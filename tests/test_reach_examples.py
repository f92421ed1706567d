"""What is an example beside a library, or a package that a project does not use, and what only looks like it: negative cases first."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from calling import Enter, Run

LOAD = "import torch\n\n\ndef load(path):\n    return torch.load(path)\n"
USES = "import tiny\n\n"
PROGRAM = LOAD + "\n\nif __name__ == '__main__':\n    load('a.pt')\n"
TRAINS = "import torch\n\nmodel = torch.nn.Linear(2, 2)\nfor _ in range(3):\n    model(torch.ones(2)).sum().backward()\n"
BUILD = {"setup.py": "from setuptools import find_packages, setup\n\nsetup(name='tiny', packages=find_packages())\n"}
LIBRARY = BUILD | {"tiny/__init__.py": "", "tiny/nets.py": "x = 1\n"}


def notebook(code: str) -> str:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": code}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def reaches(enter: Enter, run: Run, files: Mapping[str, str]) -> dict[str, str]:
    """Why the code of each file with a finding counts little, by its path; files of the project's own are not among them."""
    enter({"pyproject.toml": "", **files})
    found = json.loads(run("--format", "json", "--select", "checkpoint-load-unspecified", "--no-cache")[1])["findings"]
    assert {one["path"] for one in found} >= {path for path, text in files.items() if "torch.load" in text and path.endswith((".py", ".ipynb"))}
    assert all(one["severity"] == "info" for one in found if "reach" in one)
    return {one["path"]: one["reach"] for one in found if "reach" in one}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"examples/train.py": PROGRAM, "examples/net.py": LOAD}, id="a-repository-of-examples"),
        pytest.param(LIBRARY | {"examples/train.py": USES + PROGRAM, "README.md": "# Tiny\n\n```sh\ntorchrun examples/train.py --epochs 3\n```\n"}, id="the-readme-starts-it"),
        pytest.param(
            LIBRARY | {"examples/cifar/train.py": USES + PROGRAM, "README.md": "# Tiny\n\n    $ cd examples/cifar\n    $ python train.py\n"},
            id="the-readme-goes-there-and-starts-it",
        ),
        pytest.param(
            LIBRARY | {"examples/train.py": USES + PROGRAM, "examples/other.py": PROGRAM, "README.md": "```\npython examples/train.py\n```\n"},
            id="one-of-the-folder-is-started",
        ),
        pytest.param(LIBRARY | {"examples/train.py": USES + PROGRAM, "scripts/train.sh": "#!/bin/bash\npython examples/train.py\n"}, id="a-script-starts-it"),
        pytest.param(LIBRARY | {"examples/common.py": LOAD, "examples/show.py": USES, "train.py": "from examples.common import load\n\nload('a.pt')\n"}, id="a-program-imports-it"),
        pytest.param(LIBRARY | {"tiny/examples/__init__.py": "", "tiny/examples/train.py": PROGRAM}, id="a-part-of-the-package"),
        pytest.param(LIBRARY | {"examples/train.py": PROGRAM}, id="it-does-not-use-the-library"),
        pytest.param(LIBRARY | {"scripts/train.py": PROGRAM, "tools/train.py": PROGRAM}, id="folders-of-trainings"),
        pytest.param(LIBRARY | {"train.py": PROGRAM, "tiny/load.py": LOAD}, id="a-program-at-the-top-and-the-package"),
        pytest.param({"explore.ipynb": notebook(LOAD)}, id="a-notebook-alone"),
        pytest.param({"explore.ipynb": notebook(LOAD), "other/train.py": TRAINS}, id="a-notebook-beside-nothing-that-trains"),
        pytest.param({"mine.ipynb": notebook(LOAD + TRAINS), "train.py": TRAINS}, id="a-notebook-that-trains"),
        pytest.param({"pkg/__init__.py": "", "pkg/load.py": LOAD, "train.py": f"from pkg.load import load\n\nload(1)\n{TRAINS}"}, id="a-package-that-is-used"),
        pytest.param({"pkg/__init__.py": "", "pkg/load.py": LOAD, "train.py": TRAINS, "conf.yaml": "target: pkg.load.load\n"}, id="a-configuration-names-it"),
        pytest.param({"pkg/__init__.py": "", "pkg/load.py": LOAD, "train.py": f"import importlib\nimport sys\n\nimportlib.import_module(sys.argv[1])\n{TRAINS}"}, id="imported-by-a-computed-name"),
        pytest.param({"pkg/__init__.py": "", "pkg/load.py": LOAD, "pkg/fit.py": f"from .load import load\n\nif __name__ == '__main__':\n    load(1)\n{TRAINS}", "train.py": TRAINS}, id="a-package-with-a-training"),
        pytest.param({"pkg/__init__.py": "", "pkg/load.py": PROGRAM, "train.py": TRAINS, "README.md": "Run `python -m pkg.load`.\n"}, id="the-readme-names-it"),
        pytest.param({"pkg/__init__.py": "", "pkg/load.py": LOAD, "show.py": "print(1)\n"}, id="nothing-else-trains"),
        pytest.param({"pkg/__init__.py": "", "pkg/load.py": LOAD, "train.py": TRAINS, "test_load.py": "from pkg.load import load\n"}, id="a-test-uses-it"),
    ],
)
def test_code_of_the_project(enter: Enter, run: Run, files: Mapping[str, str]) -> None:
    assert reaches(enter, run, files) == {}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(LIBRARY | {"examples/train.py": USES + PROGRAM}, {"examples/train.py": "example"}, id="a-program"),
        pytest.param(
            BUILD | {"src/tiny/__init__.py": "", "web-demos/a/app.py": "import tiny\nfrom .net import load\n\nload('a.pt')\n", "web-demos/a/net.py": LOAD},
            {"web-demos/a/net.py": "example"},
            id="a-module-of-a-demo",
        ),
        pytest.param(
            LIBRARY | {"examples/train.py": USES + PROGRAM, "examples/README.md": "```\npython examples/train.py\n```\n", "examples/run.sh": "python train.py\n"},
            {"examples/train.py": "example"},
            id="only-its-own-folder-starts-it",
        ),
        pytest.param(
            LIBRARY | {"examples/train.py": USES + PROGRAM, "tests/test_examples.py": "import examples.train\n", "README.md": "See [the examples](examples/train.py).\n"},
            {"examples/train.py": "example"},
            id="a-test-and-a-link",
        ),
        pytest.param(LIBRARY | {"docs/tutorials/first.ipynb": notebook(LOAD + TRAINS)}, {"docs/tutorials/first.ipynb": "example"}, id="a-tutorial"),
        pytest.param(
            {"python/setup.py": BUILD["setup.py"], "python/tiny/__init__.py": "", "examples/a/train.py": USES + PROGRAM, "examples/b/train.py": PROGRAM},
            {"examples/a/train.py": "example", "examples/b/train.py": "example"},
            id="a-library-in-a-folder-of-its-own",
        ),
        pytest.param(LIBRARY | {"extra/first.ipynb": notebook(LOAD)}, {"extra/first.ipynb": "example"}, id="a-notebook-beside-a-library"),
        pytest.param({"tools/show.ipynb": notebook(LOAD), "train.py": TRAINS}, {"tools/show.ipynb": "example"}, id="a-notebook-beside-a-training"),
        pytest.param(
            {"vendor_net/__init__.py": "", "vendor_net/a/__init__.py": "from .load import load\n", "vendor_net/a/load.py": LOAD, "train.py": TRAINS},
            {"vendor_net/a/load.py": "unreached"},
            id="a-package-that-nothing-imports",
        ),
        pytest.param({"pkg/__init__.py": "", "pkg/load.py": PROGRAM, "train.py": TRAINS}, {"pkg/load.py": "unreached"}, id="one-of-its-modules-tests-itself"),
    ],
)
def test_code_that_counts_little(enter: Enter, run: Run, files: Mapping[str, str], expected: Mapping[str, str]) -> None:
    assert reaches(enter, run, files) == expected


def test_the_report_names_what_it_is_beside(enter: Enter, run: Run) -> None:
    enter({"pyproject.toml": "", **LIBRARY, "examples/train.py": USES + PROGRAM, "extra/first.ipynb": notebook(LOAD)})
    code, text, _ = run("--select", "checkpoint-load-unspecified", "--no-cache")
    assert code == 0
    assert "1 finding in an example beside tiny (examples/)\n1 finding in a notebook beside tiny (extra/first.ipynb)\n" in text
