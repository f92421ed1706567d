"""The inventory of fixes: the best level that each rule may offer, what offers less and why, and what proves the safe ones.

`test_rules.py` checks that a rule's fixtures reach its declared level and stay below it; here the declared level is held
against the one that was decided for the rule, and a safe fix against the tests that would fail if it changed a run.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from collected import for_every
from test_proof_safe import WRONG_LAUNCH, WRONG_PROGRAM

from ldlm_lint.model import Applicability
from ldlm_lint.rules import ALL, by_symbol

TESTS = Path(__file__).parent

# The best level that a rule may offer, as decided from the facts behind it.
LIMITS: dict[Applicability | None, str] = {
    Applicability.SAFE: """
    allocator-variable-ignored checkpoint-without-use-reentrant dataloader-worker-count-may-be-zero
    dataloader-worker-options-without-workers debug-environment-left-on deprecated-amp-api
    ineffective-environment-variable loss-graph-accumulation nccl-socket-threads-clamped
    redundant-error-handling-variable unsynchronized-copy-to-host unused-suppression
    """,
    Applicability.UNSAFE: """
    accumulation-loss-not-scaled accumulation-without-no-sync allocator-split-with-expandable-segments
    blocking-host-to-device-copy cache-emptied-in-training-loop
    checkpoint-keyword-only-callee checkpoint-load-without-map-location clip-before-unscale compile-result-dropped
    conflicting-environment-alias convolution-autotuner-off dataloader-conflicting-options
    dataloader-in-main-process dataloader-too-many-workers dataloader-without-persistent-workers
    dataloader-without-pin-memory dataloader-without-prefetch ddp-broadcast-buffers ddp-gradient-copy
    deprecated-launcher deprecated-nccl-variable device-synchronized-in-training-loop environment-set-too-late
    evaluation-with-gradients excessive-collective-timeout excessive-heartbeat-timeout
    find-unused-with-reentrant-checkpoint fused-conflict grad-scaler-with-bfloat16
    ineffective-heartbeat-timeout invalid-collective-timeout malformed-nccl-value max-connections-with-fsdp
    missing-activation-checkpointing nccl-blocking-wait nccl-debug-file-shared nccl-debugging-tunable
    nccl-error-handling-disabled nccl-ib-timeout-out-of-range nccl-monitoring-disabled nccl-transport-disabled
    no-sync-outside-forward non-atomic-checkpoint optimizer-not-fused
    pipeline-hides-failure reentrant-checkpoint-misuse sampler-without-set-epoch scheduler-before-optimizer
    scheduler-per-micro-batch static-graph-with-no-sync subgroup-timeout-not-inherited tf32-disabled
    truncated-command unbounded-checkpoints
    """,
    Applicability.DISPLAY: """
    anomaly-detection-left-on gradients-kept-as-zeros nondeterminism-guard-left-on
    batch-size-drift checkpoint-load-unspecified checkpoint-removed-before-replacement
    checkpoint-saved-by-every-rank checkpoint-saves-live-state clamped-loss compile-guarded-by-try data-parallel
    ddp-find-unused-parameters fused-fallback-ineffective fused-lost-on-resume gradient-accumulation-fixed
    host-sync-in-training-loop mse-on-unit-vectors rank-local-skip unfused-attention whole-model-checkpoint
    """,
    None: """
    dead-config-key graph-retained-on-backward ldlm-configuration-error ldlm-configuration-not-read ldlm-internal-error mixed-tf32-apis parameters-frozen-after-wrap
    requires-grad-toggled-per-step static-graph-with-dynamic-model unparsable-file unreadable-file
    unsharded-distributed-data unsharded-iterable-dataset
    """,
}

# Rules that offer less than they may.
LESS = {
    "allocator-variable-ignored": "unsafe: the old name takes effect on torch <= 2.9, which changes how memory is allocated",
    "checkpoint-without-use-reentrant": "unsafe: only use_reentrant=False is offered, True would keep what is deprecated",
    "redundant-error-handling-variable": "unsafe: a value that the job inherits from its user's shell would come into force",
}


@dataclass(frozen=True)
class Evidence:
    """Why a fix may be called safe.

    ``tests`` would fail if it changed a run. Where it acts only through NCCL or CUDA these see no more than that nothing
    else changes; then the claim rests on a reference of the rule, ``rests_on``, for the reason in ``since``.
    """

    tests: tuple[str, ...]
    rests_on: str = ""
    since: str = ""


_BITS = "test_proof_safe.py::test_safe_fixes_change_no_bit_of_twenty_steps"
_PAIR = "test_proof_safe.py::test_safe_fixes_change_no_bit_of_two_ranks_and_their_launch"
_TRAINER = "test_proof_trainer.py::test_safe_fixes_change_no_bit_of_twenty_steps"
_SUMS = "test_proof_host_time.py::test_sums_without_graphs_change_no_bit"
_WRONG_SUM = "test_proof_host_time.py::test_a_sum_that_loses_its_value_is_noticed"
_EXAMPLE = "test_proof_example.py::test_safe_fixes_change_no_bit_of_a_run"
_RAISED = "test_proof_safe.py::test_loaders_that_raised_work"
_SCRIPTS = "test_shell_contexts.py::test_a_fixed_script_does_what_it_did"
_COMMENTS = "test_unused.py::test_a_fix_changes_nothing_but_comments"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"

SAFE = {
    "dataloader-worker-count-may-be-zero": Evidence((_BITS, _RAISED)),
    "dataloader-worker-options-without-workers": Evidence((_RAISED,)),
    "debug-environment-left-on": Evidence(
        (_PAIR, _SCRIPTS), f"{_NCCL}#nccl-debug", "NCCL_DEBUG only chooses what NCCL prints, and WARN prints less"
    ),
    "deprecated-amp-api": Evidence((_BITS, _TRAINER)),
    "ineffective-environment-variable": Evidence(
        (_PAIR, _EXAMPLE, _SCRIPTS), _NCCL, "the variable is in no list of those that NCCL or torch reads"
    ),
    "loss-graph-accumulation": Evidence((_BITS, _SUMS, _WRONG_SUM)),
    "nccl-socket-threads-clamped": Evidence(
        (_PAIR, _SCRIPTS),
        "https://github.com/NVIDIA/nccl/blob/master/src/transport/net_socket.cc",
        "NCCL clamps the number to the one that the fix writes",
    ),
    "unused-suppression": Evidence((_COMMENTS,)),
    "unsynchronized-copy-to-host": Evidence(
        (_BITS,),
        "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        "on a CPU both copies are the same; from a device the blocking one waits for the values",
    ),
}

# A change of comments cannot be done wrong so that a training shows it.
OF_COMMENTS = {"unused-suppression"}

every_rule = for_every("rule", ALL, lambda rule: rule.symbol)


def limit(symbol: str) -> Applicability | None:
    """The best level that a rule may offer; raises LookupError for a rule of which nothing was decided."""
    for level, names in LIMITS.items():
        if symbol in names.split():
            return level
    raise LookupError(symbol)


@every_rule
def test_a_rule_offers_what_was_decided_or_less_for_a_reason(rule):
    best, declared = limit(rule.symbol), rule.applicability
    assert declared == best or (best is not None and (declared is None or declared < best))
    assert (declared != best) == (rule.symbol in LESS)


def test_no_name_is_decided_twice_or_belongs_to_no_rule():
    names = [name for names in LIMITS.values() for name in names.split()]
    assert sorted(names) == sorted(by_symbol)
    assert LESS.keys() <= by_symbol.keys()


@every_rule
def test_a_rule_with_a_fix_says_how_safe_it_is(rule):
    assert bool(rule.fix_safety) == (rule.applicability is not None)


def test_every_safe_fix_has_its_evidence():
    assert SAFE.keys() == {rule.symbol for rule in ALL if rule.applicability is Applicability.SAFE}


def test_every_safe_fix_was_also_done_wrong():
    assert SAFE.keys() - OF_COMMENTS == WRONG_PROGRAM.keys() | WRONG_LAUNCH.keys()


@for_every("symbol", SAFE)
def test_the_evidence_of_a_safe_fix_exists(symbol):
    evidence = SAFE[symbol]
    assert evidence.tests
    for name in evidence.tests:
        module, _, function = name.partition("::")
        tree = ast.parse((TESTS / module).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name
    assert bool(evidence.rests_on) == bool(evidence.since)
    if evidence.rests_on:
        assert evidence.rests_on in {reference.url for reference in by_symbol[symbol].references}
