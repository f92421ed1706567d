"""What a launch is given is found out once, for that launch and the script that sets its variables."""

from __future__ import annotations

from ldlm_lint.shell.launch_arguments import arguments, written_words
from ldlm_lint.shell.launch_code import Code, codes
from ldlm_lint.shell.scanner import scan
from ldlm_lint.source import Kind, Source


def code_of(options: str) -> Code:
    text = f'OPTIONS="{options}"\ntorchrun train.py $OPTIONS --seed 1\n'
    source = Source("/p/run.sh", text.encode(), Kind.SHELL)
    return codes(source, scan(source))[0]


def given(code: Code, script: Code) -> list[tuple[str, str]]:
    return [(one.name, one.value) for one in arguments(script, code.script.launches[0])]


def test_it_is_told_again_for_the_same_launch_alone() -> None:
    code = code_of("--lr 1e-3")
    launch = code.script.launches[0]
    assert arguments(code, launch) is arguments(code, launch)
    assert written_words(code, launch) is written_words(code, launch)
    shorter = launch._replace(words=launch.words[:2])
    assert [one.text for one in written_words(code, shorter)] == ["torchrun", "train.py"]


def test_the_variables_are_those_of_the_script_that_is_named() -> None:
    one, other = code_of("--lr 1e-3"), code_of("--lr 3e-4 -v")
    assert given(one, one) == [("--lr", "1e-3"), ("--seed", "1")]
    assert given(one, other) == [("--lr", "3e-4"), ("--seed", "1")]
    assert given(one, one) == [("--lr", "1e-3"), ("--seed", "1")]
