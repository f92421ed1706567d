"""What a variable may hold at a place of a script, and where it is written."""

from __future__ import annotations

from collected import for_every
from hypothesis import given
from hypothesis import strategies as st

from ldlm_lint.rules.settings import Origin, Value
from ldlm_lint.shell import arithmetic, templates
from ldlm_lint.shell.launch_arguments import arguments
from ldlm_lint.shell.launch_arguments import values as known_values
from ldlm_lint.shell.launch_code import codes
from ldlm_lint.shell.scanner import scan
from ldlm_lint.source import Kind, Source

# Each text ends where X is asked for.
REACHING = {
    "X=1": "1",
    "X=1; X=2": "2",
    "if a; then X=1; else X=2; fi": "1 2",
    "X=0; if a; then X=1; elif b; then X=2; else X=3; fi": "1 2 3",
    "X=0; if a; then X=1; fi": "0 1",
    "X=0; if a; then X=1; else exit 1; fi": "1",
    "X=0; case $1 in a) X=1 ;; b|c) X=2 ;; *) X=3 ;; esac": "1 2 3",
    "X=0; case $1 in a) X=1 ;; b) X=2 ;; *) echo usage; exit 1 ;; esac": "1 2",
    "X=0; case $1 in a) X=1 ;; b) X=2 ;; esac": "0 1 2",
    "for X in 1 '2' \"3\"; do": "1 2 3",
    "for X in {1..3}; do": "1 2 3",
    "A=(1 2); for X in \"${A[@]}\"; do": "1 2",
    "A='1 2'; for X in $A; do": "1 2",
    "A='1 2'; for X in \"$A\"; do": "1 2".replace(" ", "_"),
    "for X in *.yaml; do": None,
    "for X in $(ls); do": None,
    "for X; do": None,
    "X=1; read X": None,
    "X=1; printf -v X %d 3": None,
    "X=1; (( X += 1 ))": None,
    "X=1; let X++": None,
    "X=1; Y=$((X * 2))": "1",
    "X=1; unset X": None,
    "X=1; ( X=2 )": "1",
    "X=1; echo $(X=2)": "1",
    "X=1; cat f | while read l; do X=2; done": "1",
    "X=1; while a; do X=2; done": "1 2",
    "X=1; X=2 cmd": "1",
    "X=1; [ -z \"$A\" ] && X=2": "1 2",
    "f() { X=2; }; X=1; f": "2",
    "X=1; f() { X=2; }; X=3; g": "3",
    "f() { local X=2; }; X=1; f": "1",
    "f() { declare -g X=2; }; X=1; f": "2",
    "X=1; f() {": "1",
    "f() { X=1; }; f2() {": "1",
    "f() { X=$1; }; f 1; f 2": "2 1",
    "f() { X=$1; cmd; }; f 1; f $(date)": None,
    "f() { X=${2:-7}; }; f 1": "7",
    "f() { shift; X=$1; }; f 1 2": "2",
    "X=${1:-4}": "4",
    "X=$1": None,
    "X=8; X=${X:-16}": "8",
    "X=${X:-16}": "16",
    ": ${X:=16}": "16",
    "X=2; : ${X:=16}": "2",
    "X=; : ${X:=16}": "16",
    "A=2; X=$A": "2",
    "A=2; B=$A; X=\"${B}\"": "2",
    "X=$A; A=2": None,
    "A=2; X=$((A * 8))": "16",
    "A=2; X=$(( ${A} * 8 / 4 ))": "4",
    "A=2; X=$((A / 0))": None,
    "A=x; X=$((A * 8))": None,
    "A=2; X=\"${A}_x\"": "2_x",
    "A=2; X=a$A'b'": "a2b",
    "A=2; X=a'$A'": "a$A",
    "X=1; X+=2": "12",
    "X+=2": None,
    "A=1; A=2; X=$A": "2",
    "if a; then A=1; else A=2; fi; X=${A}0": "10 20",
    "X=$(nproc)": None,
    "X=`nproc`": None,
    "X=${A%.*}": None,
    "X=${A:-$(nproc)}": None,
    "X=(1 2)": None,
    "while a; do Y=$X; X=$Y; done": None,
    "X=1; for i in 1 2; do X=$((X * 2)); done": None,
    "declare -x X=1": "1",
    "typeset X=1": "1",
    "readonly X=1": "1",
    "set -a; X=1; set +a": "1",
}


def values(script: str, name: str = "X") -> tuple[Value, ...] | None:
    source = Source.from_bytes("run.sh", script.encode(), Kind.SHELL)
    return scan(source).variables.at(name, len(source.data))


@for_every(("script", "expected"), REACHING.items(), ids=REACHING)
def test_values_that_reach_the_end(script: str, expected: str | None) -> None:
    end = {"do": "done\n", " {": "}\n"}.get(script[-2:], "")
    source = Source.from_bytes("run.sh", f"{script}\n here\n{end}".encode(), Kind.SHELL)
    found = scan(source).variables.at("X", source.data.index(b" here"))
    if expected is None:
        assert not found
    else:
        assert found is not None
        assert sorted(value.text.replace(" ", "_") for value in found) == sorted(expected.split())


def test_a_place_sees_what_stands_before_it() -> None:
    script = "é=1\nX=1\ntorchrun a.py --n $X\nX=2\ntorchrun b.py --n $X\n"
    source = Source.from_bytes("run.sh", script.encode(), Kind.SHELL)
    read = scan(source)
    first, second = (launch.span.start for launch in read.launches)
    assert [value.text for value in read.variables.at("X", first) or ()] == ["1"]
    assert [value.text for value in read.variables.at("X", second) or ()] == ["2"]


def test_a_value_knows_the_assignment_that_spells_it() -> None:
    script = "# é\nA=${A:-16}\nB=$A\nexport X=$B\n"
    source = Source.from_bytes("run.sh", script.encode(), Kind.SHELL)
    (value,) = scan(source).variables.at("X", len(source.data)) or ()
    assert value.home is not None
    assert value.home_value is not None
    assert (source.slice(value.home), source.slice(value.home_value)) == ("A=${A:-16}", "16")
    assert value.origin is Origin.DEFAULT


def test_a_member_of_a_loop_knows_its_word() -> None:
    script = "for X in 1 16; do\ncmd\ndone\n"
    source = Source.from_bytes("run.sh", script.encode(), Kind.SHELL)
    found = scan(source).variables.at("X", script.index("cmd")) or ()
    assert [source.slice(value.home) for value in found if value.home] == ["1", "16"]


def test_what_only_a_branch_sets_may_come_from_outside() -> None:
    (value,) = values("if a; then X=1; fi\n") or ()
    assert value.origin is Origin.DEFAULT


def assigned(script: str) -> dict[str, tuple[list[str] | None, bool]]:
    source = Source.from_bytes("run.sh", script.encode(), Kind.SHELL)
    read = scan(source)
    return {
        one.name: (None if one.values is None else [value.text for value in one.values], one.exported)
        for one in read.assignments
    }


HANDED = {
    "env A=1 torchrun t.py": {"A": "1"},
    "nohup env -u B A=1 torchrun t.py": {"A": "1"},
    "srun env A=1 python t.py": {"A": "1"},
    "echo env A=1 cmd": {},
    "env A=1": {},
    "ENVS=(A=1 'B=x y' C)\nenv \"${ENVS[@]}\" torchrun t.py": {"A": "1", "B": "x y"},
    "ENVS=(A=1)\necho \"${ENVS[@]}\"": {},
    "mpirun -np 2 -x A=1 -x B python t.py": {"A": "1"},
    "OPTS=(-np 2 -x A=1)\nmpirun \"${OPTS[@]}\" python t.py": {"A": "1"},
    "python -x A=1": {},
    "srun --export=ALL,A=1,B=x python t.py": {"A": "1", "B": "x"},
    "srun --export ALL,A=1 python t.py": {"A": "1"},
    "srun --export=\"ALL,A=1\" python t.py": {"A": "1"},
    "X=7; sbatch --export=ALL,A=$X job.sh": {"A": "7"},
    "sbatch --export=ALL,A job.sh": {},
    "#!/bin/bash\n#SBATCH --export=ALL,A=1\n\npython t.py": {"A": "1"},
    "#!/bin/bash\npython t.py\n#SBATCH --export=ALL,A=1\n": {},
    "docker run -e A=1 --env B=2 --env=C=3 image": {"A": "1", "B": "2", "C": "3"},
    "sudo docker run -e \"A=1\" image": {"A": "1"},
    "docker build -t e A=1": {},
}


@for_every(("script", "expected"), HANDED.items(), ids=HANDED)
def test_variables_that_a_command_hands_over(script: str, expected: dict[str, str]) -> None:
    found = {name: one for name, one in assigned(script).items() if one[1] and name not in ("X", "ENVS", "OPTS")}
    assert found == {name: ([text], True) for name, text in expected.items()}


def test_set_a_exports_until_it_is_taken_back() -> None:
    found = assigned("A=1\nset -a\nB=1\nset +a\nC=1\nset -o allexport; D=1\n")
    assert [exported for _, exported in found.values()] == [False, True, False, True]


@for_every(
    ("raw", "expected"),
    [("a b", ("a b",)), ("'a'\"b\"\\c", ("abc",)), ('"\\a\\$"', ("\\a$",)), ("\"a'b'\"", ("a'b'",)), ("'a", None), ("$(a)", None), ("${a[0]}", None)],
)
def test_templates_without_variables(raw: str, expected: tuple[str, ...] | None) -> None:
    found = templates.expand(raw, lambda name: None)
    assert (None if found is None else tuple(one.text for one in found)) == expected


def test_too_many_values_are_unknown() -> None:
    script = "".join(f"case $1 in a) V{i}=1 ;; *) V{i}=2 ;; esac\n" for i in range(6)) + "X=$V0$V1$V2$V3$V4$V5\n"
    assert values(script) is None


def test_long_chains_end() -> None:
    assert values("X=1\n" + "X=${X}:a\n" * 3000) is None
    assert values("X0=1\n" + "".join(f"X{i + 1}=$X{i}\n" for i in range(500)) + "X=$X500\n") is not None


@for_every(
    ("text", "expected"), [("2*3+1", 7), ("7/2", 3), ("7%4", 3), ("1-2", None), ("a", None), ("2**40", None), ("(", None), ("1.5", None), ("$A*${A}", 25)]
)
def test_arithmetic(text: str, expected: int | None) -> None:
    assert arithmetic.evaluate(text, {"A": 5}.get) == expected


@given(st.text(alphabet="aX$(){}'\"\\:-`1 @*\n", max_size=30))
def test_no_word_stops_the_expansion(raw: str) -> None:
    templates.expand(raw, lambda name: (templates.Text("v", Origin.LITERAL),))


ARGUMENTS = {
    "A=(--x 1)\ntorchrun t.py \"${A[@]}\"": ["--x 1"],
    "A=(--x 1)\nA=(--y 2)\ntorchrun t.py \"${A[@]}\"": ["--y 2"],
    "A=(--x 1 # --z 3\n  # --z 3\n)\nA+=(--y 2)\ntorchrun t.py \"${A[@]}\"": ["--x 1", "--y 2"],
    "B=(--x 1)\nA=(\"${B[@]}\" --y 2)\ntorchrun t.py \"${A[@]}\"": ["--x 1", "--y 2"],
    "A='--x 1'\nA=\"$A --y 2\"\ntorchrun t.py $A": ["--x 1", "--y 2"],
    "A='--x 1'\nif a; then A+=' --y 2'; fi\ntorchrun t.py $A": ["--x 1", "--y 2"],
    "torchrun t.py $A\nA='--x 1'": [],
    "N=$(python -c 'print(8)')\nA=\"--n $N\"\ntorchrun $A t.py --x 1": ["--n None", "--x 1"],
    "X=1\nA=(--x \"$X\")\nX=2\ntorchrun t.py \"${A[@]}\"": ["--x 1"],
    "for x in 1 2; do torchrun t.py --x $x; done": ["--x 1 2"],
    "f() { torchrun t.py --x \"$1\"; }\nf 1\nf 2": ["--x 1", "--x 2"],
    "f() { local v=$1; torchrun t.py --x $v; }\nf 1\nf 2": ["--x 1 2"],
    "torchrun t.py --x ${X:-3}": ["--x 3"],
    "X=1\ntorchrun t.py --x ${X:-3}": ["--x 1"],
    "torchrun t.py --x $((2 * 4))": ["--x 8"],
    "X=2\ntorchrun t.py --x=${X}k": ["--x 2k"],
    "torchrun t.py --x $X": ["--x None"],
    "X=$1\ntorchrun t.py --x $X": ["--x None"],
}


@for_every(("script", "expected"), ARGUMENTS.items(), ids=ARGUMENTS)
def test_arguments_of_a_launch(script: str, expected: list[str]) -> None:
    source = Source.from_bytes("run.sh", script.encode(), Kind.SHELL)
    code = codes(source, scan(source))[0]
    found = []
    for launch in (one for one in code.script.launches if one.launcher == "torchrun"):
        for argument in arguments(code, launch):
            known = known_values(code, argument)
            found.append(f"{argument.name} {' '.join(one.text for one in known) if known else None}")
    assert found == expected


def test_a_value_of_an_argument_stands_where_it_is_written() -> None:
    script = "A=8\nB=$A\ntorchrun t.py --x $B --y $((A * 2)) --z 5\n"
    source = Source.from_bytes("run.sh", script.encode(), Kind.SHELL)
    code = codes(source, scan(source))[0]
    known = [one for argument in arguments(code, code.script.launches[0]) for one in known_values(code, argument) or ()]
    assert [source.slice(one.span) for one in known] == ["A=8", "--y $((A * 2))", "--z 5"]
    assert [one.assignment.name if one.assignment else None for one in known] == ["A", None, None]
    assert [source.slice(one.value_span) if one.value_span else None for one in known] == ["8", None, "5"]
