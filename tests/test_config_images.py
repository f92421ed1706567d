"""Environment variables and commands in ``.env`` files and Dockerfiles."""

from __future__ import annotations

import pytest
from collected import for_every
from job_files import fixed, found

from ldlm_lint.autofix.validate_containers import validate_dockerfile, validate_dotenv
from ldlm_lint.configs import instructions
from ldlm_lint.configs.detect import config_kind
from ldlm_lint.source import Kind, Source

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


@for_every(("text", "after"), DOTENV.values(), ids=DOTENV)
def test_fixes_of_an_env_file(text: str, after: str) -> None:
    assert fixed(text, Kind.DOTENV) == after
    assert validate_dotenv(text.encode(), after.encode()) is None


@for_every(
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


@for_every("kind", [Kind.DOTENV, Kind.DOCKERFILE, Kind.YAML])
@for_every("ending", ["\n", "\r\n"])
@for_every("bom", [b"", b"\xef\xbb\xbf"])
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


@for_every(("text", "after"), DOCKERFILES.values(), ids=DOCKERFILES)
def test_fixes_of_a_dockerfile(text: str, after: str) -> None:
    head = "" if text.startswith("#") else "FROM x\n"
    assert fixed(head + text, Kind.DOCKERFILE) == head + after
    assert validate_dockerfile((head + text).encode(), (head + after).encode()) is None


@for_every(
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


@for_every(
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
