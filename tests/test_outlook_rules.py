"""What a project rules out for a file by the claims of a rule, and by its functions; and what it must leave."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import engine
from ldlm_lint.checkers.host import lint as lint_python
from ldlm_lint.config import Config
from ldlm_lint.linting import lint_file
from ldlm_lint.project.outlook_of_files import CONDITIONS
from ldlm_lint.project.outlook_of_functions import OUTLOOKS
from ldlm_lint.project.questions import QUESTIONS
from ldlm_lint.projects import Projects
from ldlm_lint.requirements import TorchRange
from ldlm_lint.rules import ALL
from ldlm_lint.shapes.prospects import CLAIMS, PROSPECTS, Variant
from ldlm_lint.source import Kind, Source

FIXTURES = Path(__file__).parent / "fixtures"
EVERY_RULE = frozenset(rule.symbol for rule in ALL)


def test_tables_speak_of_what_there_is() -> None:
    assert CLAIMS.keys() <= EVERY_RULE
    assert PROSPECTS.keys() == OUTLOOKS.keys() <= CLAIMS.keys()
    assert CONDITIONS.keys() <= {kind for variants in CLAIMS.values() for one in variants for kind in one.claims} <= QUESTIONS.keys()


@for_every("symbol", sorted(CLAIMS))
def test_every_finding_makes_the_claims_that_it_is_ruled_out_by(symbol: str) -> None:
    found = 0
    for path in sorted((FIXTURES / symbol).rglob("*.py")):
        source = Source.read(path, Kind.PYTHON)
        for one in lint_python(source, path.stem, EVERY_RULE).findings:
            if one.rule == symbol:
                found += 1
                kinds = {claim.kind for claim in one.claims}
                assert any(variant.claims <= kinds and _worded(variant, source) for variant in CLAIMS[symbol]), (path, one.claims)
    assert found


def _worded(variant: Variant, source: Source) -> bool:
    return not variant.words or any(word in source.data for word in variant.words)


TRAIN = """\
import torch
from torch.nn.parallel import DistributedDataParallel
{imports}


def main(model, optimizer, data):
    torch.distributed.init_process_group("nccl")
    model = DistributedDataParallel(model.cuda())
    for step, batch in enumerate(data):
        loss = model(batch.cuda())
        loss.backward()
        optimizer.step()
        {inside}
    {behind}


if __name__ == "__main__":
    main(torch.nn.Linear(1, 1), None, [])
"""
HELPERS = {
    "evaluation-with-gradients": "def help(model, data):\n    for batch in data:\n        print(model(batch))\n",

}
EVALUATES = "from helpers import help\n\n\ndef test(model, data):\n    model.eval()\n    help(model, data)\n"


def made(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in {"pyproject.toml": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def findings(folder: Path) -> list[tuple[str, str]]:
    report = engine.run([folder], Config.load(folder), base=folder)
    return [(Path(one.span.path).name, one.rule) for one in report.findings]


def ruled_out(folder: Path, name: str) -> dict[str, tuple[str, ...]]:
    path, config = folder / name, Config.load(folder)
    projects = Projects([path.as_posix()], config, {})
    return dict(lint_file(path, Kind.PYTHON, config, {}, {}, projects.may_hold).ruled_out)


def helped(symbol: str, inside: str = "pass", behind: str = "pass", imports: str = "from helpers import help") -> dict[str, str]:
    train = TRAIN.format(imports=imports, inside=inside, behind=behind)
    return {"helpers.py": "import torch\n\n\n" + HELPERS[symbol], "train.py": train}


@pytest.mark.parametrize("symbol", sorted(PROSPECTS))
def test_functions_that_nobody_calls_are_left(symbol: str, tmp_path: Path) -> None:
    found = ruled_out(made(tmp_path, helped(symbol)), "helpers.py")
    assert found[symbol] == ("mode help",)


@pytest.mark.parametrize("symbol", sorted(PROSPECTS))
def test_functions_that_are_called_where_it_matters_are_looked_at(symbol: str, tmp_path: Path) -> None:
    folder = made(tmp_path, {**helped(symbol, inside="help(model, step)"), "evaluate.py": EVALUATES})
    assert symbol not in ruled_out(folder, "helpers.py")
    assert ("helpers.py", symbol) in findings(folder)


@pytest.mark.parametrize("symbol", sorted(HELPERS))
def test_files_that_no_training_uses_are_left_whole(symbol: str, tmp_path: Path) -> None:
    others = {"sample.py": "from helpers import help\n\nhelp(None, 3)\n", "train.py": TRAIN.format(imports="", inside="pass", behind="pass")}
    text = "import torch\n\n\n" + HELPERS[symbol].replace("loss.backward()", "print(loss)")
    assert symbol in ruled_out(made(tmp_path, {"helpers.py": text, **others}), "helpers.py")


def test_settings_of_a_framework_need_no_function(tmp_path: Path) -> None:
    text = "from transformers import Trainer, TrainingArguments\n\n\ndef main(model):\n    Trainer(model, TrainingArguments('out', save_strategy='steps')).train()\n"
    folder = made(tmp_path, {"train.py": text})
    assert ("train.py", "unbounded-checkpoints") in findings(folder)


PARTS = {
    "inside": ("pass", "help(model, step)", "if step == 3: help(model, step)", "again(model, step)"),
    "behind": ("pass", "model.eval()\n    help(model, data)", "model.train(False)\n    again(model, data)", "[help(model, one) for one in data]"),
    "imports": ("from helpers import help", "import helpers\nhelp = helpers.help", "from other import again\nfrom other import again as help", ""),
}
OTHER = "from helpers import help\n\n\ndef again(model, step):\n    help(model, step)\n"


def test_the_same_is_found_as_without_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over projects that are put together at random: calls in loops, behind them, through other files, under other names."""
    chosen = random.Random(8).sample(list(itertools.product(sorted(HELPERS), *PARTS.values())), 60)
    for number, (symbol, inside, behind, imports) in enumerate(chosen):
        folder = made(tmp_path / str(number), {**helped(symbol, inside, behind, imports), "other.py": OTHER, **({"evaluate.py": EVALUATES} if number % 2 else {})})
        asked = findings(folder)
        with monkeypatch.context() as patch:
            patch.setattr(Projects, "may_hold", lambda *_: True)
            assert asked == findings(folder), (symbol, inside, behind, imports)


@pytest.mark.parametrize("oldest, found", [((2, 5), True), ((2, 6), False), (None, True)])
def test_what_a_newer_torch_has_settled_is_left(oldest: tuple[int, int] | None, found: bool, tmp_path: Path) -> None:
    folder = made(tmp_path, {"load.py": "import torch\n\nstate = torch.load('last.pt')\n"})
    config = replace(Config.load(folder), target_torch=TorchRange(oldest, oldest), names_torch=oldest is not None)
    found_there = engine.run([folder / "load.py"], config, base=folder).findings
    assert any(one.rule == "checkpoint-load-unspecified" for one in found_there) is found
