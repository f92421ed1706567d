"""What is told of files by their text alone: traits, the sketch of who may call whom, and what they must not rule out."""

from __future__ import annotations

import pytest
from collected import for_every
from snippets import ROOT, context

from ldlm_lint.project.config_homes import _NAMES_FILES, _OPENS, _STARTS
from ldlm_lint.project.training import BACKWARD
from ldlm_lint.project.traits import Trait

CALLS = (
    *("loss.backward()", "engine.backward(loss)", "accelerator . backward (loss)", "self.manual_backward(loss)"),
    *("optimizer.zero_grad(set_to_none=True)", "engine.train_batch(batches)", "train_step(batch)", "training_epoch(1)"),
    *("self.train_one_epoch(x)", "train_step_fn(x)", "model.optimize_parameters()", "training_iteration\t(x)"),
)


@for_every("call", CALLS)
def test_the_text_shows_each_training_step_that_the_facts_show(call: str) -> None:
    project = context({"train.py": f"def step(x):\n    for batch in x:\n        {call}\n"}).project
    path = f"{ROOT}/train.py"
    assert project.functions(path)["step"].backward_lines
    assert list(project.showing(BACKWARD)) == [path]


@for_every(
    "trait, text",
    [
        *(
            (_OPENS, text)
            for text in (
                *(b"yaml.safe_load(f)", b"yaml.load(f)", b"OmegaConf.load(p)", b"json.load(f)", b"tomllib.load(f)", b"toml.loads(t)"),
                *(b"parse_yaml_file", b"parse_json_file", b"parse_args_into_dataclasses", b"HfArgumentParser", b"draccus", b"tyro"),
                *(b"pyrallis", b"jsonargparse", b"YAML()", b"Config.fromfile(p)", b"yacs"),
            )
        ),
        *((_NAMES_FILES, text) for text in (b'"a/b.yaml"', b"'b.yml'", b'"b.json"', b'"b.toml"')),
        *((_STARTS, text) for text in (b'if __name__ == "__main__":', b"@hydra.main()")),
    ],
)
def test_no_word_of_a_trait_hides_what_its_pattern_finds(trait: Trait, text: bytes) -> None:
    assert trait.pattern.search(text)
    assert trait.shows(text)


def test_a_trait_may_look_at_code_alone() -> None:
    text = b"x = 1  # loss.backward()\n"
    assert BACKWARD.shows(text)
    assert not Trait(BACKWARD.pattern, BACKWARD.words, code=True).shows(text)


def test_a_trait_is_looked_for_in_the_files_that_are_asked() -> None:
    project = context({"a.py": "loss.backward()", "b.py": "pass"}).project
    assert project.any_shows([f"{ROOT}/a.py", f"{ROOT}/b.py"], BACKWARD)
    assert not project.any_shows([f"{ROOT}/b.py"], BACKWARD)
    assert list(project.showing(BACKWARD)) == [f"{ROOT}/a.py"]


TRAIN = "def fit(x):\n    x.backward()\n\nclass Fitter:\n    def go(self, x):\n        fit(x)\n\ndef idle(x):\n    pass\n"


@for_every(
    "files, place, expected",
    [
        pytest.param({}, ("train.py", "fit"), True, id="itself"),
        pytest.param({}, ("train.py", "Fitter.go"), True, id="caller"),
        pytest.param({}, ("train.py", "idle"), False, id="neither"),
        pytest.param({"a.py": "from train import fit\ndef main(x):\n    fit(x)\n"}, ("a.py", "main"), True, id="import"),
        pytest.param({"a.py": "from train import fit as f\ndef main(x):\n    f(x)\n"}, ("a.py", "main"), True, id="renamed"),
        pytest.param({"a.py": "import train\ndef main(x):\n    train.fit(x)\n"}, ("a.py", "main"), True, id="module"),
        pytest.param({"a.py": "from train import Fitter\ndef main(x):\n    Fitter().go(x)\n"}, ("a.py", "main"), True, id="method"),
        pytest.param({"a.py": "from train import idle\ndef main(x):\n    idle(x)\n"}, ("a.py", "main"), False, id="another"),
        pytest.param(
            {"a.py": "from train import fit\ndef main(x):\n    text = '''\n'''; fit(\nx)\n"}, ("a.py", "main"), True, id="line-without-indentation"
        ),
    ],
)
def test_the_sketch_knows_who_may_come_to_a_training_step(files: dict[str, str], place: tuple[str, str], expected: bool) -> None:
    sketch = context({"train.py": TRAIN, **files}).calls.sketch
    assert sketch.may_come_to((f"{ROOT}/{place[0]}", place[1]), BACKWARD) is expected
