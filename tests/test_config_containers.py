"""Environment variables and commands in Compose, Kubernetes and job files, and of everything that a fix must keep."""

from __future__ import annotations

import json

import pytest
import yaml
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st
from job_files import findings, fixed, found

from ldlm_lint.autofix.validate_containers import validate_dockerfile
from ldlm_lint.configs import dotenv, instructions
from ldlm_lint.model import Applicability
from ldlm_lint.source import Kind, Source

# Compose, Kubernetes, job files


YAML = {
    "mapping": ("environment:\n  NCCL_TIMEOUT: 5 # weg\n  # bleibt\n  A: 1\n", "environment:\n  # bleibt\n  A: 1\n"),
    "last of a mapping": ("env:\n  A: 1\n  NCCL_TIMEOUT: 5\nx: 1\n", "env:\n  A: 1\nx: 1\n"),
    "only one": ("a:\n  env:\n    NCCL_TIMEOUT: 5\nx: 1\n", "a:\n  env: {}\nx: 1\n"),
    "only ones": ("a:\n  env:\n    NCCL_TIMEOUT: 5\n    GLOO_TIMEOUT: 5\nx: 1\n", "a:\n  env: {}\nx: 1\n"),
    "list of texts": ("env:\n  - NCCL_TIMEOUT=5\n  - 'A=1'\n", "env:\n  - 'A=1'\n"),
    "list without indentation": ("env:\n- A=1\n- NCCL_TIMEOUT=5\n", "env:\n- A=1\n"),
    "only one of a list": ("env:\n  - NCCL_TIMEOUT=5\nx: 1\n", "env: []\nx: 1\n"),
    "name and value": (
        "env:\n  - name: NCCL_TIMEOUT\n    value: '5'\n  # of A\n  - name: A\n    value: '1'\n",
        "env:\n  # of A\n  - name: A\n    value: '1'\n",
    ),
    "value and name": (
        "env:\n  - value: '5'\n    name: NCCL_TIMEOUT\n  - name: A\n    value: '1'\n",
        "env:\n  - name: A\n    value: '1'\n",
    ),
    "CloudFormation": (
        "Environment:\n  - Name: A\n    Value: 1\n  - Name: NCCL_TIMEOUT\n    Value: '5'\n",
        "Environment:\n  - Name: A\n    Value: 1\n",
    ),
    "flow mapping": ("env: {A: 1, NCCL_TIMEOUT: 5, B: 2}\n", "env: {A: 1, B: 2}\n"),
    "flow mapping, all": ("env: {NCCL_TIMEOUT: 5, GLOO_TIMEOUT: 1}\n", "env: {}\n"),
    "flow list": ('env: ["NCCL_TIMEOUT=5", "A=1"]\n', 'env: ["A=1"]\n'),
    "flow pairs": ("env: [{name: NCCL_TIMEOUT, value: 1}, {name: A, value: 1}]\n", "env: [{name: A, value: 1}]\n"),
    "anchor": (
        "x: &e\n  NCCL_DEBUG: INFO\n  A: 1\na:\n  env: *e\nb:\n  env:\n    <<: *e\n    B: 1\n",
        "x: &e\n  NCCL_DEBUG: WARN\n  A: 1\na:\n  env: *e\nb:\n  env:\n    <<: *e\n    B: 1\n",
    ),
    "beside a merge": (
        "x: &e {A: 1}\na:\n  env:\n    <<: *e\n    NCCL_TIMEOUT: 5\n",
        "x: &e {A: 1}\na:\n  env:\n    <<: *e\n",
    ),
    "value through an alias": ("x: &v INFO\nenv:\n  NCCL_DEBUG: *v\n", "x: &v INFO\nenv:\n  NCCL_DEBUG: *v\n"),
    "quotes stay": ("env:\n  NCCL_DEBUG: 'INFO'\n  A: \"1\"\n", "env:\n  NCCL_DEBUG: 'WARN'\n  A: \"1\"\n"),
    "number stays a text": (
        'env:\n- name: NCCL_IB_TIMEOUT\n  value: "90"\n',
        'env:\n- name: NCCL_IB_TIMEOUT\n  value: "22"\n',
    ),
    "literal block": (
        "run: |\n  set -e\n  export NCCL_TIMEOUT=5\n  export NCCL_DEBUG=INFO # x\n  torchrun t.py\n",
        "run: |\n  set -e\n  export NCCL_DEBUG=WARN # x\n  torchrun t.py\n",
    ),
    "folded block": ("run: >-\n  NCCL_DEBUG=INFO\n  torchrun t.py\n", "run: >-\n  NCCL_DEBUG=WARN\n  torchrun t.py\n"),
    "over several lines": (
        "command: NCCL_DEBUG=INFO\n  torchrun\n  t.py\n",
        "command: NCCL_DEBUG=WARN\n  torchrun\n  t.py\n",
    ),
    "inside of a word": (
        'command: ["mpirun", "-x", "NCCL_DEBUG=INFO", "python", "t.py"]\n',
        'command: ["mpirun", "-x", "NCCL_DEBUG=WARN", "python", "t.py"]\n',
    ),
    "old launcher in a list": (
        "command:\n  - 'python'\n  - '-m'\n  - 'torch.distributed.launch'\n  - t.py\n",
        "command:\n  - 'torchrun'\n  - t.py\n",
    ),
    "old launcher in other quotes": (
        "command: [python, '-m', \"torch.distributed.launch\", t.py]\n",
        "command: [python, '-m', \"torch.distributed.launch\", t.py]\n",
    ),
    "nothing but the code": ("run: |\n  export NCCL_TIMEOUT=5\nx: 1\n", "run: |\n  export NCCL_TIMEOUT=5\nx: 1\n"),
    "lines of a list": (
        "commands:\n  - export NCCL_DEBUG=INFO\n  - |\n    set -e\n    torchrun t.py\n  - 'NCCL_DEBUG=INFO torchrun b.py'\n",
        "commands:\n  - export NCCL_DEBUG=WARN\n  - |\n    set -e\n    torchrun t.py\n  - 'NCCL_DEBUG=WARN torchrun b.py'\n",
    ),
    "shell in a list": (
        'command: ["bash", "-c"]\nargs: ["NCCL_DEBUG=INFO torchrun t.py"]\n',
        'command: ["bash", "-c"]\nargs: ["NCCL_DEBUG=WARN torchrun t.py"]\n',
    ),
}


@for_every(("text", "after"), YAML.values(), ids=YAML)
def test_fixes_of_yaml(text: str, after: str) -> None:
    assert fixed(text, Kind.YAML) == after
    assert list(yaml.safe_load_all(after))


JSON = {
    "first": ('{"env": {"NCCL_TIMEOUT": "5", "A": "1"}}', '{"env": {"A": "1"}}'),
    "last": ('{"env": {"A": "1",\n  "NCCL_TIMEOUT": "5"\n}}', '{"env": {"A": "1"\n}}'),
    "all": ('{"env": {\n  "NCCL_TIMEOUT": "5"\n}}', '{"env": {}}'),
    "pairs": (
        '{"environment": [{"name": "A", "value": "1"}, {"name": "NCCL_TIMEOUT", "value": "5"}]}',
        '{"environment": [{"name": "A", "value": "1"}]}',
    ),
    "number": ('{"env": {"NCCL_IB_TIMEOUT": 90}}', '{"env": {"NCCL_IB_TIMEOUT": 22}}'),
}


@pytest.mark.parametrize(("text", "after"), JSON.values(), ids=JSON)
def test_fixes_of_json(text: str, after: str) -> None:
    assert fixed(text, Kind.JSON) == after
    json.loads(after)


TOML = {
    "table": ('[env]\nA = "1" # a\nNCCL_TIMEOUT = "5" # b\n\n[x]\n', '[env]\nA = "1" # a\n\n[x]\n'),
    "only one": ("[env]\nNCCL_TIMEOUT = 5\n[x]\n", "[env]\n[x]\n"),
    "inline": ("env = {NCCL_TIMEOUT = 5, A = 1}\n", "env = {A = 1}\n"),
    "list": ('env = ["A=1", "NCCL_TIMEOUT=5"]\n', 'env = ["A=1"]\n'),
    "dotted": ('env.NCCL_DEBUG = "INFO"\n', 'env.NCCL_DEBUG = "WARN"\n'),
}


@pytest.mark.parametrize(("text", "after"), TOML.values(), ids=TOML)
def test_fixes_of_toml(text: str, after: str) -> None:
    assert fixed(text, Kind.TOML) == after


@for_every(
    "text",
    [
        "Environment:\n  - Name: NCCL_DEBUG\n    Value: !Ref INFO\n",
        "env:\n  NCCL_DEBUG:\n",
        "env:\n  - NCCL_DEBUG\n",
        "env:\n  - name: NCCL_DEBUG\n    valueFrom: {fieldRef: {fieldPath: x}}\n",
        "env:\n  NCCL_DEBUG: ${LEVEL}\n",
        "env:\n  NCCL_DEBUG: $(LEVEL)\n",
        "env:\n  NCCL_DEBUG: '{{ .Values.level }}'\n",
        "labels:\n  NCCL_DEBUG: INFO\n",
        "data:\n  NCCL_DEBUG: INFO\n",
        "variables:\n  NCCL_DEBUG: INFO\n",
        "metadata: {name: nccl-test}\nspec:\n  env:\n    NCCL_DEBUG: INFO\n",
        "services:\n  debug:\n    environment:\n      NCCL_DEBUG: INFO\n",
        "env:\n- {name: NCCL_DEBUG, value: INFO}\ncommand: [bash, -c, 'export NCCL_DEBUG=WARN; torchrun t.py']\n",
        "a: {env: [PYTORCH_ALLOC_CONF=a:1]}\nb: {env: [PYTORCH_CUDA_ALLOC_CONF=a:2]}\n",
        "jobs:\n  a: {env: {NCCL_DEBUG: INFO}}\non: push\n",
        "env:\n  NCCL_IB_DISABLE: 1 # the cluster has no InfiniBand\n",
        "env:\n  # VMs without P2P\n  - name: NCCL_P2P_DISABLE\n    value: '1'\n",
        "services:\n  a:\n    image: vllm/vllm-openai:v0.9\n    environment: [NCCL_P2P_DISABLE=1]\n",
        "containers:\n- args: [vllm, serve, x]\n  env: [{name: NCCL_SHM_DISABLE, value: '1'}]\n",
        "args: [--message, NCCL_DEBUG=INFO torchrun t.py]\n",
        "services:\n  a:\n    command: echo torchrun t.py | tee log\n",
    ],
)
def test_yaml_that_is_fine(text: str) -> None:
    assert not found(text, Kind.YAML)


@pytest.mark.parametrize(
    "name", ["/p/.github/workflows/x.yml", "/p/.gitlab-ci.yml", "/p/azure-pipelines.yml", "/p/debug.yaml"]
)
def test_files_of_tests_and_of_debugging_are_silent(name: str) -> None:
    assert not found("env:\n  NCCL_DEBUG: INFO\n", Kind.YAML, name)


@pytest.mark.parametrize(
    "stages, pipeline",
    [
        ("stages: [build, test]\nfit:\n  stage: test\n  script: [pytest]\n", True),
        ("stages:\n- stage: fit\n  jobs: []\n", True),
        ("stages: [prepare, fit]\nfit:\n  extends: .common\n", True),
        # A launcher lists the steps that it takes.
        ("stages:\n  - prepare\n  - fit\n  - export\ncluster: slurm\n", False),
    ],
)
def test_the_stages_of_a_launcher_are_no_pipeline(stages: str, pipeline: bool) -> None:
    assert bool(found(stages + "env_vars:\n  NCCL_DEBUG: INFO\n", Kind.YAML)) is not pipeline


def test_what_an_alias_shares_is_found_once_at_its_anchor() -> None:
    text = "x: &e\n  NCCL_DEBUG: INFO\na:\n  env: *e\nb:\n  env: *e\nc:\n  env:\n    <<: *e\n"
    (finding,) = findings(text, Kind.YAML)
    assert text.encode()[finding.span.start : finding.span.end] == b"NCCL_DEBUG: INFO"


def test_what_nobody_takes_from_an_anchor_is_silent() -> None:
    assert not found("x: &e\n  NCCL_DEBUG: INFO\na:\n  env:\n    <<: *e\n    NCCL_DEBUG: WARN\n", Kind.YAML)


def test_the_watchdog_is_put_right_as_one_unit() -> None:
    text = (
        "env:\n  - name: TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC\n    value: '90000'\n"
        "  - name: TORCH_NCCL_ENABLE_MONITORING\n    value: '0'\n  - name: NCCL_BLOCKING_WAIT\n    value: '1'\n"
    )
    fixes = {(one.fix.group, one.fix.whole) for one in findings(text, Kind.YAML) if one.fix}
    assert len(fixes) == 1
    assert "NCCL_BLOCKING_WAIT" not in fixed(text, Kind.YAML)
    assert fixed(text, Kind.YAML, Applicability.SAFE) == text


def test_a_heartbeat_of_nothing_keeps_the_watchdog_as_it_is() -> None:
    text = "env:\n  TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: 0\n  TORCH_NCCL_ENABLE_MONITORING: 0\n"
    assert [one.fix for one in findings(text, Kind.YAML)] == [None, None]


def test_a_heartbeat_that_the_code_sets_keeps_the_watchdog_as_it_is() -> None:
    text = (
        "env:\n  TORCH_NCCL_ENABLE_MONITORING: 0\n"
        "run: |\n  export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=$SITE\n  torchrun t.py\n"
    )
    (finding,) = findings(text, Kind.YAML)
    assert finding.rule == "nccl-monitoring-disabled"
    assert finding.fix is None


_NAMES = st.sampled_from(
    ["A", "NCCL_TIMEOUT", "GLOO_TIMEOUT", "NCCL_DEBUG", "TORCH_NCCL_BLOCKING_WAIT", "CUDA_LAUNCH_BLOCKING"]
)
_VALUES = {"NCCL_DEBUG": "INFO"}
_CHANGED = {"NCCL_DEBUG": "WARN"}


def _block(names: list[str], form: str) -> str:
    pairs = [(name, _VALUES.get(name, "1")) for name in names]
    return {
        "mapping": "".join(f"\n    {name}: '{value}' # {index}" for index, (name, value) in enumerate(pairs)),
        "list": "".join(f'\n  - "{name}={value}"' for name, value in pairs),
        "pairs": "\n    # c".join(f"\n    - name: {name}\n      value: '{value}'" for name, value in pairs),
        "flow": " {" + ", ".join(f"{name}: '{value}'" for name, value in pairs) + "}",
    }[form]


@settings(max_examples=150, deadline=None)
@given(st.lists(_NAMES, min_size=1, max_size=5, unique=True), st.sampled_from(["mapping", "list", "pairs", "flow"]))
def test_a_fixed_file_holds_what_no_rule_speaks_of(names: list[str], form: str) -> None:
    text = f"a:\n  env:{_block(names, form)}\nb: 1\n"
    after = yaml.safe_load(fixed(text, Kind.YAML))
    before = yaml.safe_load(text)
    assert after["b"] == before["b"]
    held, kept = _as_mapping(before["a"]["env"]), _as_mapping(after["a"]["env"])
    assert kept.keys() <= held.keys()
    assert kept.get("A") == held.get("A")
    assert kept.get("NCCL_DEBUG") == _CHANGED["NCCL_DEBUG"] or "NCCL_DEBUG" not in names
    assert not kept.keys() & {"NCCL_TIMEOUT", "GLOO_TIMEOUT"}


def _as_mapping(environment: object) -> dict[str, str]:
    if isinstance(environment, dict):
        return environment
    assert isinstance(environment, list)
    if all(isinstance(one, str) for one in environment):
        return dict(one.split("=", 1) for one in environment)
    return {one["name"]: one["value"] for one in environment}


@settings(max_examples=80, deadline=None)
@given(st.lists(_NAMES, min_size=1, max_size=5, unique=True), st.sampled_from([" ", " \\\n    ", " \\\n    # c\n    "]))
def test_a_fixed_env_instruction_holds_what_no_rule_speaks_of(names: list[str], joint: str) -> None:
    text = "FROM x\nENV " + joint.join(f"{name}={_VALUES.get(name, '1')}" for name in names) + "\nUSER a\n"
    after = fixed(text, Kind.DOCKERFILE)
    assert validate_dockerfile(text.encode(), after.encode()) is None
    source = Source.from_bytes("Dockerfile", after.encode(), Kind.DOCKERFILE)
    kept = {
        pair.name: pair.raw
        for one in instructions.read(source)
        if one.keyword == "ENV"
        for pair in instructions.pairs(one)
    }
    assert ("A" in kept) == ("A" in names)
    assert not kept.keys() & {"NCCL_TIMEOUT", "GLOO_TIMEOUT"}
    # Of an instruction whose variables are all to go one stays for another round, and may be switched off instead.
    assert {kept.get("TORCH_NCCL_BLOCKING_WAIT", "0"), kept.get("CUDA_LAUNCH_BLOCKING", "0")} == {"0"}
    assert kept.get("NCCL_DEBUG") in (None, "WARN")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet="ENV A=1\\\n#\"'`<ECMDRUN[]${}:- ", max_size=120).map(str.encode))
def test_any_bytes_are_read(data: bytes) -> None:
    try:
        source = Source.from_bytes("Dockerfile", b"ENV NCCL_TIMEOUT=1\n" + data, Kind.DOCKERFILE)
    except Exception:
        return
    for one in instructions.read(source):
        assert source.data[one.at : one.at + len(one.body)].count(b"\n") >= one.body.count(b"\n")
        instructions.pairs(one)
        instructions.words(one)
    list(dotenv.variables(source))
    findings(b"FROM x\nENV NCCL_TIMEOUT=1\n" + data, Kind.DOCKERFILE)
