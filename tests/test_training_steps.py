"""What training code shows of its steps, in several styles: backward passes, steps, what they reach, evaluation, intervals.

The lines of each program that are expected have a comment: ``# step``.
"""

from __future__ import annotations

import textwrap

import pytest
from linking import Alone, program_of, words

from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.assumed_values import AssumedValues
from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.intervals import Intervals
from ldlm_lint.concepts.losses import BackwardPasses, Losses
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Call, Function

PLAIN = """\
def fit(model, batches, optimizer):
    for epoch in range(3):
        for batch in batches:  # step
            loss = model(batch)
            loss.backward()  # pass
            optimizer.step()
"""
IN_FUNCTION = """\
def update(model, batch, optimizer):
    loss = model(batch)
    loss.backward()  # pass
    optimizer.step()

def fit(model, batches, optimizer):
    while True:
        for batch in batches:  # step
            update(model, batch, optimizer)
"""
MICRO_BATCHES = """\
def fit(model, batches, optimizer):
    for batch in batches:  # step
        for part in batch.chunk(4):  # step
            model(part).backward()  # pass
        optimizer.step()
"""
ENGINE = """\
import deepspeed

class Runner:
    def backward(self, loss):
        self.engine.backward(loss)

    def fit(self, batches):
        for batch in batches:  # step
            loss = self.engine(batch)
            self.backward(loss)  # pass
            self.engine.step()
"""
TIMM = """\
from timm.utils import NativeScaler

def fit(model, batches, optimizer):
    loss_scaler = NativeScaler()
    for batch in batches:  # step
        loss = model(batch)
        loss_scaler(loss, optimizer)  # pass
"""
HOOKS = """\
class Backward:
    def after_batch(self, runner):
        runner.loss.backward()  # pass
        runner.optimizer.step()

    def after_epoch(self, runner):
        print(runner)

class Runner:
    def call(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def fit(self, batches):
        self.hooks = [Backward()]
        for epoch in range(3):
            for batch in batches:  # step
                self.loss = self.model(batch)
                self.call("after_batch")
            self.call("after_epoch")
"""
PASSED_ON = """\
def timed(function):
    return function()

def fit(model, batches, optimizer):
    for batch in batches:  # step
        def run():
            model(batch).backward()  # pass
            optimizer.step()
        timed(run)
"""
LIGHTNING = """\
import lightning

class Net(lightning.LightningModule):
    def training_step(self, batch, index):  # step
        return self.loss(batch)

    def validation_step(self, batch, index):
        return self.loss(batch)
"""
LIBRARY = """\
import torch

class FocalLoss(torch.nn.Module):
    def forward(self, output, target):  # step
        return torch.nn.functional.cross_entropy(output, target)
"""
GUIDANCE = """\
def sample(model, latents, scheduler):
    for t in scheduler.timesteps:
        probe = latents.detach().requires_grad_()
        model(probe).backward()  # pass
        latents = latents - probe.grad
"""
STYLES = {
    "plain": PLAIN,
    "in a function": IN_FUNCTION,
    "micro-batches": MICRO_BATCHES,
    "an engine behind a method": ENGINE,
    "a scaler of timm": TIMM,
    "hooks by name": HOOKS,
    "a function that is passed on": PASSED_ON,
    "Lightning": LIGHTNING,
    "a loss of a library": LIBRARY,
    "guidance updates nothing": GUIDANCE,
}


def settled(text: str) -> Alone:
    return Alone(program_of({"other.py": "", "train.py": text}))


def marked(text: str, mark: str) -> set[int]:
    """The lines with a comment."""
    return {number for number, line in enumerate(textwrap.dedent(text).splitlines(), 1) if line.endswith(f"# {mark}")}


def in_file(code: Alone) -> list[Function]:
    """The functions of the program's file."""
    module = next(one for one in code.program.modules.all if one.path == "train.py")
    return [Function(code, module.base | number) for number, scope in enumerate(module.scopes) if number and scope.kind == "def"]


def line_of_function(function: Function) -> int:
    return line_of(function.module.scopes[function.key & MASK].place)


def named(code: Alone, name: str) -> Function:
    return next(one for one in in_file(code) if one.name == name)


def call(code: Alone, name: str) -> Call:
    return Call(code, next(one for one in code.program.calls[name] if code.program.module_of(one).path == "train.py"))


def lines_of_steps(code: Alone) -> set[int]:
    steps, found = code[Steps], set()
    for function in steps.functions:
        if function.module.path == "train.py":
            found |= {loop.line for loop in steps.step_loops(function)}
            found |= {line_of_function(function)} if steps.is_whole(function) else set()
    return found


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_steps_are_the_loops_and_functions_that_repeat_an_update(text):
    code = settled(text)
    assert lines_of_steps(code) == marked(text, "step")


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_backward_passes_compute_gradients_themselves(text):
    passes = settled(text)[BackwardPasses]
    assert {one.line for one in passes.calls if one.module.path == "train.py"} == marked(text, "pass")


@pytest.mark.parametrize(("text", "name", "line"), [(PLAIN, "backward", 4), (TIMM, "loss_scaler", 6)], ids=["tensor", "scaler"])
def test_a_loss_is_what_is_run_backward(text, name, line):
    code = settled(text)
    loss = code[BackwardPasses].loss(call(code, name))
    assert loss is not None
    assert (loss.kind, loss.line) == ("call", line)


def test_a_step_that_is_only_due_at_times_is_the_branch():
    text = """\
    def fit(model, batches, optimizer, every):
        for number, batch in enumerate(batches):
            count(batch)
            if number % every == 0:
                prepare(batch)
                model(batch).backward()
                optimizer.step()
    """
    code = settled(text)
    assert [code[Reach].runs(call(code, name)) for name in ("count", "prepare")] == [False, True]
    assert all(code[Reach].is_inside(call(code, name)) for name in ("count", "prepare"))
    assert not code[Reach].is_inside(call(code, "enumerate"))


def test_steps_reach_what_they_call_without_evaluations():
    text = """\
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()

        def forward(self, batch):  # reached
            return self.part(batch)

        def part(self, batch):  # reached
            return batch.mean()

    def evaluate(model, batches):
        model.eval()
        return [model(one) for one in batches]

    def report(number):
        print(number)

    def fit(batches, optimizer):  # reached
        model = Net()
        for number, batch in enumerate(batches):
            model(batch).backward()
            optimizer.step()
            if number % 100 == 0:
                report(number)
                evaluate(model, batches)
    """
    code = settled(text)
    assert {line_of_function(one) for one in in_file(code) if code[Reach].has(one)} == marked(text, "reached")
    assert code[Evaluation].is_set_by(named(code, "evaluate"))


def test_a_call_with_several_targets_is_not_certain():
    text = """\
    class Small:
        def compute(self, batch):
            return shared(batch)

    class Large:
        def compute(self, batch):
            return shared(batch)

    def shared(batch):
        return batch.mean()

    def fit(batches, optimizer, is_large):
        model = Large() if is_large else Small()
        for batch in batches:
            model.compute(batch).backward()
            prepare(optimizer)
            optimizer.step()

    def prepare(optimizer):
        optimizer.zero_grad()
    """
    code = settled(text)
    assert [code[Reach].is_certain(named(code, name)) for name in ("prepare", "shared")] == [True, False]


@pytest.mark.parametrize(
    ("body", "is_set"),
    [
        ("    model.eval()\n", True),
        ("    model.eval()\n    model.train()\n", False),
        ("    frame.eval('a + b')\n", False),
    ],
)
def test_a_function_that_sets_its_model_back_does_not_evaluate(body, is_set):
    code = settled(f"def check(model, frame):\n{body}    return model(frame)\n")
    assert code[Evaluation].is_set_by(named(code, "check")) is is_set


@pytest.mark.parametrize(
    ("body", "is_forward_only"),
    [("raise NotImplementedError", True), ("return gradient", False), ("if context:\n            raise ValueError", False)],
)
def test_an_autograd_function_whose_backward_pass_only_raises_is_in_no_training(body, is_forward_only):
    head = "import torch\n\nclass Op(torch.autograd.Function):\n    @staticmethod\n    def forward(context, given):\n        return given\n\n"
    code = settled(f"{head}    @staticmethod\n    def backward(context, gradient):\n        {body}\n")
    owner = named(code, "forward").owner
    assert owner is not None
    assert code[Evaluation].is_forward_only(owner) is is_forward_only


def test_functions_and_classes_say_by_their_names_that_they_evaluate():
    text = "class Evaluator:\n    def run(self):\n        pass\n\ndef predict_all():\n    pass\n\ndef fit():\n    pass\n"
    code = settled(text)
    assert {one.name for one in in_file(code) if code[Evaluation].is_named_so(one)} == {"run", "predict_all"}


def test_what_a_loss_is_made_of_is_on_the_device():
    text = """\
    import torch.nn.functional as F

    def fit(model, batches, optimizer, ratio):
        for batch, target in batches:
            shape, kept = model(batch)
            loss = 0.5 * F.mse_loss(shape, target) + shape.mean()
            loss.backward()
            optimizer.step()
            ask("loss", loss)
            ask("shape", shape)
            ask("ratio", ratio)
    """
    code = settled(text)
    module = named(code, "fit").module
    given = {one.row[2][0]: one.row[2][1] for one in (Call(code, key) for key in code.program.calls["ask"])}
    values = {module.nodes[label][1]: words(code.program, code.program.ask(module.base | value)) for label, value in given.items()}
    assert "on the device" in values["loss"] & values["shape"]
    assert "on the device" not in values["ratio"]
    assert {one.line for one in code[Losses].on_device} >= {5, 6}


def test_what_a_framework_gives_its_hooks_is_on_the_device():
    code = settled(LIGHTNING)
    hooks = code.program.hooks
    assert list(hooks[named(code, "training_step").key]) == ["batch"]
    assert named(code, "validation_step").key not in hooks


def test_a_loss_without_visible_callers_is_a_step_of_others():
    code = settled(LIBRARY)
    assert [one.name for one in code[AssumedValues].unseen_losses] == ["forward"]
    assert not settled(PLAIN)[AssumedValues].unseen_losses


@pytest.mark.parametrize(
    ("test", "is_periodic", "rare"),
    [
        ("step % 10 == 0", True, True),
        ("step % 10", True, False),
        ("not step % 10", True, True),
        ("due(step)", True, True),
        ("step > 10", False, None),
        ("again(step)", True, True),
    ],
)
def test_an_interval_is_a_test_of_a_remainder(test, is_periodic, rare):
    text = f"def due(step):\n    return step % 10 == 0\n\ndef again(step):\n    return again(step - 1) or step % 2 == 0\n\ndef fit(step):\n    if {test}:\n        show(step)\n"
    code = settled(text)
    (guard,) = call(code, "show").guards
    assert code[Intervals].is_periodic(guard.test) is is_periodic
    if is_periodic:
        assert code[Intervals].rare_outcome(guard.test) is rare
