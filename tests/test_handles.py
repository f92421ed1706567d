"""Handles: what rules hold in their hands, on small programs."""

from __future__ import annotations

import pytest
from linking import Alone, program_of

from ldlm_lint.program.handles import Call
from ldlm_lint.program.value_uses import How
from ldlm_lint.program.walks import Through

OPTIMIZERS = {"torch.optim.Adam", "torch.optim.AdamW"}


def codebase(**files: str) -> Alone:
    return Alone(program_of({f"{name}.py": text for name, text in files.items()}))


def call_of(code: Alone, name: str) -> Call:
    (key,) = code.program.calls[name]
    return Call(code, key)


def test_calls_are_found_under_any_name():
    code = codebase(
        train="""
        import torch, table
        from torch.optim import AdamW as Best
        Best(params)
        table.MAKERS[name](params)
        class Own(torch.optim.Adam): pass
        Own(params)
        torch.optim.SGD(params)
        """,
        table="import torch\nMAKERS = {'adam': torch.optim.Adam}\n",
    )
    assert [call.line for call in code.calls(OPTIMIZERS)] == [4, 5, 7]
    assert [one.name for call in code.calls(OPTIMIZERS) for one in call.callee.alternatives(OPTIMIZERS)] == [
        "torch.optim.AdamW",
        "torch.optim.Adam",
        "torch.optim.Adam",
    ]


def test_an_alternative_says_where_and_when_it_is_chosen():
    code = codebase(
        train="""
        import torch
        def main(args):
            maker = torch.optim.AdamW if args.opt == "adamw" else torch.optim.Adam
            maker(params)
        """
    )
    (call,) = code.calls(OPTIMIZERS)
    found = call.callee.alternatives(OPTIMIZERS)
    assert {one.name: [origin.expr.line for origin in one.origins] for one in found} == {"torch.optim.AdamW": [4], "torch.optim.Adam": [4]}
    assert not any(one.is_fallback for one in found)


def test_an_argument_is_absent_given_or_open():
    code = codebase(
        train="""
        import torch
        def main(**more):
            torch.optim.AdamW(params, lr=0.1)
            torch.optim.Adam(params, **more)
        main(**read())
        """
    )
    plain, handed = code.calls(OPTIMIZERS)
    assert plain.argument("fused").is_absent
    assert [one.may_be().only for one in plain.argument("lr").values] == [0.1]
    assert handed.argument("fused").is_open


def test_a_function_knows_all_its_callers():
    code = codebase(
        train="""
        class Trainer:
            def step(self): pass
        def run(trainer):
            trainer.step()
        run(Trainer())
        """
    )
    (target,) = call_of(code, "step").targets
    assert target.name == "step" and target.owner is not None and target.owner.name == "Trainer"
    assert [one.line for one in target.callers] == [5]
    assert [one.name for one in call_of(code, "step").function.around] == ["run"]


@pytest.mark.parametrize(
    ("statement", "uses"),
    [
        ("make()", []),
        ("held = make()", []),
        ("held = make()\n            show(held)", [How.OPERAND]),
        ("held = make()\n            return held", [How.RETURNED]),
        ("self.held = make()", [How.SET]),
        ("if make(): pass", [How.TESTED]),
        ("held = make()\n            return lambda: held", [How.NAMED]),
        ("global held\n            held = make()", [How.NAMED]),
        ("return lambda: make()", [How.RETURNED]),
        ("held = make()\n            show(locals())", [How.NAMED]),
        ("held = make()\n            show(vars(self))", []),
        ("@make\n            def inner(): pass", [How.NAMED]),
    ],
)
def test_what_becomes_of_a_value(statement: str, uses: list[How]):
    code = codebase(train=f"def main(self):\n            {statement}\n")
    assert [one.how for one in call_of(code, "make").uses()] == uses


@pytest.mark.parametrize(
    ("statement", "is_dropped"),
    [
        ("make()", True),
        ("self = make()", True),
        ("if self.fast: self = make()", True),
        ("for one in self.parts: one = make()", True),
        ("make() if self.fast else None", True),
        ("self.fast and make()", True),
        ("[make() for one in self.parts]", True),
        ("make(), None", True),
        ("if self.fast: self = make()\n            show(self)", False),
        ("for one in self.parts: one = make()\n            show(one)", False),
        ("for one in range(3): self = make(self)", False),
        ("None if make() else show()", False),
        ("make() and show()", False),
        ("a, b = make(), None\n            show(a)", False),
        ("self.parts = [make() for one in self.parts]", False),
        ("self.parts[0] = make()", False),
        ("return make() if self.fast else self", False),
    ],
)
def test_whether_a_value_is_dropped(statement: str, is_dropped: bool):
    code = codebase(train=f"def main(self):\n            {statement}\n")
    assert call_of(code, "make").is_dropped is is_dropped


@pytest.mark.parametrize(
    ("given", "objects"),
    [
        ("Net()", ["Net"]),
        ("torch.nn.Linear(2, 2)", ["torch.nn.Linear"]),
        ("Net() if fast else Deep()", ["Net", "Deep"]),
        ("Net", []),
        ("torch.nn.Linear", []),
        ("helper", []),
        ("unknown", []),
        ("Net() if fast else unknown", []),
    ],
)
def test_what_an_expression_is_an_object_of(given: str, objects: list[str]):
    text = f"import torch\nclass Net(torch.nn.Module):\n    def run(self): ask(self)\nclass Deep(Net): pass\ndef helper(): pass\nmake({given})\n"
    code = codebase(train=text)
    (value,) = call_of(code, "make").argument("model", 0).values
    assert [one if isinstance(one, str) else one.name for one in value.objects] == objects
    (me,) = call_of(code, "ask").argument("model", 0).values
    assert [one if isinstance(one, str) else one.name for one in me.objects] == ["Net", "Deep"]


def test_handles_of_one_place_are_equal():
    code = codebase(train="import torch\ntorch.optim.AdamW(params)\n")
    (one,), (other,) = code.calls(OPTIMIZERS), code.calls(OPTIMIZERS)
    assert one == other and len({one, other}) == 1 and one != one.callee


def test_an_expression_says_what_it_is_made_of_and_what_is_made_of_it():
    code = codebase(
        train="""
        class Trainer:
            def __init__(self, model):
                self.model = model
            def run(self, batch, limit):
                for part in batch.parts:
                    if limit > 3:
                        ask(self.model(part), limit)
        Trainer(net).run(data, 5)
        """
    )
    call = call_of(code, "ask")
    run, limit = (one.plain for one in call.positional)
    assert (run.kind, limit.name, [one.constant for one in limit.given]) == ("call", "limit", [5])
    assert isinstance(run, Call)
    assert [(one.name, one.function.name) for one in run.callee.set_to] == [("model", "__init__")]
    (part,) = run.positional
    assert part.base is not None and (part.kind, part.base.name) == ("elem", "parts") and run in part.users
    (guard,) = call.spot.guards
    assert (guard.kind, guard.holds, guard.test.operator, guard.test.operands[0].plain.name) == ("if", True, "Gt", "limit")
    (loop,) = call.spot.loops
    assert loop.value == part.base and call.spot.is_in(loop) and call.spot.is_under(guard)
    assert [(event.kind, event.name) for event in call.function.events][-2:] == [("bind", "part"), ("test", "")]


def test_a_walk_back_follows_the_links_that_it_is_asked_to_follow():
    code = codebase(
        train="""
        def run(batch, flag):
            part = batch["x"] if flag else batch
            ask(part)
        def main(loader):
            for given in loader:
                run(given, True)
        """
    )
    (asked,) = call_of(code, "ask").positional
    assert [one.kind for one in asked.origins(Through.NAMES)] == ["choice"]
    assert [one.kind for one in asked.origins(Through.NAMES | Through.CHOICES)] == ["choice", "item", "param"]
    every = Through.NAMES | Through.CHOICES | Through.PARTS | Through.PARAMETERS
    assert [one.kind for one in asked.origins(every)] == ["choice", "item", "param", "elem", "param"]


@pytest.mark.parametrize(
    ("first", "second", "is_alike"),
    [
        ("step % every == 0", "step % every == 0", True),
        ("step % every == 0", "step % every != 0", False),
        ("due(step, last=True)", "due(step, last=True)", True),
        ("due(step, last=True)", "due(step, first=True)", False),
        ("self.count > 3", "self.count > 4", False),
        ("step", "every", False),
    ],
)
def test_expressions_are_alike_that_are_written_alike(first, second, is_alike):
    code = codebase(train=f"def run(self, step, every):\n    ask({first})\n    ask({second})\n")
    one, other = (call.positional[0] for call in code.calls_named("ask"))
    assert one.is_alike(other) is is_alike


@pytest.mark.parametrize(
    ("first", "second", "is_excluded"),
    [
        ("amp", "not amp", True),
        ("amp and ready", "not amp", True),
        ("amp", "amp and ready", False),
        ("scaler is None", "scaler", True),
        ("mode == 'train'", "mode != 'train'", True),
        ("mode == 'train'", "mode == 'test'", False),
        ("not half or bfloat", "half and not bfloat", False),
        ("self.amp", "not self.amp", True),
    ],
)
def test_calls_under_opposite_conditions_exclude_each_other(first, second, is_excluded):
    code = codebase(train=f"""
        def step(self, amp, half, bfloat, ready, scaler, mode):
            if {first}:
                one()
            if {second}:
                other()
        """)
    assert call_of(code, "one").excludes(call_of(code, "other")) is is_excluded
    assert call_of(code, "one").spot.leads_to(call_of(code, "other").spot) is not is_excluded
