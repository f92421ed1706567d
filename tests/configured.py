"""What tests of configurations share: writing files, and asking what holds for one or what is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ldlm_lint.configurations import Configurations
from ldlm_lint.rules import ALL
from ldlm_lint.tomlfile import ConfigError

BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=5000\ntorchrun train.py\n"


LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def level(configured: Configurations, path: Path) -> str:
    return configured.of(path.as_posix()).level.label


def errors(root: Path, name: str, text: str) -> list[str]:
    """The errors of a configuration, each with the line and the key, without the path."""
    write(root, {name: text})
    with pytest.raises(ConfigError) as caught:
        Configurations(root).run.selected(ALL)
    lines = str(caught.value).splitlines()
    assert [str(one) for one in caught.value.errors[1:]] == lines[1:]
    place = (root / name).as_posix() + ":"
    assert all(line.startswith(place) for line in lines)
    return [line.removeprefix(place) for line in lines]
