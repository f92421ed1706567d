"""What was copied in from another project, and what only looks like it: negative cases first."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from calling import Enter, Run
from collected import for_every

from ldlm_lint.project.holders import head_of, words_of

LOAD = "import torch\n\n\ndef load(path):\n    return torch.load(path)\n"
TRAIN = "from {module} import {name}\n\nif __name__ == '__main__':\n    print({name}('a.pt'))\n"
OURS = "# Copyright (c) 2024 Example Lab. All rights reserved.\n"
THEIRS = "# Copyright 2019 The Otherflow Authors. All Rights Reserved.\n# Licensed under the Apache License, Version 2.0\n"
MIT = "MIT License\n\nCopyright (c) 2024 {holder}\n\nPermission is hereby granted\n"
MMCV = {f"annotator/mmcv/{name}/__init__.py": "" for name in ("cnn", "runner", "fileio")} | {"annotator/mmcv/__init__.py": ""}


def reaches(enter: Enter, run: Run, files: Mapping[str, str]) -> dict[str, str]:
    """What the findings of each file were copied from, by its path; files without such a finding are not among them."""
    enter({"pyproject.toml": "", **files})
    found = json.loads(run("--format", "json", "--select", "checkpoint-load-unspecified", "--no-cache")[1])["findings"]
    assert {one["path"] for one in found} >= {path for path, text in files.items() if "torch.load" in text}
    assert all(one["severity"] == ("info" if "reach" in one else "warning") for one in found)
    return {one["path"]: one["copied_from"] for one in found if one.get("reach") == "copied"}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"models/load.py": OURS + LOAD, "train.py": OURS + TRAIN.format(module="models.load", name="load")}, id="one-holder"),
        pytest.param(
            {"models/load.py": THEIRS + LOAD, "models/other.py": THEIRS, "train.py": THEIRS + TRAIN.format(module="models.load", name="load")},
            id="a-fork-keeps-the-headers",
        ),
        pytest.param(
            {"models/load.py": THEIRS + LOAD, "models/net.py": THEIRS + "x = 1\n", "train.py": TRAIN.format(module="models.load", name="load")},
            id="nobody-else-is-named",
        ),
        pytest.param(
            {
                "LICENSE": MIT.format(holder="Example Lab"),
                "tools/convert.py": THEIRS + "from train import setup\n" + LOAD,
                "tools/net.py": THEIRS + "from train import setup\n",
                "train.py": OURS + "from tools.convert import load\n\n\ndef setup():\n    return load('a.pt')\n",
                "other.py": OURS,
            },
            id="it-needs-our-code",
        ),
        pytest.param(
            {"LICENSE": MIT.format(holder="Example Lab"), "finetune.py": THEIRS + LOAD + "\n\nload('a.pt')\n", "net.py": OURS, "b.py": OURS},
            id="a-program-made-from-a-template",
        ),
        pytest.param(
            {"LICENSE": MIT.format(holder="Example Lab"), "examples/cifar/LICENSE": MIT.format(holder="Jo Doe"), "examples/cifar/train.py": LOAD},
            id="an-example-with-a-licence-that-nobody-uses",
        ),
        pytest.param({"models/clip/__init__.py": "", "models/clip/model.py": LOAD, "train.py": ""}, id="a-folder-of-that-name"),
        pytest.param(
            {"setup.py": "setup(name='mmcv-full')\n", "mmcv/__init__.py": "", **{f"mmcv/{name}/__init__.py": "" for name in ("cnn", "runner")}, "mmcv/load.py": LOAD},
            id="the-project-itself",
        ),
        pytest.param(
            {"src/mmcv/__init__.py": "", **{f"src/mmcv/{name}.py": "x = 1\n" for name in ("cnn", "runner")}, "src/mmcv/load.py": LOAD},
            id="most-of-the-code",
        ),
        pytest.param({"models/modeling_ours.py": OURS + LOAD, "train.py": TRAIN.format(module="models.modeling_ours", name="load")}, id="own-model-file"),
    ],
)
def test_own_code(enter: Enter, run: Run, files: Mapping[str, str]) -> None:
    assert reaches(enter, run, files) == {}


def test_a_published_package_as_a_folder(enter: Enter, run: Run) -> None:
    own = {f"own/{number}.py": "x = 1\n" for number in range(6)}
    files = {**MMCV, **own, "annotator/mmcv/runner/checkpoint.py": LOAD, "train.py": LOAD}
    assert reaches(enter, run, files) == {"annotator/mmcv/runner/checkpoint.py": "mmcv"}


def test_a_published_package_that_is_larger_than_the_project(enter: Enter, run: Run) -> None:
    files = {f"annotator/uniformer/mmseg/{name}/load.py": LOAD for name in ("apis", "core", "datasets")}
    inits = {f"annotator/uniformer/mmseg/{name}/__init__.py": "" for name in ("apis", "core", "datasets")}
    assert set(reaches(enter, run, {**files, **inits, "train.py": "x = 1\n"}).values()) == {"mmseg"}


def test_a_whole_project_with_the_package_inside(enter: Enter, run: Run) -> None:
    package = {f"transformers/src/transformers/{name}.py": "x = 1\n" for name in ("modeling_utils", "configuration_utils", "trainer")}
    files = {**package, "transformers/setup.py": "", "transformers/examples/run.py": LOAD, "train.py": LOAD}
    assert reaches(enter, run, files) == {"transformers/examples/run.py": "transformers"}


def test_a_folder_whose_files_name_another_holder(enter: Enter, run: Run) -> None:
    files = {
        "LICENSE": MIT.format(holder="Example Lab"),
        "metrics/load.py": THEIRS + LOAD,
        "metrics/boxes.py": THEIRS + "x = 1\n",
        "train.py": OURS + TRAIN.format(module="metrics.load", name="load"),
        "net.py": OURS + "x = 1\n",
        "data.py": "x = 1\n",
    }
    assert reaches(enter, run, files) == {"metrics/load.py": "The Otherflow Authors"}


def test_a_folder_with_the_licence_of_others(enter: Enter, run: Run) -> None:
    files = {
        "LICENSE": MIT.format(holder="Example Lab"),
        "rmsd/LICENSE": MIT.format(holder="Jo Doe"),
        "rmsd/load.py": LOAD,
        "train.py": TRAIN.format(module="rmsd.load", name="load"),
    }
    assert reaches(enter, run, files) == {"rmsd/load.py": "Jo Doe"}


def test_a_folder_for_the_code_of_others(enter: Enter, run: Run) -> None:
    files = {"third_party/parser/load.py": LOAD, "train.py": LOAD}
    assert reaches(enter, run, files) == {"third_party/parser/load.py": "parser"}


def test_an_upstream_model_file(enter: Enter, run: Run) -> None:
    head = "# Copyright 2022 EleutherAI and the HuggingFace Inc. team. All rights reserved.\n"
    made = "# This file was automatically generated from src/transformers/models/bert/modular_bert.py.\n"
    files = {
        "models/modeling_llama.py": head + LOAD,
        "models/bert.py": made + LOAD,
        "train.py": TRAIN.format(module="models.modeling_llama", name="load"),
        **{f"own/{number}.py": "x = 1\n" for number in range(4)},
    }
    assert reaches(enter, run, files) == {"models/modeling_llama.py": "transformers", "models/bert.py": "transformers"}


def test_a_program_of_it_that_our_script_starts(enter: Enter, run: Run) -> None:
    files = {
        "third_party/lm/run.py": LOAD + "\n\nif __name__ == '__main__':\n    load('a.pt')\n",
        "scripts/go.sh": "#!/bin/bash\npython third_party/lm/run.py\n",
        "train.py": LOAD,
    }
    assert reaches(enter, run, files) == {}


@for_every(
    ("head", "holders"),
    [
        ("# Copyright (c) Meta Platforms, Inc. and affiliates.\nx = 1\n", ("Meta Platforms",)),
        ("# coding=utf-8\n# Copyright 2018 The HuggingFace Inc. team.\n# Copyright (c) 2018, NVIDIA CORPORATION.  All rights reserved.\n", None),
        ('"""A model.\n\nCopyright 2021 Ross Wightman\n"""\n', ("Ross Wightman",)),
        ("# Copyright below; this copyright notice shall stay\n", ()),
        ("x = 1\n# Copyright 2021 Ross Wightman\n", ()),
        ("def cosine(t, c):\n    return (c) * t\n", ()),
    ],
)
def test_holders_are_read_from_the_head_alone(head: str, holders: tuple[str, ...] | None) -> None:
    found = head_of(head.encode())[0]
    assert found == holders if holders is not None else len(found) == 2


def test_one_house_under_several_names() -> None:
    assert words_of("Facebook, Inc. and its affiliates") == words_of("Meta") == {"meta"}
    assert words_of("The HuggingFace Inc. team") == words_of("Hugging Face") == words_of("The HugginFace Inc. team")
