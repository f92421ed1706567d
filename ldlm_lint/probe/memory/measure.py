"""Measure training steps of a subject: unchanged, with each block checkpointed, and with the whole model as one
segment."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ldlm_lint.probe.memory import blocks as finding
from ldlm_lint.probe.memory import tracker as track
from ldlm_lint.probe.memory.as_on_cuda import AsOnCuda, cuda_autocast_on_cpu
from ldlm_lint.probe.memory.fakes import constants, converting_by_replacement, fake_mode, into_mode, without_rejections
from ldlm_lint.probe.memory.request import Request, RequestError
from ldlm_lint.probe.memory.subject import NO_LOSS, Subject, built, cast, resolve, tensors, with_batch

AS_IS, PER_BLOCK, WHOLE = "as it is", "each block checkpointed", "whole model checkpointed"


@dataclass
class Measured:
    """One variant: bytes by kind at the peak of a step in steady state, and the bytes kept for the backward pass.

    ``kept`` are the bytes left alive by the forward; ``saved`` those saved by autograd (`saved_tensors_hooks`) in a
    separate forward, including checkpoint inputs, without parameters; ``recomputed`` counts modules that ran again in
    the backward.
    """

    name: str
    peak: int
    phase: str
    at_peak: dict[str, int]
    phases: dict[str, int]
    kept: int
    saved: int
    recomputed: dict[str, int] = field(default_factory=dict)
    error: str = ""


@dataclass
class Result:
    """All variants of a subject, and their settings."""

    variants: list[Measured]
    model: type
    blocks: list[tuple[type, int]]
    owners: list[type]
    trained: int
    frozen: int
    parameter_types: dict[str, int]
    batch: list[str]
    notes: list[str]
    # Whether the step computed a loss; a sum of outputs stands in for one that is missing.
    has_loss: bool = True


def measure(request: Request, progress: Callable[[str], None] = lambda text: None) -> Result:
    """Build the subject and measure it; raises RequestError, and any exception of the user's code."""
    if not track.supported():
        raise RequestError(f"torch {torch.__version__} does not allow counting storages; torch 2.1 or later is needed")
    torch.manual_seed(0)
    found = resolve(request.target)
    with ExitStack() as modes:
        mode = None if request.real else modes.enter_context(fake_mode())
        if mode is not None:
            modes.enter_context(constants())
            modes.enter_context(without_rejections())
            modes.enter_context(converting_by_replacement())
        choices = AsOnCuda()
        if request.device == "cuda" and not request.real:
            modes.enter_context(cuda_autocast_on_cpu())
            modes.enter_context(choices)
        progress("building the model")
        subject = built(found() if callable(found) and not isinstance(found, nn.Module) else found)
        if mode is not None:
            into_mode(subject, mode)
        with_batch(subject, request)
        if request.dtype:
            cast(subject, getattr(torch, request.dtype))
        subject.model.train()
        variants, blocks = _variants(subject, request)
        measured = []
        for name, change in variants:
            progress(f"one step in steady state: {name}")
            measured.append(_variant(name, change, subject, request))
        if choices.attention_dropout:
            subject.notes.append("attention dropout is counted as in CUDA's fused kernels, which keep no mask")
        return _result(subject, measured, blocks)


def _variants(subject: Subject, request: Request) -> tuple[list[tuple[str, Any]], list[nn.Module]]:
    """The variants to measure as (name, context), and the blocks that one of them checkpoints."""
    model, name = subject.model, request.checkpoint
    if name == "none":
        return [(AS_IS, nullcontext)], finding.repeated(model)
    blocks = finding.repeated(model) if name == "auto" else finding.of_class(model, name)
    if name != "auto" and not blocks:
        known = sorted({type(one).__name__ for one in model.modules() if type(one) is not type(model)})
        raise RequestError(f"no module of the model is of a class {name!r} (there are {', '.join(known)})")
    variants: list[tuple[str, Any]] = [(AS_IS, nullcontext)]
    if name == "auto" and finding.has_own_switch(model):
        variants.append((PER_BLOCK, lambda: finding.own_switch(model)))
        subject.notes.append("blocks are checkpointed by the model's own gradient_checkpointing_enable()")
    elif blocks:
        variants.append((PER_BLOCK, lambda: finding.checkpointed(blocks)))
    else:
        subject.notes.append(
            "no repeated blocks were found in a ModuleList or Sequential; name their class by --checkpoint"
        )
    if name == "auto":
        variants.append((WHOLE, lambda: finding.checkpointed([model])))
    return variants, blocks


def _variant(name: str, change: Any, subject: Subject, request: Request) -> Measured:
    """Measure one variant; a checkpointed one that fails is kept with its error, so that the others can be shown."""
    try:
        with change():
            return _steady_step(name, subject, request)
    except Exception as error:
        if name == AS_IS:
            raise
        text = (str(error).strip() or "no text").splitlines()[0]
        return Measured(name, 0, "", {}, {}, 0, 0, error=f"{type(error).__name__}: {text}")
    finally:
        subject.model.zero_grad(set_to_none=True)
        gc.collect()


def _steady_step(name: str, subject: Subject, request: Request) -> Measured:
    saved = _saved_bytes(subject, request)
    recomputed: Counter[str] = Counter()
    optimizer = _optimizer(subject.model, request)
    counted = track.Tracker(track.CUDA_BLOCK if request.device == "cuda" else 1)
    for parameter in subject.model.parameters():
        counted.see(parameter, track.PARAMETERS)
    for buffer in subject.model.buffers():
        counted.see(buffer, track.BUFFERS)
    for one in tensors(subject.batch):
        counted.see(one, track.INPUTS)
    with counted, _gradients_seen(subject.model, counted):
        # The first step creates the optimizer's state; the memory of training shows from the second on.
        _step(subject, optimizer, counted, request)
        _see_state(optimizer, counted)
        counted.forget_peak()
        with finding.counting_recomputations(recomputed):
            kept = _step(subject, optimizer, counted, request)
    return Measured(
        name, counted.peak, counted.peak_phase, counted.at_peak, counted.peaks, kept, saved, dict(recomputed)
    )


def _step(subject: Subject, optimizer: Any, counted: track.Tracker, request: Request) -> int:
    """One training step; the bytes that its forward left alive. The output stays alive to the end, as in most loops."""
    counted.enter(track.FORWARD)
    before = counted.total
    with _autocast(request):
        output = subject.call()
        loss = subject.loss_of(output)
    kept = counted.total - before
    counted.enter(track.BACKWARD)
    _backward(loss)
    counted.enter(track.STEP)
    if optimizer is not None:
        optimizer.step()
    subject.model.zero_grad(set_to_none=True)
    del output, loss
    return kept


def _backward(loss: torch.Tensor) -> None:
    # loss.backward() is an overridable function: no TorchFunctionMode would see recomputed operations inside it.
    engine = torch.autograd.Variable._execution_engine
    seed = (torch.ones_like(loss),)
    engine.run_backward((loss,), seed, False, False, (), allow_unreachable=True, accumulate_grad=True)


@contextmanager
def _gradients_seen(model: nn.Module, counted: track.Tracker) -> Iterator[None]:
    """In this context a parameter's gradient is counted as a gradient as soon as it exists."""

    def seen(parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            counted.see(parameter.grad, track.GRADIENTS)

    trained = [one for one in model.parameters() if one.requires_grad]
    handles = [one.register_post_accumulate_grad_hook(seen) for one in trained]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _see_state(optimizer: Any, counted: track.Tracker) -> None:
    for state in optimizer.state.values() if optimizer is not None else ():
        for value in state.values():
            if isinstance(value, torch.Tensor):
                counted.see(value, track.STATE)


def _saved_bytes(subject: Subject, request: Request) -> int:
    """The bytes that autograd saves in one forward, in bytes of distinct storages that are not parameters: an
    independent count."""
    own = {one.untyped_storage()._cdata for one in (*subject.model.parameters(), *subject.model.buffers())}
    own |= {one.untyped_storage()._cdata for one in tensors(subject.batch)}
    sizes: dict[int, int] = {}

    class Token:
        """Released with the node that saved the tensor."""

        def __init__(self, tensor: torch.Tensor) -> None:
            self.tensor = tensor

    alive: weakref.WeakSet[Token] = weakref.WeakSet()

    def pack(tensor: torch.Tensor) -> Token:
        token = Token(tensor)
        alive.add(token)
        return token

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda token: token.tensor), _autocast(request):
        loss = subject.loss_of(subject.call())
    for token in alive:
        storage = token.tensor.untyped_storage()
        if storage._cdata not in own:
            sizes[storage._cdata] = storage.nbytes()
    del loss
    return sum(sizes.values())


def _autocast(request: Request) -> Any:
    return torch.autocast("cpu", getattr(torch, request.autocast)) if request.autocast else nullcontext()


def _optimizer(model: nn.Module, request: Request) -> Any:
    """The optimizer as CUDA would run it (foreach by default), or as the CPU does (parameter by parameter)."""
    trained = [one for one in model.parameters() if one.requires_grad]
    if request.optimizer == "none" or not trained:
        return None
    kernels = {"fused": True} if request.optimizer.endswith("-fused") else {"foreach": request.device == "cuda"}
    if request.optimizer.startswith("adamw"):
        return torch.optim.AdamW(trained, lr=1e-3, **kernels)
    return torch.optim.SGD(trained, lr=1e-3, momentum=0.9 if request.optimizer == "sgd-momentum" else 0.0, **kernels)


def _result(subject: Subject, measured: list[Measured], blocks: list[nn.Module]) -> Result:
    parameters = list({id(one): one for one in subject.model.parameters()}.values())
    types: Counter[str] = Counter()
    for one in parameters:
        types[str(one.dtype).removeprefix("torch.")] += one.numel()
    return Result(
        measured,
        type(subject.model),
        list(Counter(type(one) for one in blocks).items()),
        finding.owners(subject.model, blocks),
        sum(one.numel() for one in parameters if one.requires_grad),
        sum(one.numel() for one in parameters if not one.requires_grad),
        dict(types),
        [f"{tuple(one.shape)} {str(one.dtype).removeprefix('torch.')}" for one in tensors(subject.batch)],
        subject.notes,
        NO_LOSS not in subject.notes,
    )
