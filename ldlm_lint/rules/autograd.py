"""Family 75: graphs that are kept, and checks of autograd that are left on."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Frequency, Probe, Reference, Rule

_MECHANICS = Reference("Autograd mechanics", "https://docs.pytorch.org/docs/stable/notes/autograd.html")

LOSS_GRAPH_ACCUMULATION = Rule(
    code="W7510",
    symbol="loss-graph-accumulation",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="%(into)s collects %(loss)s with its autograd graph: the graph of every step stays in memory, which grows with "
    "the number of steps; collect %(detached)s instead",
    summary="A running sum or a list of losses that keeps the graph of each one.",
    rationale="A loss holds on to the graph that computed it, and so does a sum that it is added to or a list that "
    "it is put into. The backward pass frees the tensors that were saved for it, but not the nodes of the graph, "
    "and not what these nodes hold on to. As the sum grows by one graph in each step, host memory grows, and device "
    "memory where a node refers to tensors; the walk that takes such a graph apart at the end may take long.",
    cost="Memory that grows with the number of steps: after 10 steps the nodes of all 10 were alive, with "
    "`.detach()` none (measured on torch 2.13). The saved activations are freed by the backward pass.",
    exceptions="A sum that is differentiated itself, such as that of several tasks or micro-batches: then the graph "
    "is needed, and it is not reported. A few hundred steps of a small model.",
    versions="All versions of torch.",
    verification="Print `total.grad_fn` behind the loop: it is None where the sum holds no graph. Or watch the "
    "resident memory of the process over some thousand steps.",
    references=(
        Reference(
            "Frequently asked questions: my model reports out of memory",
            "https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",
        ),
        Reference("torch.Tensor.detach", "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html"),
    ),
    reads=("py",),
    triggers=(b"+=", b".append(", b".update(", b".add(", b".push(", b".record(", b".log(", b" + ", b"] = "),
    requires=((b"backward", b"training_step"),),
    applicability=Applicability.SAFE,
    fix_safety="Safe where the sum is a variable of the function that is only divided, compared, asked for its number or formatted "
    "as one (`{total:.4f}`). Elsewhere unsafe: code that is not seen may differentiate it, and the printed text of a tensor names its "
    "graph. `.detach()` does not wait for the device, as `.item()` would.",
    probe=Probe("live-autograd-nodes", "losses of earlier iterations are alive with their graphs"),
)

GRAPH_RETAINED_ON_BACKWARD = Rule(
    code="W7511",
    symbol="graph-retained-on-backward",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="`retain_graph=True` keeps the tensors that the forward pass saved, but the step has no second backward pass "
    "that needs them: they only take memory; drop `retain_graph=True`",
    summary="A step with a single backward pass that retains its graph.",
    rationale="A backward pass frees the tensors that the forward pass saved for it as it goes; with "
    "`retain_graph=True` they stay until the last tensor of the graph is gone. Only a second backward pass over the "
    "same graph needs that. In a step with one backward pass the flag is a left-over, or it hides that the graph of "
    "an earlier step is still attached, through a hidden state or a sum of losses that was not detached: then each "
    "step differentiates all steps before it.",
    cost="Memory: the activations of a step stay until its loss is bound anew. Where an earlier graph is attached, "
    "time and memory grow with every step.",
    exceptions="Several losses over one graph, second derivatives, hooks that run a backward pass of their own. A "
    "step with another backward pass, or a call of `torch.autograd.grad`, is not reported.",
    versions="All versions of torch.",
    verification="Remove the flag. A step that then raises `Trying to backward through the graph a second time` is "
    "attached to an earlier one: detach what it carries over.",
    references=(
        Reference("torch.Tensor.backward", "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html"),
        _MECHANICS,
    ),
    reads=("py",),
    triggers=(b"retain_graph",),
    requires=((b"backward",),),
    default=False,
    probe=Probe("retained-graphs", "a backward pass retained its graph and no other one went through it"),
)

ANOMALY_DETECTION_LEFT_ON = Rule(
    code="W7513",
    symbol="anomaly-detection-left-on",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`%(switch)s` records a stack trace for each operation and checks each gradient for NaN, which slows the whole "
    "training down: use it only to debug",
    summary="Autograd's anomaly detection is on for a whole training.",
    rationale="With the detection on, each operation of the forward pass records the Python stack that called it, "
    "and each function of the backward pass checks its result for NaN, which waits for the device. That is what "
    "finds the operation behind a NaN, and the documentation of torch asks to enable it for debugging only, since "
    "it slows the program down.",
    cost="Time in every step: 11.5 times that of a step without it for a small model on CPU (measured), and on a "
    "GPU a wait for the device at each function of the backward pass, which was not measured.",
    exceptions="A search for the origin of a NaN, for some steps. A switch under a condition, such as `if "
    "args.debug`, is not reported, nor one that the file switches off again.",
    versions="All versions of torch; `check_nan=False` leaves the recording of stacks on.",
    verification="`torch.is_anomaly_enabled()` in the training loop; or compare the time of some steps with and "
    "without.",
    references=(
        Reference(
            "Automatic differentiation package: anomaly detection",
            "https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection",
        ),
        Reference("Lightning: Trainer", "https://lightning.ai/docs/pytorch/stable/common/trainer.html"),
    ),
    reads=("py",),
    triggers=(b"detect_anomaly",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a NaN in a backward pass no longer raises, so that a training goes on with it.",
    probe=Probe("anomaly-detection", "anomaly detection was on in all backward passes", whole_run=True),
)

RULES = (LOSS_GRAPH_ACCUMULATION, GRAPH_RETAINED_ON_BACKWARD, ANOMALY_DETECTION_LEFT_ON)
