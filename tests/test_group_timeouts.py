"""How long process groups wait, and what their programs write into the environment, on small programs."""

from __future__ import annotations

import pytest
from linking import Alone, program_of

from ldlm_lint.concepts.environment import Environment
from ldlm_lint.concepts.environment_reads import EnvironmentReads
from ldlm_lint.concepts.group_timeouts import GroupTimeouts

GROUPS = "import os\nfrom datetime import timedelta\nimport torch.distributed as dist\n\n"


def codebase(text: str) -> Alone:
    return Alone(program_of({"train.py": GROUPS + text}))


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        pytest.param("dist.init_process_group('nccl', timeout=timedelta(hours=1, minutes=30))", [(5400.0, "")], id="written out"),
        pytest.param("LONG = timedelta(2)\ndef join(options):\n    options['timeout'] = LONG\njoin({})\ndist.new_group([0], LONG)", [(172800.0, "")], id="by position"),
        pytest.param("def join(hours=3):\n    dist.init_process_group('nccl', timeout=timedelta(hours=hours))", [(10800.0, "hours")], id="a default"),
        pytest.param("dist.init_process_group('nccl', timeout=timedelta(seconds=int(os.environ.get('WAIT', 90))))", [(90.0, "WAIT")], id="looked up"),
        pytest.param("def join(hours):\n    dist.init_process_group('nccl', timeout=timedelta(hours=hours))", [], id="unknown"),
    ],
)
def test_the_lengths_of_timeouts(text, lengths):
    (group,) = codebase(text)[GroupTimeouts].groups
    assert [(one.seconds, one.default.what if one.default is not None else "") for one in group.lengths] == lengths


def test_a_group_on_gloo_beside_the_default_group_may_wait():
    code = codebase("dist.init_process_group('gloo')\ndist.new_group(backend='gloo', timeout=timedelta(hours=9))")
    assert [one.is_default for one in code[GroupTimeouts].groups] == [True]
    assert len(code[GroupTimeouts].takers) == 2


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("os.environ['A'] = '1'", [("A", ("1",))], id="an item"),
        pytest.param("os.environ.setdefault('A', str(3))", [("A", ("3",))], id="a default"),
        pytest.param("for name in ('A', 'B'):\n    os.environ[name] = 'x'", [("A", ("x",)), ("B", ("x",))], id="a loop"),
        pytest.param("os.environ |= {'A': '2', 'C': '3'}", [("A", ("2",)), ("C", ("3",))], id="merged"),
        pytest.param("os.environ.update(A='4')", [("A", ("4",))], id="a keyword"),
        pytest.param("def put(name, value):\n    os.environ[name] = value\nput('A', '5')", [("A", ("5",))], id="by a function"),
        pytest.param("def put(value):\n    os.environ['A'] = value\nput('6')", [("A", ("6",))], id="a value from a caller"),
        pytest.param("name, value = 'A', '7'\nos.environ[name] = value", [("A", ("7",))], id="a pair"),
        pytest.param("settings = {}\nsettings['A'] = '1'", [], id="another mapping"),
    ],
)
def test_what_is_written_into_the_environment(text, written):
    assert [(one.name, one.texts) for one in codebase(text)[Environment].writes(lambda _: True)] == written


@pytest.mark.parametrize(
    ("text", "given"),
    [
        pytest.param("run(env={**os.environ, 'A': '1'})", [("A", ("1",))], id="a copy"),
        pytest.param("env = os.environ.copy()\nenv.update(A='1')\nenv['C'] = str(2)\nrun(env=env)", [("A", ("1",)), ("C", ("2",))], id="in steps"),
        pytest.param("NAME = 'A'\ndef start(more):\n    run(env=dict(os.environ, **more))\nstart({NAME: '1'})", [("A", ("1",))], id="from a caller"),
        pytest.param("def made():\n    return os.environ | {'A': '1'}", [("A", ("1",))], id="returned"),
        pytest.param("env = {**os.environ, 'A': '1'}\nenv.pop('A')\nrun(env=env)", [], id="taken out"),
        pytest.param("run(options={'A': '1'})\ndef made():\n    return {'A': '1'}", [], id="another mapping"),
    ],
)
def test_what_a_started_process_gets(text, given):
    assert [(one.name, one.texts) for one in codebase(text)[Environment].of_processes(lambda _: True)] == given


@pytest.mark.parametrize(
    ("text", "is_late"),
    [
        pytest.param("def start():\n    dist.init_process_group('nccl')\nstart()\nos.environ['A'] = '1'", True, id="in a function"),
        pytest.param("os.environ['A'] = '1'\ndist.init_process_group('nccl')", False, id="in time"),
        pytest.param("if os.name:\n    dist.init_process_group('nccl')\nelse:\n    os.environ['A'] = '1'", False, id="on another way"),
        pytest.param("dist.init_process_group('gloo')\nos.environ['A'] = '1'\ndist.new_group([0])", False, id="read again"),
    ],
)
def test_whether_a_group_has_read_a_variable(text, is_late):
    code = codebase(text)
    (write,) = code[Environment].writes(lambda name: name == "A")
    assert (code[EnvironmentReads].by_group.before(write.spot) is not None) is is_late
