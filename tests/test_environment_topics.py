"""The environment rules beyond the watchdog's block: which settings count together, and what silences a rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every
from harness import lint as lint_project

from ldlm_lint.autofix.groups import merge_groups
from ldlm_lint.checkers.scripts.lint import lint as lint_shell
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability, Confidence, FileResult, Finding
from ldlm_lint.rules import OPTIONS
from ldlm_lint.rules.environment_decisions import is_relevant
from ldlm_lint.rules.roles import is_diagnostic, speaks_of_debugging
from ldlm_lint.source import Kind, Source

DEFAULTS = {name: option.default for name, option in OPTIONS.items()} | {"target-torch": None, "newest-torch": None}
LAUNCH = "torchrun --nproc_per_node=8 train.py\n"


def shell(script: str, name: str = "run.sh", **options: object) -> FileResult:
    given = {key.replace("_", "-"): value for key, value in options.items()}
    result = lint_shell(Source.from_bytes(f"/p/{name}", script.encode(), Kind.SHELL), DEFAULTS | given)
    # What waits for another script is tested with the scripts that it waits for.
    alone = tuple(one for one in result.findings if not any(claim.kind == "winner-differs-beside" for claim in one.claims))
    return result._replace(findings=alone)


def python(folder: Path, code: str, settings: str = "") -> list[str]:
    """The rules that a Python file of a project breaks."""
    (folder / "train.py").write_text(code)
    (folder / "pyproject.toml").write_text(f"[tool.ldlm-lint]\n{settings}")
    return [one.rule for one in lint_project(folder).findings]


def symbols(result: FileResult) -> list[str]:
    return [finding.rule for finding in result.findings]


def only(result: FileResult) -> Finding:
    (finding,) = result.findings
    return finding


# Which settings a process sees together

APART = {
    "branches": "if [ $A ]; then\n  export {one}\nelse\n  export {two}\nfi\n" + LAUNCH,
    "case": "case $A in\n  a) export {one} ;;\n  b) export {two} ;;\nesac\n" + LAUNCH,
    "commands": "{one} " + LAUNCH + "{two} " + LAUNCH,
    "functions": "f() {{ export {one}; }}\ng() {{ export {two}; }}\n" + LAUNCH,
}
TOGETHER = {
    "script": "export {one}\nexport {two}\n" + LAUNCH,
    "branch": "export {one}\nif [ $A ]; then export {two}; fi\n" + LAUNCH,
    "command": "export {one}\n{two} " + LAUNCH,
    "env": "{one} env {two} " + LAUNCH,
}
PAIRS = [
    ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600", "TORCH_NCCL_ENABLE_MONITORING=0", "ineffective-heartbeat-timeout"),
    ("TORCH_NCCL_DESYNC_DEBUG=1", "NCCL_DESYNC_DEBUG=0", "conflicting-environment-alias"),
    ("NCCL_SOCKET_NTHREADS=8", "NCCL_NSOCKS_PERTHREAD=9", "nccl-socket-threads-clamped"),
]


@for_every(("one", "two", "symbol"), PAIRS)
@for_every("form", TOGETHER.values(), ids=TOGETHER)
def test_settings_that_a_process_sees_together_are_compared(form, one, two, symbol):
    assert symbol in symbols(shell(form.format(one=one, two=two)))


@for_every(("one", "two", "symbol"), PAIRS)
@for_every("form", APART.values(), ids=APART)
def test_settings_that_no_process_sees_together_are_not(form, one, two, symbol):
    assert symbol not in symbols(shell(form.format(one=one, two=two)))


def test_python_compares_within_a_function_and_not_across_branches(tmp_path: Path):
    names = ('"TORCH_NCCL_DESYNC_DEBUG"] = "1"', '"NCCL_DESYNC_DEBUG"] = "0"')
    one, two = (f"os.environ[{name}" for name in names)
    together = f"import os\ndef f():\n    {one}\n    {two}\n"
    apart = f"import os\ndef f(a):\n    if a:\n        {one}\n    else:\n        {two}\n"
    assert python(tmp_path, together) == ["conflicting-environment-alias"]
    assert python(tmp_path, apart) == ["deprecated-nccl-variable"]


# The watchdog's block


def test_hiding_the_note_about_an_inert_heartbeat_keeps_the_fix_of_the_block():
    found = list(shell("export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600 TORCH_NCCL_ENABLE_MONITORING=0\n" + LAUNCH).findings)
    note = next(one for one in found if one.rule == "ineffective-heartbeat-timeout")
    cause = next(one for one in found if one.rule == "nccl-monitoring-disabled")
    assert [one.fix.title for one in merge_groups(found, []) if one.fix] == ["set TORCH_NCCL_ENABLE_MONITORING to 1"] * 2
    assert merge_groups(found, [note]) == [cause]
    assert [one.fix for one in merge_groups(found, [cause])] == [None]


def test_blocking_wait_makes_a_heartbeat_inert_from_torch_2_6_on_only():
    script = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600 TORCH_NCCL_BLOCKING_WAIT=1\n" + LAUNCH
    assert "ineffective-heartbeat-timeout" in symbols(shell(script))
    assert "ineffective-heartbeat-timeout" in symbols(shell(script, newest_torch=(2, 6)))
    assert "ineffective-heartbeat-timeout" not in symbols(shell(script, newest_torch=(2, 5)))


def test_an_excessive_heartbeat_is_one_finding():
    script = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=99999999999s TORCH_NCCL_ENABLE_MONITORING=0\n" + LAUNCH
    assert symbols(shell(script)) == ["excessive-heartbeat-timeout", "nccl-monitoring-disabled"]


# Names


def test_one_line_is_either_deprecated_or_in_conflict():
    both = "export {old}\nexport {new}\n"
    same = both.format(old="NCCL_ENABLE_TIMING=1", new="TORCH_NCCL_ENABLE_TIMING=true")
    other = both.format(old="NCCL_ENABLE_TIMING=1", new="TORCH_NCCL_ENABLE_TIMING=false")
    assert symbols(shell(same)) == ["deprecated-nccl-variable"]
    assert symbols(shell(other)) == ["conflicting-environment-alias"]


def test_under_torchrun_the_old_name_of_error_handling_is_only_deprecated():
    script = "export NCCL_ASYNC_ERROR_HANDLING=0\n"
    assert symbols(shell(script + LAUNCH)) == ["deprecated-nccl-variable"]
    assert set(symbols(shell(script + "srun python train.py\n"))) == {
        "deprecated-nccl-variable",
        "nccl-error-handling-disabled",
    }


def test_a_name_that_the_script_uses_elsewhere_is_not_renamed():
    assert only(shell("export NCCL_ENABLE_TIMING=1\necho $NCCL_ENABLE_TIMING\n")).fix is None
    assert only(shell("export NCCL_ENABLE_TIMING=1\n")).fix is not None


# Values


@for_every(
    ("value", "text"),
    [("90s", "90"), ("15min", "900"), ("2h", "7200"), ("1e3", "1000"), ("soon", None), ("''", None), ("1e9", None)],
)
def test_what_a_malformed_heartbeat_seems_to_mean(value, text):
    fix = only(shell(f"export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC={value}\n")).fix
    assert [edit.text for edit in fix.edits] == [text] if text else fix is None


@for_every("value", ["$X", "$((60 * M))", "${X}s", "$(date)", "1", "0", "+30", "' 30 '"])
def test_values_that_torch_can_read_or_nobody_knows_are_silent(value):
    assert not symbols(shell(f"export TORCH_NCCL_ASYNC_ERROR_HANDLING={value}\n".replace("=0\n", "=2\n")))


@for_every(("value", "bad"), [("0", True), ("-1", True), ("1", False), ("31", False), ("32", True), ("x", False)])
def test_the_range_of_the_infiniband_timeout(value, bad):
    assert symbols(shell(f"export NCCL_IB_TIMEOUT={value}\n")) == ["nccl-ib-timeout-out-of-range"] * bad


def test_a_default_counts_with_medium_confidence():
    assert only(shell("export NCCL_IB_TIMEOUT=${T:-90}\n")).confidence is Confidence.MEDIUM
    assert only(shell("export NCCL_IB_TIMEOUT=90\n")).confidence is Confidence.HIGH


def test_lowering_threads_is_safe_unless_the_script_uses_the_number():
    plain = only(shell("export NCCL_SOCKET_NTHREADS=99\n"))
    used = only(shell("export NCCL_SOCKET_NTHREADS=99\nawk -v n=$NCCL_SOCKET_NTHREADS 1\n"))
    assert plain.fix.applicability is Applicability.SAFE
    assert used.fix.applicability is Applicability.UNSAFE


# Debugging


@for_every(
    "script",
    [
        "if $DEBUG; then export NCCL_DEBUG=INFO; fi\n",
        "if [ $X ]; then :; elif [ $VERBOSE ]; then export NCCL_DEBUG=INFO; fi\n",
        "test -n $PROFILE && export NCCL_DEBUG=INFO\n",
        "case $MODE in debug) export NCCL_DEBUG=INFO ;; esac\n",
        "run_debug() { export NCCL_DEBUG=INFO; }\n",
        "export NCCL_DEBUG=INFO\nunset NCCL_DEBUG\n",
    ],
)
def test_asked_for_debugging_is_silent(script):
    assert not symbols(shell(script))


@pytest.mark.parametrize(
    "script",
    [
        "if [ -z $NCCL_DEBUG ]; then export NCCL_DEBUG=INFO; fi\n",
        "if [ $LATEST_CHECKPOINT ]; then export NCCL_DEBUG=INFO; fi\n",
        "test -n $NNODES && export NCCL_DEBUG=INFO\n",
        "main() { export NCCL_DEBUG=info; }\n",
    ],
)
def test_other_conditions_do_not_ask_for_debugging(script):
    assert symbols(shell(script)) == ["debug-environment-left-on"]


@pytest.mark.parametrize("name", ["train_debug.sh", "test_nodes.sh", "profile.sbatch", "sanity-check.sh"])
def test_a_script_that_debugs_by_its_name_is_silent(name):
    assert not symbols(shell("export NCCL_DEBUG=INFO\n" + LAUNCH, name))


def test_words_about_debugging():
    assert speaks_of_debugging("args.debugMode")
    assert speaks_of_debugging("DEBUG_RUN")
    assert not speaks_of_debugging("latest")
    assert not speaks_of_debugging("os.environ['NCCL_DEBUG']")
    assert not is_diagnostic("/p/train.sh", ["train.py", "test_train.py"])
    assert is_diagnostic("/p/run.sh", ["tools/test_train.py", "pytest"])


def test_silencing_nccl_is_safe_unless_the_script_uses_the_level():
    assert only(shell("export NCCL_DEBUG=INFO\n")).fix.applicability is Applicability.SAFE
    assert only(shell("export NCCL_DEBUG=INFO\necho $NCCL_DEBUG\n")).fix.applicability is Applicability.UNSAFE
    assert only(shell("export CUDA_LAUNCH_BLOCKING=1\n" + LAUNCH)).fix.applicability is Applicability.UNSAFE


FILE = 'export NCCL_DEBUG=INFO\nexport NCCL_DEBUG_FILE={}\n'


@for_every("name", ["/tmp/n.log", '"$LOGS/nccl.txt"', "nccl_$SLURM_NODEID_$JOB", "/logs/${NODE_RANK}.log"])
@for_every("launch", [LAUNCH, "srun torchrun train.py\n", "accelerate launch train.py\n"])
def test_a_file_that_all_ranks_of_a_node_share(name, launch):
    assert "nccl-debug-file-shared" in symbols(shell(FILE.format(name) + launch))


@for_every("name", ["/tmp/%p.log", "$LOG", "n_$LOCAL_RANK.log", "n_$$.log", "`mktemp`", "/dev/stderr", "$SLURM_PROCID.log"])
def test_a_file_for_each_process(name):
    assert "nccl-debug-file-shared" not in symbols(shell(FILE.format(name) + LAUNCH))


@pytest.mark.parametrize("launch", ["", "python train.py\n", "torchrun --nproc_per_node=1 train.py\n", "torchrun --nproc_per_node 1 t.py\n"])
def test_one_process_may_write_one_file(launch):
    assert "nccl-debug-file-shared" not in symbols(shell(FILE.format("/tmp/n.log") + launch))


# Tuning


@pytest.mark.parametrize(
    "script",
    [
        "# The 4090s have no P2P.\nexport NCCL_P2P_DISABLE=1\n",
        "# workaround: hangs on this driver\nexport NCCL_SHM_DISABLE=0\nexport NCCL_P2P_DISABLE=1\n",
        "export NCCL_P2P_DISABLE=1 # see https://example.org/1\n",
        "export NCCL_SOCKET_IFNAME=eth0\nexport NCCL_IB_DISABLE=1\n",
        "[ $HOST = a ] && export NCCL_P2P_DISABLE=1\n",
    ],
)
def test_a_transport_that_is_off_for_a_reason_is_silent(script):
    assert not symbols(shell(script))


@pytest.mark.parametrize("script", ["# NCCL\nexport NCCL_P2P_DISABLE=1\n", "# it hangs\n\nexport NCCL_IB_DISABLE=1\n"])
def test_a_transport_that_is_off_without_a_word_is_found(script):
    assert symbols(shell(script)) == ["nccl-transport-disabled"]


# The allocator


def test_the_newest_torch_decides_on_the_new_name(tmp_path: Path):
    script = "export PYTORCH_ALLOC_CONF=expandable_segments:True\n"
    assert not symbols(shell(script))
    assert not symbols(shell(script, newest_torch=(2, 10)))
    assert symbols(shell(script, newest_torch=(2, 9))) == ["allocator-variable-ignored"]
    set_in_python = 'import os\nos.environ["PYTORCH_ALLOC_CONF"] = "a:1"\n'
    assert python(tmp_path, set_in_python, 'target-torch = "2.0"\n') == ["allocator-variable-ignored"]


def test_both_front_ends_are_told_the_target(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text('[tool.ldlm-lint]\ntarget-torch = "2.7"\n')
    assert Config.load(tmp_path).facts["newest-torch"] == (2, 7)


def test_names_that_no_rule_speaks_of():
    assert not is_relevant("NCCL_NET")
    assert is_relevant("CUDA_LAUNCH_BLOCKING")


# What the range of torch makes of a fix: the oldest and the newest that the project runs on

OLD_NAME = "export NCCL_DESYNC_DEBUG=1\n" + LAUNCH
BOTH_NAMES = "export NCCL_DESYNC_DEBUG=1\nexport TORCH_NCCL_DESYNC_DEBUG=1\n" + LAUNCH
ALLOCATOR = "export PYTORCH_ALLOC_CONF=expandable_segments:True\n" + LAUNCH
RANGES = [
    (OLD_NAME, (2, 0), (2, 1), None),
    (OLD_NAME, (2, 0), (2, 6), "set TORCH_NCCL_DESYNC_DEBUG too"),
    (OLD_NAME, (2, 1), None, "set TORCH_NCCL_DESYNC_DEBUG too"),
    (OLD_NAME, (2, 2), None, "rename it to TORCH_NCCL_DESYNC_DEBUG"),
    (OLD_NAME, None, None, "rename it to TORCH_NCCL_DESYNC_DEBUG"),
    (BOTH_NAMES, (2, 0), (2, 6), None),
    (BOTH_NAMES, (2, 2), None, "remove NCCL_DESYNC_DEBUG"),
    (BOTH_NAMES, None, None, "remove NCCL_DESYNC_DEBUG"),
    (ALLOCATOR, None, None, None),
    (ALLOCATOR, (2, 4), (2, 8), "set PYTORCH_CUDA_ALLOC_CONF too"),
    (ALLOCATOR, (2, 9), (2, 9), "set PYTORCH_CUDA_ALLOC_CONF too"),
    (ALLOCATOR, (2, 9), (2, 10), None),
]


@for_every(("script", "oldest", "newest", "title"), RANGES)
def test_the_range_of_torch_decides_on_the_fix(script, oldest, newest, title):
    found = shell(script, target_torch=oldest, newest_torch=newest).findings
    assert [one.fix.title for one in found if one.fix] == ([title] if title else [])


@pytest.mark.parametrize("oldest", [None, (2, 0), (2, 2)])
def test_no_reason_speaks_of_a_torch_that_the_project_does_not_run_on(oldest):
    reason = only(shell(OLD_NAME, target_torch=oldest)).fix.reason
    assert ("torch up to 2.1" in reason) is (oldest is None)


def test_a_new_name_for_some_processes_does_not_replace_the_old_one():
    script = "export NCCL_DESYNC_DEBUG=1\nTORCH_NCCL_DESYNC_DEBUG=1 " + LAUNCH + LAUNCH
    assert only(shell(script)).fix is None


def test_the_number_of_sockets_is_lowered_safely_only_beside_a_certain_number_of_threads():
    sockets = "export NCCL_NSOCKS_PERTHREAD=16\n"
    levels = []
    for threads in ("export NCCL_SOCKET_NTHREADS=8\n", "export NCCL_SOCKET_NTHREADS=${T:-8}\n", "[ $A ] && export NCCL_SOCKET_NTHREADS=8\n"):
        levels.append(only(shell(threads + sockets + LAUNCH)).fix.applicability)
    assert levels == [Applicability.SAFE, Applicability.UNSAFE, Applicability.UNSAFE]


def test_a_script_that_searches_the_log_of_nccl_keeps_its_level_unless_asked():
    silent = only(shell("export NCCL_DEBUG=INFO\n" + LAUNCH)).fix
    search = only(shell("export NCCL_DEBUG=INFO\n" + LAUNCH.strip() + " > log\ngrep -q 'NET/IB' log || exit 1\n")).fix
    assert (silent.applicability, search.applicability) == (Applicability.SAFE, Applicability.UNSAFE)


def test_error_handling_that_torchrun_sets_is_removed_only_where_it_has_one_value():
    line = "export TORCH_NCCL_ASYNC_ERROR_HANDLING={}\n"
    assert only(shell(line.format(1) + LAUNCH)).fix.applicability is Applicability.UNSAFE
    found = shell(line.format(3) + line.format(1) + LAUNCH).findings
    assert [one.fix for one in found if one.rule == "redundant-error-handling-variable"] == [None]
