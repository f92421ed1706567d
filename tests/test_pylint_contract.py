"""What is borrowed from pylint and astroid exists and behaves as the code assumes.

Each test names the assumption; a new version of either that breaks one fails here, before users see it.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from astroid import nodes
from astroid.builder import AstroidBuilder
from astroid.const import Context
from astroid.exceptions import AstroidError, AstroidSyntaxError
from astroid.manager import AstroidManager
from pylint import extensions
from pylint.checkers import BaseChecker
from pylint.lint import PyLinter, Run
from pylint.lint.utils import augmented_sys_path
from pylint.reporters import CollectingReporter
from pylint.utils import FileState
from snippets import source

from ldlm_lint import engine, register
from ldlm_lint.checkers.queries import queries
from ldlm_lint.families import ALL_FAMILIES, UMBRELLAS
from ldlm_lint.pylint_host import switches
from ldlm_lint.pylint_host.checkers import EngineChecker, FamilyChecker
from ldlm_lint.pylint_host.messages import message_definitions
from ldlm_lint.python import tree
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.rules.linter import RULES


@pytest.fixture
def linter() -> PyLinter:
    found = PyLinter()
    found.load_default_plugins()
    register(found)
    return found


def parameters(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


def light(code: str) -> nodes.Module:
    """The tree that the light host walks."""
    module = tree.parse(source(code, "/x.py"), "contract").module
    assert module is not None
    return module


def test_builder_has_the_methods_that_light_trees_leave_out() -> None:
    assert parameters(AstroidBuilder.delayed_assattr) == ["self", "node"]
    assert parameters(AstroidBuilder.add_from_names_to_locals) == ["self", "node", "global_name"]
    assert parameters(AstroidBuilder.string_build) == ["self", "data", "modname", "path"]
    assert parameters(AstroidBuilder.__init__) == ["self", "manager", "apply_transforms"]


def test_light_trees_ask_for_no_transforms(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first build of a process prepares astroid's own picture of the builtins, with its brains.
    AstroidBuilder(AstroidManager(), apply_transforms=False)
    monkeypatch.setattr(AstroidManager, "visit_transforms", lambda self, node: pytest.fail("a brain was asked"))
    light("import dataclasses\n@dataclasses.dataclass\nclass C: ...\n")
    with pytest.raises(pytest.fail.Exception):
        AstroidBuilder(AstroidManager()).string_build("x = 1\n", modname="contract")
    AstroidManager().astroid_cache.pop("contract", None)


def test_builder_caches_under_the_module_name_and_the_cache_is_a_dictionary() -> None:
    cache = AstroidManager().astroid_cache
    module = AstroidBuilder(AstroidManager(), apply_transforms=False).string_build("x = 1\n", modname="contract")
    assert cache.pop("contract") is module
    assert AstroidManager().astroid_cache is cache


def test_syntax_errors_carry_pythons_own() -> None:
    with pytest.raises(AstroidSyntaxError) as caught:
        AstroidBuilder(AstroidManager()).string_build("x = 1\ny = = 2\n")
    assert isinstance(caught.value, AstroidError)
    assert isinstance(caught.value.error, SyntaxError)
    assert caught.value.error.lineno == 2


def test_nodes_have_the_fields_that_are_read() -> None:
    module = light("import a.b as c\nfrom ..d import e as f\nx: int = y['k'](*z, **w)\n")
    imported, from_, assigned = module.body
    assert imported.names == [("a.b", "c")]
    assert (from_.modname, from_.level, from_.names, from_.real_name("f")) == ("d", 2, [("e", "f")], "e")
    call = assigned.value
    assert isinstance(call.args[0], nodes.Starred)
    assert (call.keywords[0].arg, call.keywords[0].value.name) == (None, "w")
    assert (call.func.slice.value, call.func.ctx) == ("k", Context.Load)
    assert isinstance(assigned.target, nodes.AssignName)
    assert (call.lineno, call.col_offset, call.end_lineno, call.end_col_offset) == (3, 9, 3, 24)
    assert sorted(module.locals) == ["c", "f", "x"]


def test_headers_of_classes_and_functions_have_a_position() -> None:
    module = light("class C(B):\n    @d\n    async def f(self): ...\n")
    found = [module.body[0].position, module.body[0].body[0].position]
    assert [(one.lineno, one.col_offset, one.end_lineno, one.end_col_offset) for one in found] == [
        (1, 0, 1, 7),
        (3, 4, 3, 15),
    ]


def test_columns_count_bytes_and_no_byte_order_mark() -> None:
    linted = source("\ufeffx = 'é'; y = 1\n".encode())
    found = tree.parse(linted, "contract").module
    assert found is not None
    assert [one.col_offset for one in found.body] == [0, 10]


def test_dict_unpacking_and_comprehensions_are_told_by_their_classes() -> None:
    module = light("{**a, 'k': 1}\n[x for x in y]\n{k: v for k in y}\n")
    (stars, _), (key, _) = module.body[0].value.items
    assert isinstance(stars, nodes.DictUnpack)
    assert isinstance(key, nodes.Const)
    assert all(isinstance(one.value, nodes.ComprehensionScope) for one in module.body[1:])
    assert module.body[1].value.generators[0].target.name == "x"


def test_map_and_reduce_are_found_by_name() -> None:
    from pylint.lint import parallel

    text = inspect.getsource(parallel)
    assert "get_map_data" in text
    assert "reduce_map_data" in text
    assert parameters(BaseChecker.get_map_data) == ["self"]
    assert parameters(BaseChecker.reduce_map_data) == ["self", "linter", "data"]
    assert parameters(EngineChecker.reduce_map_data) == ["self", "linter", "data"]


def test_map_data_of_a_checker_that_was_never_opened(linter: PyLinter) -> None:
    assert EngineChecker(linter, {}).get_map_data() is not None


def test_names_of_checkers_are_unique_since_reduce_data_are_keyed_by_them(linter: PyLinter) -> None:
    names = [checker.name for checker in linter.get_checkers() if isinstance(checker, FamilyChecker)]
    assert sorted(names) == sorted((*UMBRELLAS.values(), ALL_FAMILIES))


def test_pylint_is_told_of_each_family_and_of_all_rules(linter: PyLinter) -> None:
    declared = {checker.name: checker.msgs for checker in linter.get_checkers() if isinstance(checker, FamilyChecker)}
    assert sorted(declared.pop(ALL_FAMILIES)) == sorted(code for messages in declared.values() for code in messages)
    assert declared == {
        name: message_definitions(rule for rule in ALL if rule.family == family) for family, name in UMBRELLAS.items()
    }


def test_a_message_is_of_its_family(linter: PyLinter) -> None:
    for rule in ALL:
        (definition,) = linter.msgs_store.get_message_definitions(rule.symbol)
        assert definition.checker_name == UMBRELLAS[rule.family]


def test_every_rule_asks_the_program_or_reads_scripts_and_configurations() -> None:
    asked = {symbol for query in queries() for symbol in query.symbols}
    assert asked.union(rule.symbol for rule in RULES) == by_symbol.keys()


def test_messages_on_any_file_and_line(linter: PyLinter, tmp_path: Path) -> None:
    """A fresh ``FileState`` lets a message of any file pass, also of one that is no module."""
    reporter = CollectingReporter()
    linter.set_reporter(reporter)
    linter.file_state = FileState("", linter.msgs_store, is_base_filestate=True)
    linter.set_current_module("run.sh", str(tmp_path / "run.sh"))
    linter.add_message("nccl-monitoring-disabled", line=7, col_offset=2, args=("`X=0` switches it off",))
    assert [(one.symbol, one.line, one.column, Path(one.abspath).name) for one in reporter.messages] == [
        ("nccl-monitoring-disabled", 7, 2, "run.sh")
    ]


def test_comments_of_a_file_are_kept_as_they_were_written(linter: PyLinter) -> None:
    """pylint judges by these whether a comment is of use; of our rules it cannot know."""
    linter.file_state = FileState("", linter.msgs_store, light("x = 1\ny = 2\n"))
    for name, enable in (("excessive-collective-timeout", False), ("eval-used", False)):
        linter._set_msg_status(name, enable, "module", 1)
    assert not switches.take_over(linter.file_state)
    useless = [args for name, _, args in linter.file_state.iter_spurious_suppression_messages(linter.msgs_store)]
    assert useless == [("'eval-used'",)]
    linter._set_msg_status("optimizer-not-fused", True, "module", 2)
    assert switches.take_over(linter.file_state)


def test_statistics_know_the_modules_that_did_not_parse(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = = 1\n")
    (tmp_path / "fine.py").write_text("x = 1\n")
    options = ["--rcfile=", "--disable=all", "--enable=E0001", "--persistent=n"]
    paths = [str(tmp_path / "broken.py"), str(tmp_path / "fine.py")]
    run = Run([*options, *paths], reporter=CollectingReporter(), exit=False)
    assert {"broken", "fine"} <= {name.rpartition(".")[2] for name in run.linter.stats.by_module}


def pylint(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(engine.__file__).parent.parent)}
    command = [sys.executable, "-m", "pylint", "--rcfile=", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def every_extension() -> list[str]:
    folder = Path(extensions.__file__).parent
    return [f"pylint.extensions.{path.stem}" for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]


def test_all_our_messages_are_listed_beside_every_extension(tmp_path: Path) -> None:
    """pylint refuses an id or a name that is used twice, and ids of one checker that differ in their family."""
    plugins = [name for name in every_extension() if name != "pylint.extensions._check_docs_utils"]
    done = pylint(f"--load-plugins=ldlm_lint,{','.join(plugins)}", "--list-msgs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = dict(re.findall(r"^:([\w-]+) \(([IRCWEF]\d{4})\)", done.stdout, re.M))
    assert {rule.symbol: rule.code for rule in ALL}.items() <= listed.items()
    assert not {code for name, code in listed.items() if name not in by_symbol} & {rule.code for rule in ALL}
    assert len(listed) > len(ALL) + 200


def test_families_are_ours_alone(linter: PyLinter) -> None:
    ours = {rule.family for rule in ALL}
    taken = {message.msgid[1:3] for message in linter.msgs_store.messages if message.symbol not in by_symbol}
    assert not ours & taken


def test_registering_twice_changes_nothing(linter: PyLinter) -> None:
    before = len(linter.get_checkers())
    register(linter)
    assert len(linter.get_checkers()) == before


def test_help_tells_why_and_where_to_read_on(tmp_path: Path) -> None:
    done = pylint("--load-plugins=ldlm_lint", "--help-msg=excessive-heartbeat-timeout", cwd=tmp_path)
    assert done.stdout.startswith(":excessive-heartbeat-timeout (W7201)") and "%" not in done.stdout
    assert "docs/rules/excessive-heartbeat-timeout.md" in "".join(done.stdout.split())


def test_opt_in_rules_are_off_in_pylint_too(linter: PyLinter) -> None:
    for rule in ALL:
        assert linter.is_message_enabled(rule.symbol) is rule.default, rule.symbol


def test_current_file_is_the_file_that_is_visited(tmp_path: Path) -> None:
    seen = []

    class Where(BaseChecker):
        name = "where"
        msgs = {"W9999": ("%s", "where", "where")}  # noqa: RUF012

        def visit_module(self, node: nodes.Module) -> None:
            seen.append((Path(self.linter.current_file).name, Path(node.file).name))

    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("y = 2\n")
    linter = PyLinter()
    linter.register_checker(Where(linter))
    linter.set_reporter(CollectingReporter())
    with augmented_sys_path([str(tmp_path)]):
        linter.check([str(tmp_path / "a.py"), str(tmp_path / "b.py")])
    assert seen == [("a.py", "a.py"), ("b.py", "b.py")]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_rule_that_is_enabled_alone_is_decided_over_the_project(tmp_path: Path, jobs: str) -> None:
    """pylint drops a checker without enabled messages; the project pass must not go with it."""
    files = {
        "pyproject.toml": "",
        "train.py": "import torch\n\n\ndef main(model, loader):\n    optimizer = torch.optim.AdamW(model.cuda().parameters())\n"
        "    for batch in loader:\n        model(batch).backward()\n        optimizer.step()\n",
        "run.sh": "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pylint", "--load-plugins=ldlm_lint", "--disable=all", f"-j{jobs}", "train.py"]
    for rule, place in (("optimizer-not-fused", "train.py:5"), ("excessive-heartbeat-timeout", "run.sh:1")):
        done = subprocess.run([*command, f"--enable={rule}"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert place in done.stdout, done.stdout + done.stderr
        assert done.stdout.count(rule) == 1
    silent = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "ldlm" not in silent.stdout


def test_what_stdin_holds_takes_the_place_of_the_file(tmp_path: Path) -> None:
    """As editors ask: the file on disk is older than the buffer."""
    for name in ("pyproject.toml", "train.py"):
        (tmp_path / name).write_text("")
    text = "# a comment\nfrom torch.utils.data import DataLoader\n\nloader = DataLoader([], prefetch_factor=4)\n"
    rule = "dataloader-worker-options-without-workers"
    command = [sys.executable, "-m", "pylint", "--load-plugins=ldlm_lint", "--disable=all", f"--enable={rule}"]
    for _ in range(2):
        done = subprocess.run(
            [*command, "--from-stdin", "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False, input=text
        )
        assert "train.py:4:9" in done.stdout and done.stdout.count(rule) == 1, done.stdout + done.stderr
        # What was typed is remembered as no content of the file.
        assert rule not in subprocess.run([*command, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False).stdout
