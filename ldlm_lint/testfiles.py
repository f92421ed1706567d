"""Recognizes files of a test suite by name, folder and contents."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

_NAME = lazily(r"(^|/)(test_[^/]*|[^/]*_tests?|conftest)\.pyi?$")
_FOLDER = lazily(r"(^|/)((unit|integration|functional|regression)_?)?tests?/")
_STARTS = lazily(rb"argparse|__main__|absl|click|hydra|sys\.argv")
_SUITE = lazily(rb"pytest|unittest|^[ \t]*def test_\w+\((?:self)?\)", re.M)


def is_test(relative: str) -> bool:
    """Whether a file is one of a test suite, by its path below the root of its project."""
    return has_test_name(relative) or _FOLDER.search(relative) is not None


def has_test_name(path: str) -> bool:
    """Whether a file is one of a test suite, by its name, wherever its project begins."""
    return _NAME.search(path) is not None


def is_started(data: bytes) -> bool:
    """Whether a file with the name of a test is a program that users start: ``test_net.py`` next to a training script
    evaluates a model."""
    return _STARTS.search(data) is not None and _SUITE.search(data) is None
