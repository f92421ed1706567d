"""A finding names another place only where a confirmed path leads from it to the finding: on all fixtures, and on the
corpus."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from collected import for_every
from harness import Case, cases, lint
from related_places import RelatedPlaces

from ldlm_lint.model import Report

BAD = [case for case in cases() if case.bad]
PROGRAM = """import torch
from layers import Block


def train(model, loader):
    for batch in loader:
        model(batch).backward()


def other():
    return 1


train(Block(), [])
"""
LAYERS = """import torch


class Block(torch.nn.Module):
    def forward(self, x):
        return self.part(x)

    def part(self, x):
        return x.sum()


def apart():
    return 2
"""


@pytest.mark.xdist_group("fixtures")
@for_every("case", BAD, lambda case: case.name)
def test_a_path_leads_from_each_related_place(case: Case, projects: Mapping[Case, Path], reports: Mapping[Case, Report]) -> None:
    found = reports[case]
    if any(one.related for one in found.findings):
        assert list(RelatedPlaces(projects[case]).unaccounted(found)) == []


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        ("train.py:6", "train.py:5", True),
        ("layers.py:9", "train.py:6", True),
        ("train.py:10", "layers.py:9", False),
        ("layers.py:13", "layers.py:9", False),
        ("layers.py:13", "layers.py:2", True),
    ],
)
def test_what_is_a_path(one: str, other: str, joined: bool, tmp_path: Path) -> None:
    for name, text in (("train.py", PROGRAM), ("layers.py", LAYERS)):
        (tmp_path / name).write_text(text)
    paths = RelatedPlaces(tmp_path)
    places = [paths.context.line_span(f"{tmp_path.as_posix()}/{file}", int(line)) for file, _, line in (one.partition(":"), other.partition(":"))]
    assert paths.are_joined(*places) is joined


@pytest.mark.corpus
def test_a_path_leads_from_each_related_place_of_the_corpus() -> None:
    found = []
    for root in sorted(Path(os.environ["LDLM_CORPUS"]).iterdir()):
        if root.is_dir():
            found += list(RelatedPlaces(root).unaccounted(lint(root)))
    assert found == []
