"""Property tests try the same examples in every run, so that a change is judged by what it changes.

``HYPOTHESIS_PROFILE=search python -m pytest`` looks for new ones; what it finds becomes an example of its own.
With ``LDLM_LINT_ALL=1`` a test that would be skipped fails: where everything is installed, nothing may hide.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import collected
import pytest
from calling import Enter, Run, calling, entered
from harness import Case, cases, lint, materialize
from hypothesis import settings

from ldlm_lint.model import Report
from ldlm_lint.program.solver import Solver

# Several suites may share the processors: how long an example takes says nothing.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


# A shell that starts the tests in the background lets every process below it ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test reads or writes the cache of who runs the tests.
_CACHE = tempfile.TemporaryDirectory(prefix="ldlm-lint-tests-")
os.environ["LDLM_LINT_CACHE_DIR"] = os.path.join(_CACHE.name, "cache")

# Hundreds of processes are started, which would each compile the package anew where none may keep what it has compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A value that grows after a rule has read it is an error in every test.
Solver.watches = True



def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the output of fixture cases as it is now (tests/snapshots.py)")
    parser.addoption("--rule", action="append", help="only the tests of this rule, among those that are made for every rule; may be repeated")


# The files that take longest start first, so that none of them runs alone at the end; xdist would start with those of most tests.
LONGEST = (
    "test_rules.py",
    "test_pylint_runs.py",
    "test_probe_run.py",
    "test_autofix_crashes.py",
    "test_configuration_matrix.py",
    "test_new_rule.py",
    "test_monitor_detectors.py",
    "test_plain_words.py",
    "test_hostile_files.py",
    "test_fix_corpus.py",
    "test_program_values.py",
    "test_program_hosts.py",
    "test_monitor_serve.py",
    "test_bench.py",
    "test_monitor_lines.py",
    "test_config_documents.py",
    "test_engine.py",
    "test_server_session.py",
)


def pytest_configure(config: pytest.Config) -> None:
    collected.ONLY = tuple(config.getoption("--rule") or ())
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


NOTHING_IS_SKIPPED = bool(os.environ.get("LDLM_LINT_ALL"))


# Before xdist's own hook, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup`` one process takes a file, whose tests share runs; demonstrations share nothing."""
    if collected.ONLY:
        items[:] = [item for item in items if collected.is_chosen(item.name, getattr(item, "function", None))]
    if config.pluginmanager.hasplugin("xdist"):
        items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
        for item in items:
            if item.path.name != "test_demonstrations.py" and item.get_closest_marker("xdist_group") is None:
                item.add_marker(pytest.mark.xdist_group(item.path.name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Fail what was skipped in a test or its fixtures; an expected failure is reported as skipped, too, and stays."""
    return (yield from _failed_if_skipped())


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """Fail a module that was skipped as a whole."""
    return (yield from _failed_if_skipped())


def _failed_if_skipped():
    report = yield
    if NOTHING_IS_SKIPPED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, though LDLM_LINT_ALL is set: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Path]:
    """A project of its own for each fixture case."""
    top = tmp_path_factory.mktemp("cases")
    return {case: materialize(case, case.path, top / case.symbol / case.path.stem) for case in cases()}


class Reports(Mapping[Case, Report]):
    """The fast engine's report on each case, made when it is asked for: a test of one case lints no other."""

    def __init__(self, projects: Mapping[Case, Path]) -> None:
        self._projects = projects
        self._made: dict[Case, Report] = {}

    def __getitem__(self, case: Case) -> Report:
        if case not in self._made:
            self._made[case] = lint(self._projects[case])
        return self._made[case]

    def __iter__(self) -> Iterator[Case]:
        return iter(self._projects)

    def __len__(self) -> int:
        return len(self._projects)


@pytest.fixture(scope="session")
def reports(projects: dict[Case, Path]) -> Reports:
    """The reports on the fixture cases; files of tests that ask for them share a process (``xdist_group``)."""
    return Reports(projects)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """``ldlm-lint`` in this process."""
    return calling(capsys)


@pytest.fixture
def enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Enter:
    """A project of some files, which is entered; there is room beside it."""
    return lambda files: entered(tmp_path / "project", files, monkeypatch)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The torch of a few dozen lines, in this process, and no trace of it afterwards."""
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "torch"}
    for name in before:
        del sys.modules[name]
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "probed" / "minitorch"))
    yield importlib.import_module("torch")
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        del sys.modules[name]
    sys.modules.update(before)
