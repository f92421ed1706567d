"""Family 75: graphs that are kept, and autograd checks that are left on."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Frequency, Probe, Reference, Rule

LOSS_GRAPH_ACCUMULATION = Rule(
    code="W7510",
    symbol="loss-graph-accumulation",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="%(into)s collects %(loss)s with its autograd graph: the graph of every step stays in memory, which grows with "
    "the number of steps; collect %(detached)s instead",
    summary="A running sum or a list of losses that keeps the graph of each one.",
    rationale="A loss references the graph that computed it, and so does a sum or a list that contains the loss. The "
    "backward pass frees the tensors that were saved for it, but not the nodes of the graph or what these nodes "
    "reference. The sum grows by one graph per step, so host memory grows, and device memory too if a node references "
    "tensors. Freeing such a long graph at the end can take long.",
    cost="Memory that grows with the number of steps: after 10 steps the nodes of all 10 were alive, with `.detach()` "
    "none (measured on torch 2.13). The backward pass does free the saved activations.",
    exceptions="A sum that is itself differentiated, such as the sum of several tasks or micro-batches, needs the "
    "graph and is not reported. A few hundred steps of a small model do no harm.",
    versions="All versions of torch.",
    verification="Print `total.grad_fn` after the loop: it is `None` if the sum holds no graph. Or watch the resident "
    "memory of the process over a few thousand steps.",
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
    fix_safety="Safe if the sum is a variable of the function that is only divided, compared, converted to a number "
    "or formatted as one (`{total:.4f}`). Otherwise unsafe: code that ldlm-lint cannot see may differentiate the sum, "
    "and a tensor prints its `grad_fn`. `.detach()` does not wait for the GPU, as `.item()` would.",
    probe=Probe("live-autograd-nodes", "losses of earlier iterations are alive with their graphs"),
)

RULES = (LOSS_GRAPH_ACCUMULATION,)
