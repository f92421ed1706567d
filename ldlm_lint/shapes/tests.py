"""Rules that never report in tests: their claims are about the file, and are denied for tests."""

from __future__ import annotations

from ldlm_lint.testfiles import has_test_name, is_started

# By the claims of all their findings: those of training steps and files, of trainers, and ``stands-outside-tests``.
_OUTSIDE_TESTS = frozenset(
    {
        "cache-emptied-in-training-loop",
        "checkpoint-saved-by-every-rank",
        "device-synchronized-in-training-loop",
        "host-sync-in-training-loop",
    }
)
# A test that users start as a script evaluates a model.
_OUTSIDE_UNIT_TESTS = frozenset({"evaluation-with-gradients"})


def silent_in(path: str, data: bytes) -> frozenset[str]:
    """The rules that cannot report in a file, by its name, for any project root."""
    if not has_test_name(path):
        return frozenset()
    return _OUTSIDE_TESTS if is_started(data) else _OUTSIDE_TESTS | _OUTSIDE_UNIT_TESTS
