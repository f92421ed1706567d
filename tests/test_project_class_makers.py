"""Who makes objects of a class, and which texts may tell the ranks apart."""

from __future__ import annotations

import pytest
from collected import for_every

from ldlm_lint.project import Project
from ldlm_lint.project.class_makers import ClassMakers
from ldlm_lint.project.ranks import _RANK_TEST, _sets_by_rank

ROOT = "/project"


def makers(**texts: str) -> ClassMakers:
    overlay = {f"{ROOT}/{name}.py": text.encode() for name, text in texts.items()}
    return ClassMakers(Project(ROOT, overlay, overlay))


@pytest.mark.parametrize(
    ("text", "calling", "holding"),
    [
        ("model = Net(3)\n", True, False),
        ("from a import Net as N\nmodel = N(3)\n", False, False),
        ("model = Net.from_pretrained(path)\n", False, True),
        ("MODELS = {'net': nets.Net, 'other': Other}\n", False, True),
        ("model: Net = load()\n", False, False),
    ],
)
def test_files_that_make_objects_of_a_class(text: str, calling: bool, holding: bool) -> None:
    found = makers(a=text)
    assert (bool(found.calling("Net")), bool(found.holding("Net"))) == (calling, holding)


@for_every(
    "test",
    [
        *("is_main_process()", "ismain", "main_process", "mainproc", "is_master", "master_proc", "is_primary", "is_root()"),
        *("rank_zero", "rankzero", "is_chief", "is_global_zero", "should_save", "get_rank()", "args.local_rank in (-1, 0)"),
        *("rank == 0", "not dist_rank", "gpu == 0", "gpu_id == 0", "process_index == 0"),
    ],
)
def test_no_text_that_tests_a_rank_is_left_out(test: str) -> None:
    """The words of a trait are only faster: what gives a name to a test shows it."""
    text = f"saves = {test}\n".encode()
    assert _sets_by_rank(text, b"saves")
    assert _RANK_TEST.shows(text)
