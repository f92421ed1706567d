"""Environment variables and commands in ``.env`` files, Dockerfiles, Compose, Kubernetes and job files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.autofix.validate_containers import validate_dockerfile, validate_dotenv
from ldlm_lint.configs import containers, dockerfile, dotenv, instructions
from ldlm_lint.configs.detect import config_kind
from ldlm_lint.configs.read import read
from ldlm_lint.model import Applicability, Edit, Finding
from ldlm_lint.rules import ALL
from ldlm_lint.source import Kind, Source

DEFAULTS = {option.name: option.default for rule in ALL for option in rule.options}


def findings(text: str | bytes, kind: Kind, name: str = "") -> list[Finding]:
    data = text if isinstance(text, bytes) else text.encode()
    source = Source.from_bytes(name or f"job.{kind.value}", data, kind)
    if kind is Kind.DOTENV:
        found = dotenv.findings(source, DEFAULTS)
    elif kind is Kind.DOCKERFILE:
        found = dockerfile.findings(source, DEFAULTS)
    else:
        found = containers.findings(source, read(source), DEFAULTS)
    return sorted(found, key=lambda one: one.order)


def found(text: str, kind: Kind, name: str = "") -> list[str]:
    return [one.rule for one in findings(text, kind, name)]


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    for edit in sorted(edits, reverse=True):
        data = data[: edit.span.start] + edit.text.encode() + data[edit.span.end :]
    return data


def fixed(text: str | bytes, kind: Kind, level: Applicability = Applicability.UNSAFE) -> str:
    """The file after rounds of fixes, those of one group as one; no two edits of a round overlap."""
    data = text if isinstance(text, bytes) else text.encode()
    for _ in range(20):
        groups: dict[str, set[Edit]] = {}
        for index, one in enumerate(findings(data, kind)):
            if one.fix is not None and one.fix.applicability >= level:
                groups.setdefault(one.fix.group or str(index), set()).update(one.fix.edits)
        taken: list[Edit] = []
        for edits in groups.values():
            merged = sorted({*taken, *edits})
            if all(left.span.end <= right.span.start for left, right in itertools.pairwise(merged)):
                taken = merged
            else:
                own = sorted(edits)
                assert all(left.span.end <= right.span.start for left, right in itertools.pairwise(own))
        if not taken:
            return data.decode()
        data = apply(data, taken)
    raise AssertionError("the fixes do not come to an end")


# .env files


DOTENV = {
    "plain": ("A=1\nNCCL_TIMEOUT=5\nB=2\n", "A=1\nB=2\n"),
    "exported, with a comment": ("export NCCL_TIMEOUT='5'  # why\nB=2\n", "B=2\n"),
    "all of it": ("NCCL_TIMEOUT=5\nGLOO_TIMEOUT=5", ""),
    "comments above stay": ("# why\nNCCL_TIMEOUT=5\n", "# why\n"),
    "blanks around the sign": ("NCCL_TIMEOUT = 5\n", ""),
    "over several lines": ('NCCL_TIMEOUT="5\n6"\nA=1\n', "A=1\n"),
    "value in quotes": ('NCCL_DEBUG="INFO" # x\n', 'NCCL_DEBUG="WARN" # x\n'),
    "two words, which a shell takes apart": ("export NCCL_TIMEOUT=1 A=2\n", "export NCCL_TIMEOUT=1 A=2\n"),
    "default": ("NCCL_DEBUG=${LEVEL:-INFO}\n", "NCCL_DEBUG=${LEVEL:-WARN}\n"),
    "the last of two": ("NCCL_DEBUG=WARN\nNCCL_DEBUG=TRACE\n", "NCCL_DEBUG=WARN\nNCCL_DEBUG=WARN\n"),
}


@pytest.mark.parametrize(("text", "after"), DOTENV.values(), ids=DOTENV)
def test_fixes_of_an_env_file(text: str, after: str) -> None:
    assert fixed(text, Kind.DOTENV) == after
    assert validate_dotenv(text.encode(), after.encode()) is None


@pytest.mark.parametrize(
    "text",
    [
        "# NCCL_TIMEOUT=5\n",
        "MY_NCCL_TIMEOUT=5\n",
        "NCCL_DEBUG=INFO\nNCCL_DEBUG=WARN\n",
        "NCCL_DEBUG=$LEVEL\n",
        "NCCL_DEBUG='${X:-INFO}'\n",
        "NCCL_DEBUG\n",
        "NOTE=NCCL_DEBUG=INFO\n",
        "NCCL_TIMEOUT=5\nARGS=--timeout=$NCCL_TIMEOUT\n",
    ],
)
def test_an_env_file_that_is_fine(text: str) -> None:
    assert not found(text, Kind.DOTENV)


@pytest.mark.parametrize("name", [".env.test", "debug.env", ".env.debugging"])
def test_an_env_file_for_debugging_may_debug(name: str) -> None:
    assert not found("NCCL_DEBUG=INFO\n", Kind.DOTENV, name)
    assert found("NCCL_DEBUG=INFO\n", Kind.DOTENV, ".env.example")


@pytest.mark.parametrize("kind", [Kind.DOTENV, Kind.DOCKERFILE, Kind.YAML])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_bytes_around_an_edit_survive(kind: Kind, ending: str, bom: bytes) -> None:
    lines = {
        Kind.DOTENV: ["# été", "NCCL_TIMEOUT=5 # weg", 'NCCL_DEBUG="INFO"  # é', "A=ü"],
        Kind.DOCKERFILE: ["# été", "FROM x", "ENV NCCL_TIMEOUT=5", "ENV A=ü \\", '    NCCL_DEBUG="INFO"', "USER é"],
        Kind.YAML: ["# été", "env:", "  A: ü # é", "  NCCL_TIMEOUT: 5 # weg", '  NCCL_DEBUG: "INFO"  # é'],
    }[kind]
    after = [line.replace("INFO", "WARN") for line in lines if "NCCL_TIMEOUT" not in line]
    data = bom + "".join(line + ending for line in lines).encode()
    assert fixed(data, kind).encode() == bom + "".join(line + ending for line in after).encode()


# Dockerfiles


def test_instructions_keep_the_offsets_of_the_file() -> None:
    text = 'FROM a AS b\nENV A=1 \\\n  # c\n\n  B="2 3"\nRUN <<E\nENV C=1\nE\nCMD ["x", "y"]\n'
    source = Source.from_bytes("Dockerfile", text.encode(), Kind.DOCKERFILE)
    found = list(instructions.read(source))
    assert [one.keyword for one in found] == ["FROM", "ENV", "RUN", "CMD"]
    assert [(one.name, one.raw, text[one.start : one.end]) for one in instructions.pairs(found[1])] == [
        ("A", "1", "A=1"),
        ("B", '"2 3"', 'B="2 3"'),
    ]
    assert [text[start:end] for start, end in instructions.words(found[3]) or ()] == ["x", "y"]
    assert instructions.stage(found[0]) == ("a", "b")


DOCKERFILES = {
    "alone": ("ENV NCCL_TIMEOUT=5\nUSER a\n", "USER a\n"),
    "first": ("ENV NCCL_TIMEOUT=5 A=1\n", "ENV A=1\n"),
    "last": ("ENV A=1 NCCL_TIMEOUT=5\n", "ENV A=1\n"),
    "in the middle": ("ENV A=1 NCCL_TIMEOUT=5 B=2\n", "ENV A=1 B=2\n"),
    "first of several lines": ("ENV NCCL_TIMEOUT=5 \\\n    A=1\n", "ENV A=1\n"),
    "last of several lines": ("ENV A=1 \\\n    # why\n    NCCL_TIMEOUT=5\n", "ENV A=1\n"),
    "comment of the next one": (
        "ENV NCCL_TIMEOUT=5 \\\n    # of A\n    A=1\n",
        "ENV  \\\n    # of A\n    A=1\n",
    ),
    "two neighbours": ("ENV A=1 NCCL_TIMEOUT=5 GLOO_TIMEOUT=5 B=2\n", "ENV A=1 B=2\n"),
    "all of several": ("ENV NCCL_TIMEOUT=5 \\\n  GLOO_TIMEOUT=5\nUSER a\n", "USER a\n"),
    "old form": ("ENV NCCL_TIMEOUT 5\nUSER a\n", "USER a\n"),
    "old form, rewritten": ("ENV NCCL_DEBUG INFO\n", "ENV NCCL_DEBUG WARN\n"),
    "default of an argument": ("ARG L=INFO\nENV NCCL_DEBUG=$L\n", "ARG L=WARN\nENV NCCL_DEBUG=$L\n"),
    "other escape": (
        "# escape=`\nFROM x\nENV A=1 `\n    NCCL_DEBUG=INFO\n",
        "# escape=`\nFROM x\nENV A=1 `\n    NCCL_DEBUG=WARN\n",
    ),
    "exec form": (
        'CMD ["python3", "-m", "torch.distributed.launch", "--use_env", "t.py"]\n',
        'CMD ["python3", "-m", "torch.distributed.launch", "--use_env", "t.py"]\n',
    ),
    "shell form": (
        "CMD python -m torch.distributed.launch --use_env \\\n    t.py\n",
        "CMD torchrun \\\n    t.py\n",
    ),
    "code for a shell": (
        'CMD ["sh", "-c", "NCCL_DEBUG=INFO python t.py"]\n',
        'CMD ["sh", "-c", "NCCL_DEBUG=WARN python t.py"]\n',
    ),
}


@pytest.mark.parametrize(("text", "after"), DOCKERFILES.values(), ids=DOCKERFILES)
def test_fixes_of_a_dockerfile(text: str, after: str) -> None:
    head = "" if text.startswith("#") else "FROM x\n"
    assert fixed(head + text, Kind.DOCKERFILE) == head + after
    assert validate_dockerfile((head + text).encode(), (head + after).encode()) is None


@pytest.mark.parametrize(
    "text",
    [
        "FROM x\nRUN export NCCL_DEBUG=INFO && make\n",
        "FROM x\nARG NCCL_DEBUG=INFO\n",
        "FROM x\nENV NCCL_DEBUG=INFO\nENV NCCL_DEBUG=WARN\n",
        "FROM x\nENV NCCL_DEBUG=$LEVEL\n",
        "FROM x AS build\nENV NCCL_DEBUG=INFO\nFROM x\nCOPY --from=build /a /a\n",
        "FROM x AS debug\nENV NCCL_DEBUG=INFO\nFROM x\n",
        "FROM x\nENV NCCL_DEBUG=INFO\nCMD NCCL_DEBUG=WARN torchrun t.py\n",
        "FROM x\nRUN <<A cat <<B\nENV NCCL_DEBUG=INFO\nA\nENV NCCL_DEBUG=INFO\nB\n",
        "FROM x\nCOPY <<EOF /etc/nccl.conf\nENV NCCL_DEBUG=INFO\nEOF\n",
        "FROM x\nLABEL NCCL_DEBUG=INFO\n",
        "FROM vllm/vllm-openai:v0.9\nENV NCCL_P2P_DISABLE=1\n",
        'FROM x\nENV NCCL_P2P_DISABLE=1\nCMD ["python", "-m", "sglang.launch_server"]\n',
        'FROM x\nCMD ["echo", "python -m torch.distributed.launch"]\n',
        "FROM a AS one\nENV PYTORCH_ALLOC_CONF=a:1\nFROM a AS two\nENV PYTORCH_CUDA_ALLOC_CONF=a:2\n",
    ],
)
def test_a_dockerfile_that_is_fine(text: str) -> None:
    assert not found(text, Kind.DOCKERFILE)


def test_a_stage_that_builds_on_another_has_its_variables() -> None:
    text = "FROM a AS one\nENV PYTORCH_ALLOC_CONF=a:1\nFROM one\nENV PYTORCH_CUDA_ALLOC_CONF=a:2\n"
    assert found(text, Kind.DOCKERFILE) == ["conflicting-environment-alias"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"FROM x\n", b"FROM x\nRUN y\n"),
        (b'FROM x\nCMD ["a"]\n', b'FROM x\nCMD ["a]\n'),
        (b"FROM x\nENV A=1 B=2\n", b"FROM x\nENV A=1 B\n"),
        (b"FROM x\nENV A=1\n", b"FROM x\nENV\n"),
    ],
)
def test_a_broken_dockerfile_is_refused(before: bytes, after: bytes) -> None:
    assert validate_dockerfile(before, after)


def test_a_broken_env_file_is_refused() -> None:
    assert validate_dotenv(b"A=1\n", b"1\n")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Dockerfile-cuda", Kind.DOCKERFILE),
        ("train.dockerfile", Kind.DOCKERFILE),
        ("Dockerfile.md", None),
        ("my-dockerfile.yaml", Kind.YAML),
        (".deepspeed_env", Kind.DOTENV),
        (".env.example", Kind.DOTENV),
        (".envrc", None),
    ],
)
def test_kinds_by_name(name: str, kind: Kind | None) -> None:
    from pathlib import Path

    assert config_kind(Path(name)) is kind


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


@pytest.mark.parametrize(("text", "after"), YAML.values(), ids=YAML)
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


@pytest.mark.parametrize(
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
