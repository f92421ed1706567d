"""Who calls a function, once the program is settled: through objects, decorators, packages and functions that are handed on."""

from __future__ import annotations

from linking import DEVICE, Alone, program_of

from ldlm_lint.program.handles import Function


def callers(files: dict[str, str], name: str) -> list[str]:
    """The callers of the functions of a name, as ``file:line``."""
    code = Alone(program_of(files))
    scopes = ((module, number, scope) for module in code.program.live for number, scope in enumerate(module.scopes))
    found = [Function(code, module.base | number) for module, number, scope in scopes if scope.name == name and scope.kind == "def"]
    return sorted(f"{call.module.path}:{call.line}" for one in found for call in one.callers)


def test_a_method_of_an_object_of_unknown_origin_is_found_by_what_it_is():
    text = "class Saver:\n    def save(self): pass\nclass Other:\n    def save(self): pass\ndef run(saver):\n    saver.save()\nrun(Saver())\n"
    assert callers({"train.py": text}, "save") == ["train.py:6"]


def test_a_package_finds_its_own_modules():
    files = {"nets/__init__.py": "from nets import net\nnet.build()\n", "nets/net.py": "def build(): pass\n"}
    assert callers(files, "build") == ["nets/__init__.py:2"]
    files["nets/__init__.py"] = "from . import net\nnet.build()\n"
    assert callers(files, "build") == ["nets/__init__.py:2"]


def test_the_wrapper_of_a_decorator_does_not_call_all_that_it_decorates():
    text = """
        def timed(function):
            def wrapper(*args):
                return function(*args)
            return wrapper

        @timed
        def save(): pass

        @timed
        def step(): pass

        step()
        """
    assert callers({"train.py": text}, "step") == ["train.py:13"]
    assert callers({"train.py": text}, "save") == []


def test_a_wrapper_that_is_no_decorator_calls_what_it_was_given():
    text = """
        def timed(function):
            def wrapper(*args):
                return function(*args)
            return wrapper

        def step(): pass

        run = timed(step)
        run()
        """
    assert callers({"train.py": text}, "step") == ["train.py:4"]


def test_looking_at_a_function_does_not_call_it():
    text = "import functools, inspect\ndef step(): pass\nprint(type(step), step)\ninspect.getfile(step)\nfunctools.wraps(step)\n"
    assert callers({"train.py": text}, "step") == []
    assert callers({"train.py": "def step(): pass\nlist(map(step, batches))\n"}, "step") == ["train.py:2"]


def test_a_value_that_goes_round_is_not_taken_for_a_number():
    """What ``x`` is rests on itself: before it was known, the comparison was concluded to be one of Python."""
    text = """
        import torch

        def update(x, mask):
            flag = (x != mask).to(x.dtype)
            return flag, flag * x + (1 - flag) * torch.rand_like(x)

        def sample(mask):
            x = torch.zeros(4, device="cuda")
            for _ in range(8):
                _, x = update(x, mask)
            return x

        sample(len(read()))
        """
    program = program_of({"train.py": text})
    module = program.live[0]
    function = next(number for number, scope in enumerate(module.scopes) if scope.name == "update")
    assert program.ask(module.base | module.scopes[function].parameters["x"]) == frozenset([DEVICE])
