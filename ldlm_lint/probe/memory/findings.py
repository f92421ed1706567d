"""The result of a measurement: its evidence, and the judgement about missing activation checkpointing."""

from __future__ import annotations

import inspect
import os
import socket
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from torch import nn

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Run, Scope, Site, Verdict, site_of
from ldlm_lint.probe import sites
from ldlm_lint.probe.machine import environment
from ldlm_lint.probe.memory.measure import AS_IS, PER_BLOCK, Measured, Result
from ldlm_lint.probe.memory.request import Request, to_plain

RULE = "missing-activation-checkpointing"
CLAIM = "keeping the activations of all blocks costs memory that checkpointing each block would free"
# The peak without over the peak with checkpoints: a smaller ratio is not worth a slower step.
BAR = 1.1
FAKE = "fake tensors"
GIB = 2**30


def evidence(torch: Any, request: Request, result: Result, root: str, began: float) -> Evidence:
    """One evidence file of kind ``memory``: the figures under the topic ``memory``, and the judgement about the
    rule.
    """
    device = "cpu" if request.real else FAKE
    command = ("ldlm-lint", "probe", "memory", request.target)
    started = datetime.fromtimestamp(began, timezone.utc).isoformat(timespec="seconds")
    run = Run(
        "memory",
        f"memory-{os.getpid()}",
        command,
        root,
        pid=os.getpid(),
        host=socket.gethostname(),
        steps=1,
        seconds=round(time.time() - began, 3),
        started=started,
    )
    return Evidence(
        run,
        environment(torch, "cpu"),
        {"memory": {"request": to_plain(request), "device": device, **_plain(result)}},
        (judgement(request, result, device, root),),
        notes=tuple(result.notes),
    )


def _plain(result: Result) -> dict[str, Any]:
    return {
        "model": f"{result.model.__module__}.{result.model.__qualname__}",
        "blocks": {kind.__name__: count for kind, count in result.blocks},
        "parameters_trained": result.trained,
        "parameters_frozen": result.frozen,
        "parameter_types": result.parameter_types,
        "batch": result.batch,
        "loss": result.has_loss,
        "variants": [
            {
                "name": one.name,
                "peak_bytes": one.peak,
                "peak_phase": one.phase,
                "bytes_at_peak": one.at_peak,
                "peak_bytes_of_phase": one.phases,
                "kept_for_backward_bytes": one.kept,
                "saved_by_autograd_bytes": one.saved,
                "recomputed_in_backward": one.recomputed,
                "error": one.error,
            }
            for one in result.variants
        ],
    }


def judgement(request: Request, result: Result, device: str, root: str) -> Judgement:
    """The judgement about `RULE` from the figures; inconclusive for a too small batch."""
    as_is = next(one for one in result.variants if one.name == AS_IS)
    blocks = next((one for one in result.variants if one.name == PER_BLOCK), None)
    verdict, reason, ratio = _decided(as_is, blocks, result)
    measured = ratio and Measurement(
        "peak without / with checkpoints",
        round(ratio, 4),
        "x",
        n=1,
        threshold=BAR,
        detail={"peak_bytes": as_is.peak, "peak_bytes_checkpointed": blocks.peak if blocks else 0},
    )
    # Figures with CPU kernels are those of the CPU; figures with CUDA's kernels were not observed on CUDA.
    scope = Scope("cpu" if request.device == "cpu" else device, request.device, steps=1, ranks=(0,))
    where = f"batch {', '.join(result.batch)}; one step in steady state under {device}"
    places = tuple(site for site in _sites(request, result, root) if site is not None)
    return Judgement(RULE, CLAIM, verdict, f"{reason} ({where})", scope, places, measured or None)


def _decided(as_is: Measured, blocks: Measured | None, result: Result) -> tuple[Verdict, str, float | None]:
    if as_is.recomputed:
        seen = ", ".join(f"{count} {name}" for name, count in list(as_is.recomputed.items())[:4])
        return (
            Verdict.REFUTED,
            f"the model already checkpoints: {seen} ran their forward pass again inside the backward pass",
            None,
        )
    if blocks is None:
        return Verdict.INCONCLUSIVE, "no variant with checkpointed blocks was measured", None
    if blocks.error:
        return Verdict.INCONCLUSIVE, f"with checkpointed blocks the step failed: {blocks.error}", None
    ratio = as_is.peak / blocks.peak if blocks.peak else None
    names = ", ".join(f"{count} {kind.__name__}" for kind, count in result.blocks) or "the blocks"
    text = f"checkpointing {names} takes the peak from {as_is.peak / GIB:.3g} to {blocks.peak / GIB:.3g} GiB"
    if ratio is None or ratio < BAR:
        return Verdict.INCONCLUSIVE, f"{text}, which a larger batch could change", ratio
    return Verdict.VERIFIED, text, ratio


def _sites(request: Request, result: Result, root: str) -> Iterator[Site | None]:
    """The classes that contain the blocks, those of the blocks and of the model, if they belong to the project; else
    the function.

    A judgement without a place would apply to every model of the project.
    """
    kinds = [*result.owners, *(kind for kind, _ in result.blocks), result.model]
    found = [site for site in (_class_site(kind, root) for kind in dict.fromkeys(kinds)) if site is not None]
    if found:
        yield from found
    else:
        yield _target_site(request, root)


def _class_site(kind: type[nn.Module], root: str) -> Site | None:
    try:
        path = inspect.getsourcefile(kind) or ""
        lines, first = inspect.getsourcelines(kind)
    except (OSError, TypeError):
        return None
    if not sites.is_project(path, root):
        return None
    # Decorators are above the line that a finding names.
    first += next((index for index, line in enumerate(lines) if line.lstrip().startswith("class ")), 0)
    return site_of(sites.source_site(path, first, first, root, kind.__qualname__))


def _target_site(request: Request, root: str) -> Site | None:
    place, _, attribute = request.target.rpartition(":")
    name = os.path.splitext(os.path.basename(place))[0] if place.endswith(".py") else place
    value: Any = sys.modules.get(name)
    for part in attribute.split("."):
        value = getattr(value, part, None)
    try:
        path = inspect.getsourcefile(value) or ""
        lines, first = inspect.getsourcelines(value)
    except (OSError, TypeError):
        return Site(place, 1)
    return site_of(sites.source_site(path, first, first + len(lines) - 1, root, attribute))
