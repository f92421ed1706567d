"""What the scanner reads: assignments with values and places, expansions, launchers; and that nothing stops it."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every
from hypothesis import example, given
from hypothesis import strategies as st

from ldlm_lint.checkers.scripts.lint import lint
from ldlm_lint.rules.settings import Origin
from ldlm_lint.shell import words
from ldlm_lint.shell.detect import is_shell
from ldlm_lint.shell.launchers import launcher_of
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.script import Assignment, Form, Reading, Script
from ldlm_lint.source import Kind, Source


def read(script: str) -> Script:
    return scan(Source.from_bytes("run.sh", script.encode(), Kind.SHELL))


def assignment(script: str) -> Assignment:
    (one,) = read(script).assignments
    return one


FORMS = {
    "A=1": (Form.PLAIN, False),
    "export A=1": (Form.DECLARED, True),
    "declare -x A=1": (Form.DECLARED, True),
    "declare -gx A=1": (Form.DECLARED, True),
    "typeset -x A=1": (Form.DECLARED, True),
    "declare A=1": (Form.DECLARED, False),
    "local A=1": (Form.DECLARED, False),
    "readonly A=1": (Form.DECLARED, False),
    "env A=1 cmd": (Form.ENV, True),
    "A=1 cmd": (Form.PREFIX, True),
    ': "${A:=1}"': (Form.DEFAULT, False),
    ": ${A:=1}; export A": (Form.DEFAULT, True),
}


@for_every(("script", "expected"), FORMS.items(), ids=FORMS)
def test_forms(script: str, expected: tuple[Form, bool]) -> None:
    one = assignment(script)
    assert (one.name, one.form, one.exported) == ("A", *expected)
    assert [value.text for value in one.values or ()] == ["1"]


VALUES = {
    "1800": ("1800", Origin.LITERAL, "1800"),
    "'18 00'": ("18 00", Origin.LITERAL, "18 00"),
    '"1800"': ("1800", Origin.LITERAL, "1800"),
    '18"00"': ("1800", Origin.LITERAL, '18"00"'),
    "a\\ b": ("a b", Origin.LITERAL, "a\\ b"),
    "": ("", Origin.LITERAL, ""),
    "${X:-1800}": ("1800", Origin.DEFAULT, "1800"),
    '"${X-1800}"': ("1800", Origin.DEFAULT, "1800"),
    '${X:-"1800"}': ("1800", Origin.DEFAULT, "1800"),
    "${X:-${Y:-1800}}": ("1800", Origin.DEFAULT, "1800"),
    "$((1 + 2 * 4))": ("9", Origin.LITERAL, "$((1 + 2 * 4))"),
}


@for_every(("raw", "expected"), VALUES.items(), ids=VALUES)
def test_values(raw: str, expected: tuple[str, Origin, str]) -> None:
    source = Source.from_bytes("é.sh", f"# é\nexport A={raw}\n".encode(), Kind.SHELL)
    (one,) = scan(source).assignments
    assert one.values is not None
    (value,) = one.values
    assert value.span is not None
    assert (value.text, value.origin, source.slice(value.span)) == expected
    assert source.slice(one.span) == f"A={raw}"


@for_every(
    "raw", ["$X", "$(date)", "`date`", "$((1+X))", "a$X", "(1 2)", "$'\\n'", "${X%.*}", "${X:-$Y}z"]
)
def test_unknown_values(raw: str) -> None:
    assert assignment(f"A={raw}\n").values is None


def test_appending_is_unknown() -> None:
    assert assignment("A+=1\n").values is None


def test_text_is_not_code() -> None:
    script = read("""
cat <<EOF
export A=$B
EOF
cat <<'EOF'
export A=$C
EOF
sed -i 's/export A=1/export A=2/' x.sh
echo "export A=1"
# export A=1
""")
    assert not script.assignments
    assert {one.name for one in script.expansions} == {"B", "C"}


READINGS = {
    "echo $A": Reading.PRINTED,
    'printf "%s" "${A}" >&2': Reading.PRINTED,
    'echo "$((A / 60))"': Reading.PRINTED,
    "echo $A > file": Reading.USED,
    "echo $(cmd $A)": Reading.USED,
    "A=${A:-1}": Reading.OWN,
    "cmd $A": Reading.USED,
    "B=$A": Reading.USED,
    "[[ -n ${A} ]]": Reading.USED,
    "bash -c 'cmd $A'": Reading.USED,
}


@for_every(("script", "reading"), READINGS.items(), ids=READINGS)
def test_what_an_expansion_is_for(script: str, reading: Reading) -> None:
    assert [one.reading for one in read(script).expansions if one.name == "A"] == [reading]


def test_a_word_that_tree_sitter_splits_is_read_whole() -> None:
    one, launch = assignment("OUT=$D/run-$N.d/x torchrun t.py\n"), read("OUT=$D/run-$N.d/x torchrun t.py\n").launches[0]
    assert one.span.end == len("OUT=$D/run-$N.d/x")
    assert [word.text for word in launch.words] == ["torchrun", "t.py"]
    assert {one.name for one in read("OUT=$D/run-$N.d/x torchrun t.py\n").expansions} == {"D", "N"}


def test_assignments_joined_by_a_backslash_end_with_their_line() -> None:
    script = read("A=1 \\\nB=2\ntorchrun t.py\n")
    assert [(one.form, one.exported) for one in script.assignments] == [(Form.PLAIN, False)] * 2
    assert script.launches[0].span.start == 10
    joined = read("A=1 \\\nB=2 \\\ntorchrun t.py\n")
    assert [(one.form, one.exported) for one in joined.assignments] == [(Form.PREFIX, True)] * 2
    assert joined.launches[0].span.start == 0


def test_arithmetic_does_not_change_the_number_of_words() -> None:
    script = "torchrun > log --nproc_per_node $((N / 2)) train.py\n"
    (launch,) = read(script).launches
    assert [word.text for word in launch.words] == ["torchrun", "--nproc_per_node", "$((N / 2))", "train.py"]
    assert words.mask_arithmetic("a $((1 + (2))) b") == "a xxxxxxxxxxxx b"


LAUNCHERS = {
    "torchrun t.py": "torchrun",
    "/opt/bin/torchrun t.py": "torchrun",
    "nohup env A=1 -u B torchrun t.py": "torchrun",
    "timeout -k 5 60 python3.11 -u -m torch.distributed.run t.py": "torch.distributed.run",
    "python -m torch.distributed.launch t.py": "torch.distributed.launch",
    "python -W ignore t.py": "python",
    "accelerate launch t.py": "accelerate",
    "accelerate config": None,
    "uv run deepspeed t.py": "deepspeed",
    "mpiexec -n 4 python t.py": "mpirun",
    "srun python t.py": "srun",
    "pip install python": None,
    "pythonize t.py": None,
    "env": None,
}


@for_every(("command", "launcher"), LAUNCHERS.items(), ids=LAUNCHERS)
def test_launchers(command: str, launcher: str | None) -> None:
    assert launcher_of(command.split()) == launcher


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_ends_and_continuations(ending: str) -> None:
    script = ending.join(
        ["export A=1", "torchrun \\", "  --x=$A \\", "  t.py", "cat <<EOF", "export B=1", "EOF", "C=2", ""]
    )
    source = Source.from_bytes("run.sh", script.encode(), Kind.SHELL)
    read_script = scan(source)
    assert [(one.name, source.slice(one.span)) for one in read_script.assignments] == [("A", "A=1"), ("C", "C=2")]
    assert [word.text for word in read_script.launches[0].words] == ["torchrun", "--x=$A", "t.py"]
    assert read_script.unseen == ()


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_continuation_at_the_end_of_a_script_ends_there(ending: str) -> None:
    script = read(ending.join(["torchrun t.py \\", "  --lr 1 \\", ""]))
    assert [word.text for word in script.launches[0].words] == ["torchrun", "t.py", "--lr", "1"]
    assert script.unseen == ()


def test_what_is_broken_is_counted_and_the_rest_is_read() -> None:
    script = read("export A=1\nif then ((\nexport B=2\n")
    assert "A" in {one.name for one in script.assignments}
    assert script.unseen == (1,)


def test_unset_names() -> None:
    assert read("unset A B\nunset -v C\n").unset == ("A", "B", "C")


_PIECES = st.sampled_from(
    [
        "export ",
        "A=1",
        "NCCL_TIMEOUT=",
        "$((",
        "))",
        "${A:-",
        "}",
        '"',
        "'",
        "`",
        "$(",
        ")",
        "<<EOF\n",
        "EOF\n",
        "\n",
        "\r\n",
        "\\",
        ";",
        "&&",
        "|",
        "if ",
        "then\n",
        "fi\n",
        "case x in a) ",
        ";; esac",
        "torchrun ",
        "env ",
        "# c",
        "é",
        ": ",
        "(",
    ]
)


@given(st.lists(_PIECES, max_size=25).map("".join))
@example("env A=1")
@example("export")
@example("NCCL_TIMEOUT=\\")
@example(": ${A:=")
def test_no_text_stops_the_scanner(script: str) -> None:
    source = Source.from_bytes("run.sh", script.encode(), Kind.SHELL)
    for finding in lint(source, {}).findings:
        assert 0 <= finding.span.start <= finding.span.end <= len(source.data)


@given(st.binary(max_size=200))
def test_no_bytes_stop_the_scanner(data: bytes) -> None:
    script = scan(Source("run.sh", data, Kind.SHELL))
    assert all(one.span.end <= len(data) for one in script.assignments)


def test_which_files_are_scripts() -> None:
    assert all(is_shell(Path(f"x{suffix}"), b"") for suffix in (".sh", ".bash", ".sbatch", ".slurm", ".SH"))
    assert is_shell(Path("train"), b"#!/usr/bin/env bash\n")
    assert is_shell(Path("train"), b"\xef\xbb\xbf#! /bin/sh -e\n")
    assert not is_shell(Path("train"), b"#!/usr/bin/env python3\n")
    assert not is_shell(Path("train.py"), b"#!/bin/bash\n")
    assert not is_shell(Path("Makefile"), b"all:\n")
