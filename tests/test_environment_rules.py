"""The NCCL rules on scripts: what they find, what they leave alone, and what their fixes leave behind."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from collected import for_every
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ldlm_lint.checkers.scripts.lint import lint
from ldlm_lint.model import Applicability, Confidence, Edit, Finding, Fix, Span
from ldlm_lint.rules import OPTIONS, environment_names
from ldlm_lint.rules.environment import RULES
from ldlm_lint.rules.environment_decisions import decide
from ldlm_lint.rules.settings import Setting, Value
from ldlm_lint.source import Kind, Source

BASH = shutil.which("bash")
FIXTURES = Path(__file__).parent / "fixtures"
SYMBOLS = [rule.symbol for rule in RULES]
DEFAULTS = {name: option.default for name, option in OPTIONS.items()}
HEARTBEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"


def findings(script: str | bytes, **options: int) -> list[Finding]:
    data = script if isinstance(script, bytes) else script.encode()
    named = {name.replace("_", "-"): value for name, value in options.items()}
    read = lint(Source.from_bytes("run.sh", data, Kind.SHELL), DEFAULTS | named).findings
    # What waits for another script is tested with the scripts that it waits for (test_sourcing).
    return [one for one in read if not any(claim.kind in ("heartbeat-is-inert-beside", "winner-differs-beside") for claim in one.claims)]


def found(script: str, **options: int) -> list[str]:
    return [finding.rule for finding in findings(script, **options)]


def fixes(script: str | bytes, level: Applicability) -> list[tuple[Edit, ...]]:
    """The fixes of a script's findings, those of one group as one."""
    grouped: dict[str, list[Edit]] = {}
    for index, finding in enumerate(findings(script)):
        if finding.fix is not None and finding.fix.applicability >= level:
            edits = grouped.setdefault(finding.fix.group or str(index), [])
            edits += [edit for edit in finding.fix.edits if edit not in edits]
    return [tuple(sorted(edits)) for edits in grouped.values()]


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    for edit in sorted(edits, reverse=True):
        data = data[: edit.span.start] + edit.text.encode() + data[edit.span.end :]
    return data


def disjoint(edits: Iterable[Edit]) -> bool:
    ordered = sorted(edits)
    return all(left.span.end <= right.span.start for left, right in itertools.pairwise(ordered))


def fixed(script: str | bytes, level: Applicability = Applicability.UNSAFE) -> str:
    """The script after rounds of fixes; every round and every single fix must leave valid bash."""
    data = script if isinstance(script, bytes) else script.encode()
    for _ in range(10):
        taken: list[Edit] = []
        for edits in fixes(data, level):
            assert disjoint(edits)
            assert_valid(apply(data, edits))
            if disjoint([*taken, *edits]):
                taken += edits
        if not taken:
            return data.decode()
        data = apply(data, taken)
        assert_valid(data)
    raise AssertionError("the fixes do not come to an end")


def assert_valid(data: bytes) -> None:
    if BASH is not None:
        done = subprocess.run([BASH, "-n"], input=data.replace(b"\r\n", b"\n"), capture_output=True, check=False)
        assert done.returncode == 0, f"{done.stderr.decode()}\n{data.decode()}"


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_fixture_findings_are_the_expected_ones(symbol: str) -> None:
    for path in sorted((FIXTURES / symbol).glob("*.sh")):
        source = Source.read(path, Kind.SHELL)
        expected = []
        for number, line in enumerate(source.lines, 1):
            comment = re.search(r"# expect: ([\w, -]+)$", line)
            expected += [(number, name.strip()) for name in comment[1].split(",")] if comment else []
        actual = [(source.position(one.span.start)[0], one.rule) for one in lint(source, DEFAULTS).findings]
        if path.name == "bad.sh":
            assert actual == expected
            assert symbol in {name for _, name in expected}
        if path.name == "good.sh":
            assert not actual


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_fixture_fixes_give_the_fixed_file(symbol: str) -> None:
    bad, after = (re.sub(r"[ \t]*# expect: .*", "", (FIXTURES / symbol / name).read_text()) for name in ("bad.sh", "bad.fixed.sh"))
    assert fixed(bad) == after


def test_the_message_tells_value_days_and_overflow() -> None:
    (finding,) = findings(f"{HEARTBEAT}=12000000\n")
    text = RULES[0].text(finding.args)
    assert "=12000000`" in text
    assert "138.9 days" in text
    assert "32-bit" in text
    assert finding.confidence is Confidence.HIGH


@pytest.mark.parametrize(("value", "overflows"), [("2147483", False), ("2147484", True)])
def test_overflow_starts_where_milliseconds_leave_int32(value: str, overflows: bool) -> None:
    (finding,) = findings(f"{HEARTBEAT}={value}\n")
    assert ("32-bit" in RULES[0].text(finding.args)) is overflows


def test_a_default_counts_with_medium_confidence_and_is_edited_in_place() -> None:
    script = f'{HEARTBEAT}="${{HEART:-12000000}}"\n'
    assert [one.confidence for one in findings(script)] == [Confidence.MEDIUM]
    assert fixed(script) == f'{HEARTBEAT}="${{HEART:-1800}}"\n'


def test_a_variable_counts_with_what_reaches_the_place() -> None:
    assert found(f"H=90000\n{HEARTBEAT}=$H\n") == ["excessive-heartbeat-timeout"]
    assert not found(f"H=90000\nH=60\n{HEARTBEAT}=$H\n")
    assert not found(f"H=90000\nread -r H\n{HEARTBEAT}=$H\n")
    assert not found(f"{HEARTBEAT}=$H\nH=90000\n")


def test_options_move_the_limit_and_the_replacement() -> None:
    assert not found(f"{HEARTBEAT}=9000\n", heartbeat_limit=9000)
    (finding,) = findings(f"{HEARTBEAT}=9001\n", heartbeat_limit=9000, heartbeat_timeout=60)
    assert finding.fix is not None
    assert [edit.text for edit in finding.fix.edits] == ["60"]
    (finding,) = findings(f"{HEARTBEAT}=9001\n", heartbeat_limit=9000, heartbeat_timeout=9500)
    assert finding.fix is None


BLOCK = f"""#!/bin/bash
{HEARTBEAT}=12000000   # never
export TORCH_NCCL_ENABLE_MONITORING='0'
export NCCL_BLOCKING_WAIT=1
export NCCL_DEBUG=WARN
export TORCH_NCCL_BLOCKING_WAIT=1  # both
torchrun train.py
"""


def test_the_block_is_one_unsafe_fix() -> None:
    assert fixed(BLOCK, Applicability.SAFE) == BLOCK
    marks = {(one.fix.group, one.fix.whole, one.fix.applicability) for one in findings(BLOCK) if one.fix}
    assert len(marks) == 1
    assert {mark[1:] for mark in marks} == {(True, Applicability.UNSAFE)}
    assert fixed(BLOCK) == (
        f"#!/bin/bash\n{HEARTBEAT}=1800   # never\nexport TORCH_NCCL_ENABLE_MONITORING='1'\n"
        "export NCCL_DEBUG=WARN\ntorchrun train.py\n"
    )


@pytest.mark.parametrize("heartbeat", ["$SITE", "$((10 * N))", "soon"])
def test_an_unknown_heartbeat_keeps_the_watchdog_as_it_is(heartbeat: str) -> None:
    script = f"{HEARTBEAT}={heartbeat}\nexport TORCH_NCCL_ENABLE_MONITORING=0\nexport TORCH_NCCL_BLOCKING_WAIT=1\n"
    fixes = {finding.rule: finding.fix for finding in findings(script)}
    assert {"nccl-monitoring-disabled", "nccl-blocking-wait"} <= fixes.keys()
    assert set(fixes.values()) == {None}


def test_an_accepted_heartbeat_that_overflows_keeps_the_watchdog_as_it_is() -> None:
    script = f"{HEARTBEAT}=3000000\nexport TORCH_NCCL_ENABLE_MONITORING=0\nexport TORCH_NCCL_BLOCKING_WAIT=1\n"
    assert [finding.fix for finding in findings(script, heartbeat_limit=4_000_000)] == [None, None, None]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_bytes_around_an_edit_survive(ending: str, bom: bytes) -> None:
    lines = [
        "# été",
        f'{HEARTBEAT}="12000000"  # é',
        "export NCCL_BLOCKING_WAIT=1 # weg",
        "export NCCL_TIMEOUT=1",
        "echo é",
    ]
    after = ["# été", f'{HEARTBEAT}="1800"  # é', "echo é"]
    script = bom + "".join(line + ending for line in lines).encode()
    assert fixed(script).encode() == bom + "".join(line + ending for line in after).encode()


REMOVALS = {
    "one-of-several": ("export A=1 TORCH_NCCL_BLOCKING_WAIT=1 B=2\n", "export A=1 B=2\n"),
    "both-of-two": ("export TORCH_NCCL_BLOCKING_WAIT=1 NCCL_BLOCKING_WAIT=1\nx\n", "x\n"),
    "both-of-three": ("export TORCH_NCCL_BLOCKING_WAIT=1 NCCL_BLOCKING_WAIT=1 A=1\n", "export A=1\n"),
    "prefix": ("A=1 TORCH_NCCL_BLOCKING_WAIT=1 torchrun t.py\n", "A=1 torchrun t.py\n"),
    "only-prefix": ("TORCH_NCCL_BLOCKING_WAIT=1 \\\n  torchrun t.py\n", "torchrun t.py\n"),
    "env": ("env TORCH_NCCL_BLOCKING_WAIT=1 torchrun t.py\n", "env torchrun t.py\n"),
    "declare": ("declare -x TORCH_NCCL_BLOCKING_WAIT=1\nx\n", "x\n"),
    "default": (
        ': "${TORCH_NCCL_BLOCKING_WAIT:=1}"\nexport TORCH_NCCL_BLOCKING_WAIT\nx\n',
        ': "${TORCH_NCCL_BLOCKING_WAIT:=0}"\nexport TORCH_NCCL_BLOCKING_WAIT\nx\n',
    ),
    "and-list": ("export TORCH_NCCL_BLOCKING_WAIT=1 && torchrun t.py\n", "torchrun t.py\n"),
    "end-of-and-list": ("cd x && export TORCH_NCCL_BLOCKING_WAIT=1\n", "cd x && export TORCH_NCCL_BLOCKING_WAIT=0\n"),
    "or-list": ("x || export TORCH_NCCL_BLOCKING_WAIT=1\n", "x || export TORCH_NCCL_BLOCKING_WAIT=0\n"),
    "semicolon": ("export TORCH_NCCL_BLOCKING_WAIT=1; torchrun t.py\n", "torchrun t.py\n"),
    "behind-semicolon": ("cd x; export TORCH_NCCL_BLOCKING_WAIT=1 # c\ny\n", "cd x # c\ny\n"),
    "only-in-block": (
        "if x; then\n  export TORCH_NCCL_BLOCKING_WAIT=1\nfi\n",
        "if x; then\n  export TORCH_NCCL_BLOCKING_WAIT=0\nfi\n",
    ),
    "all-in-block": (
        "f() { export TORCH_NCCL_BLOCKING_WAIT=1; export NCCL_TIMEOUT=5; }\n",
        "f() { export TORCH_NCCL_BLOCKING_WAIT=0; }\n",
    ),
    "neighbours-on-a-line": ("export TORCH_NCCL_BLOCKING_WAIT=1; export NCCL_BLOCKING_WAIT=1\nx\n", "\nx\n"),
    "one-line-block": ("if x; then export TORCH_NCCL_BLOCKING_WAIT=1; y; fi\n", "if x; then y; fi\n"),
    "case": (
        "case x in\n  a) export TORCH_NCCL_BLOCKING_WAIT=1 ;;\nesac\n",
        "case x in\n  a) export TORCH_NCCL_BLOCKING_WAIT=0 ;;\nesac\n",
    ),
    "read-back": (
        "set -u\nexport TORCH_NCCL_BLOCKING_WAIT=1\necho $TORCH_NCCL_BLOCKING_WAIT\n",
        "set -u\nexport TORCH_NCCL_BLOCKING_WAIT=0\necho $TORCH_NCCL_BLOCKING_WAIT\n",
    ),
    "two-rules-one-export": ("export NCCL_TIMEOUT=5 TORCH_NCCL_BLOCKING_WAIT=1\nx\n", "x\n"),
    "two-useless": ("export NCCL_TIMEOUT=5 GLOO_TIMEOUT=5\nx\n", "x\n"),
    "useless-alone-in-block": ("if x; then\n  export NCCL_TIMEOUT=5\nfi\n", "if x; then\n  :\nfi\n"),
    "useless-in-or-list": ("x || export NCCL_TIMEOUT=5\n", "x || :\n"),
    "end-without-newline": ("X=1\nexport TORCH_NCCL_BLOCKING_WAIT=1", "X=1\n"),
    "end-behind-a-command": ("x\nexport TORCH_NCCL_BLOCKING_WAIT=1\n", "x\nexport TORCH_NCCL_BLOCKING_WAIT=0\n"),
    "useless-end-behind-a-command": ("x\nexport NCCL_TIMEOUT=5\n", "x\n:\n"),
    "two-useless-at-the-end": ("x\nexport NCCL_TIMEOUT=5\nexport GLOO_TIMEOUT=5\n", "x\n:\n"),
    "useless-end-behind-a-setting": ("x\nexport A=1\nexport NCCL_TIMEOUT=5\n", "x\nexport A=1\n"),
    "status-is-asked-for": ("x\nexport NCCL_TIMEOUT=5\necho $?\n", "x\n:\necho $?\n"),
    "status-behind-a-list": ("x\nexport NCCL_TIMEOUT=5 && echo $?\n", "x\n: && echo $?\n"),
    "line-of-its-own": ("export A=1 \\\n  NCCL_TIMEOUT=5 \\\n  B=2\nx\n", "export A=1 \\\n  B=2\nx\n"),
    "last-of-a-continued-line": ("A=1 NCCL_TIMEOUT=5 \\\n  torchrun t.py\n", "A=1 \\\n  torchrun t.py\n"),
    "first-of-a-continued-line": ("A=1 \\\n  NCCL_TIMEOUT=5 torchrun t.py\n", "A=1 \\\n  torchrun t.py\n"),
    "prefix-of-a-keyword": ("NCCL_TIMEOUT=5 time torchrun t.py\n", "NCCL_TIMEOUT=5 time torchrun t.py\n"),
    "unset-would-fail": (
        "set -euo pipefail\nexport NCCL_TIMEOUT=5\necho $NCCL_TIMEOUT\n",
        "set -euo pipefail\nexport NCCL_TIMEOUT=5\necho $NCCL_TIMEOUT\n",
    ),
    "unset-has-a-default": (
        "set -u\nexport NCCL_TIMEOUT=5\necho ${NCCL_TIMEOUT:-}\n",
        "set -u\necho ${NCCL_TIMEOUT:-}\n",
    ),
    "must-be-set": ("export NCCL_TIMEOUT=5\nprintenv NCCL_TIMEOUT\n", "export NCCL_TIMEOUT=5\nprintenv NCCL_TIMEOUT\n"),
    "background": ("export NCCL_TIMEOUT=5 & x\n", ": & x\n"),
}


@for_every(("script", "after"), REMOVALS.values(), ids=REMOVALS)
def test_removal(script: str, after: str) -> None:
    assert fixed(script) == after


_STATEMENTS = st.sampled_from(
    [
        f"export {name}={value}"
        for name in ("NCCL_BLOCKING_WAIT", "NCCL_TIMEOUT", "GLOO_TIMEOUT")
        for value in ["1", "'1'"]
    ]
    + [
        f"{HEARTBEAT}=90000 NCCL_BLOCKING_WAIT=1 NCCL_TIMEOUT=1",
        "export NCCL_TIMEOUT=1 GLOO_TIMEOUT=2 NCCL_SOCKET_TIMEOUT=3",
        "export NCCL_TIMEOUT=1 > log",
        ': "${NCCL_TIMEOUT:=5}"',
        "GLOO_TIMEOUT=2 env NCCL_TIMEOUT=3 NCCL_BLOCKING_WAIT=1 torchrun t.py",
        "TORCH_NCCL_ENABLE_MONITORING=0 torchrun t.py",
        "export NCCL_TIMEOUT",
        "x # c",
    ]
)
_SCRIPTS = st.recursive(
    _STATEMENTS,
    lambda inner: st.one_of(
        st.builds("{}{}{}".format, inner, st.sampled_from(["\n", "; ", " && ", " || ", " | ", " && \\\n  "]), inner),
        st.builds("if x; then\n  {}\nelse\n{}\nfi".format, inner, inner),
        st.builds("f() {{\n{}\n}}".format, inner),
        st.builds("for i in 1; do {}\ndone".format, inner),
        st.builds("case x in\n  a) {}\n;;\nesac".format, inner),
        st.builds("( {}\n)".format, inner),
    ),
    max_leaves=6,
)


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=60, deadline=None)
@given(_SCRIPTS)
def test_fixed_scripts_stay_valid(script: str) -> None:
    done = subprocess.run([BASH, "-n"], input=script.encode(), capture_output=True, check=False)
    assume(done.returncode == 0)
    assert fixed(fixed(script)) == fixed(script)


SAFETY = {
    "plain": ("export NCCL_TIMEOUT=5\nx\n", Applicability.SAFE),
    "printed": ("export NCCL_TIMEOUT=5\necho $NCCL_TIMEOUT\n", Applicability.UNSAFE),
    "named": ("export NCCL_TIMEOUT=5\nmpirun -x NCCL_TIMEOUT python t.py\n", Applicability.UNSAFE),
    "only-in-block": ("if x; then export NCCL_TIMEOUT=5; fi\n", Applicability.UNSAFE),
    "runs-a-command": ("export NCCL_TIMEOUT=$(make)\nx\n", Applicability.UNSAFE),
    "last-of-script": ("x\nexport NCCL_TIMEOUT=5\n", Applicability.UNSAFE),
    "last-of-settings": ("x\nexport A=1\nexport NCCL_TIMEOUT=5\n", Applicability.SAFE),
    "listed": ("export NCCL_TIMEOUT=5\nenv | grep NCCL\n", Applicability.UNSAFE),
    "listed-by-prefix": ("export NCCL_TIMEOUT=5\nfor n in ${!NCCL_@}; do echo $n; done\n", Applicability.UNSAFE),
    "strict": ("set -e\nexport NCCL_TIMEOUT=5\nx\n", Applicability.SAFE),
}


@for_every(("script", "level"), SAFETY.values(), ids=SAFETY)
def test_safety_of_removing_a_useless_variable(script: str, level: Applicability) -> None:
    (finding,) = findings(script)
    assert finding.fix is not None
    assert finding.fix.applicability is level
    assert bool(finding.fix.reason) is (level is Applicability.UNSAFE)


@for_every(
    "use",
    [
        'torchrun t.py --timeout "$NCCL_TIMEOUT"',
        "T=$((NCCL_TIMEOUT * 2))",
        'echo "$NCCL_TIMEOUT" > timeout.txt',
        "cat > c.yaml <<EOF\ntimeout: $NCCL_TIMEOUT\nEOF",
        "bash -c 'torchrun t.py --timeout $NCCL_TIMEOUT'",
        "python - <<'EOF'\nimport os\nprint(os.environ.get('NCCL_TIMEOUT'))\nEOF",
    ],
)
def test_a_variable_that_the_script_uses_is_not_useless(use: str) -> None:
    assert not found(f"export NCCL_TIMEOUT=5\n{use}\n")


def test_a_useless_variable_waits_for_the_project() -> None:
    (finding,) = findings("export NCCL_TIMEOUT=5\n")
    assert [(claim.kind, claim.subject) for claim in finding.claims] == [
        ("environment-variable-unread", "NCCL_TIMEOUT"),
        ("variable-is-read-nowhere-else", "NCCL_TIMEOUT"),
    ]


@pytest.mark.parametrize("form", ["{}=1", "{}=1\nexport OTHER", "local {}=1", "export -n {}=1"])
def test_a_variable_of_the_shell_alone_is_silent(form: str) -> None:
    assert not found(form.format("NCCL_BLOCKING_WAIT") + "\n")


@pytest.mark.parametrize("form", ["set -a\n{}=1", "{}=1\nexport {}", "set -o allexport\n{}=1", "typeset -x {}=1"])
def test_a_variable_exported_elsewhere_counts(form: str) -> None:
    name = "TORCH_NCCL_BLOCKING_WAIT"
    assert found(form.format(name, name) + "\n") == ["nccl-blocking-wait"]


def test_names_next_to_real_ones() -> None:
    assert environment_names.misspelling_of("TORCH_NCCL_BLOCKING_WAITS") == "TORCH_NCCL_BLOCKING_WAIT"
    assert environment_names.misspelling_of("TORCH_NCCL_ASYNC_ERROR_HANDLNG") == "TORCH_NCCL_ASYNC_ERROR_HANDLING"
    assert environment_names.misspelling_of("TORCH_NCCL_SOMETHING_ELSE") is None


def test_a_variable_of_torch_without_its_prefix():
    assert environment_names.misspelling_of("NCCL_HEARTBEAT_TIMEOUT_SEC") == "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"
    assert environment_names.misspelling_of("NCCL_ASYNC_ERROR_HADNLING") == "TORCH_NCCL_ASYNC_ERROR_HANDLING"
    # Those that torch reads under their old names, and those of NCCL.
    old = ("NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG")
    assert not any(map(environment_names.misspelling_of, (*old, "NCCL_PROFILER_PLUGIN", "NCCL_COMM_BLOCKING", "NCCL_IB_TIMEOUT")))
    assert all(environment_names.why_ineffective(name) is None for name in environment_names.READ)


def test_decisions_without_an_editor_replace_values() -> None:
    """The way of the Python front end, whose values include their quotes."""
    span, place = Span("t.py", 0, 40), Span("t.py", 30, 33)
    setting = Setting("TORCH_NCCL_BLOCKING_WAIT", (Value("1", place, quote='"'),), span)
    (finding,) = decide([setting], {})
    assert finding.fix == Fix(
        "set TORCH_NCCL_BLOCKING_WAIT to 0",
        (Edit(place, '"0"'),),
        Applicability.UNSAFE,
        finding.fix.reason if finding.fix else "",
        "nccl-block:t.py:None",
        True,
    )
    (useless,) = decide([Setting("NCCL_TIMEOUT", None, span)], {})
    assert useless.fix is None
