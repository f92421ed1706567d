"""Which keys of which configurations Python reads, and where the values go."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from collected import for_every
from snippets import ROOT, argument

from ldlm_lint.checkers.configurations import own_keys
from ldlm_lint.discover import kind_of_name
from ldlm_lint.model import Finding
from ldlm_lint.project import QUESTIONS, Project, Verdict
from ldlm_lint.project.configured import TOPICS
from ldlm_lint.project.dead_keys import dead_paths
from ldlm_lint.project.questions import Context
from ldlm_lint.python.key_reads import reads_of
from ldlm_lint.source import Kind


def context(files: Mapping[str, str]) -> Context:
    """A project of Python, scripts and configurations, none of them on disk."""
    overlay = {f"{ROOT}/{name}": textwrap.dedent(text).encode() for name, text in files.items()}
    kinds = {path: kind_of_name(path) for path in overlay}
    python = [path for path, kind in kinds.items() if kind is Kind.PYTHON]
    others = {path: kind for path, kind in kinds.items() if kind not in (Kind.PYTHON, None)}
    return Context(Project(ROOT, python, overlay, None, others))


def ask(question: str, subject: str, files: Mapping[str, str], path: str, *keys: str | int) -> Verdict:
    """The answer to a claim about the entry at some keys of a configuration."""
    about = context(files)
    document = about.project.document(f"{ROOT}/{path}")
    assert document is not None
    entry = document.get(*keys)
    assert entry is not None
    return QUESTIONS[question](about, Finding("some-rule", "W7101", entry.whole), subject)


# What an expression reads


@for_every(
    "code, keys",
    [
        pytest.param("cfg = load()\ntarget(cfg.data.num_workers)", "data.num_workers", id="attributes"),
        pytest.param("cfg = load()\ntarget(cfg['data']['num_workers'])", "data.num_workers", id="subscripts"),
        pytest.param("cfg = load()\ntarget(cfg.data.get('num_workers', 8))", "data.num_workers", id="get"),
        pytest.param("cfg = load()\ntarget(getattr(cfg.data, 'num_workers', 8))", "data.num_workers", id="getattr"),
        pytest.param("cfg = load()\ntarget(OmegaConf.select(cfg, 'data.num_workers'))", "data.num_workers", id="select"),
        pytest.param("cfg = load()\ntarget(int(cfg.data.num_workers or 4))", "data.num_workers", id="cast-and-or"),
        pytest.param("cfg = load()\ndata = cfg.data\nn = data.num_workers\ntarget(n)", "data.num_workers", id="renamed"),
        pytest.param("cfg = load()\na, data = 1, cfg.data\ntarget(data.num_workers)", "data.num_workers", id="unpacked"),
        pytest.param("cfg = load()\ntarget(cfg.n if hasattr(cfg, 'n') else 4)", "n", id="presence-test"),
        pytest.param("trainer = make()\ntarget(trainer.config.data.n)", "data.n", id="held-by-an-object"),
        pytest.param("cfg = load()\nfor one in cfg.sets:\n    target(one.n)", "sets.*.n", id="element-of-a-list"),
        pytest.param("for one in sets():\n    target(one.n)", "*.n", id="element-of-something"),
        pytest.param("cfg = load()\ntarget(cfg.n // world)", None, id="arithmetic"),
        pytest.param("cfg = load()\ntarget(cfg.n if fast else 4)", None, id="another-condition"),
        pytest.param("cfg = load()\ntarget(min(cfg.n, count()))", None, id="unknown-bound"),
        pytest.param("import os\ntarget(os.environ.get('n'))", None, id="environment"),
        pytest.param("import settings\ntarget(settings.n)", None, id="module"),
        pytest.param("target(8)", None, id="constant"),
    ],
)
def test_the_keys_of_an_expression(code: str, keys: str | None) -> None:
    assert [".".join(one.keys) for one in reads_of(argument(code))] == ([keys] if keys else [])


def test_a_cap_is_told() -> None:
    (read,) = reads_of(argument("cfg = load()\ntarget(min(8, int(cfg.data.n)))"))
    assert (read.keys, read.cap) == (("data", "n"), 8)


def test_a_stored_configuration_leads_to_the_parameter() -> None:
    code = """
        class Trainer:
            def __init__(self, config):
                self.config = config
                self.data_cfg = config.data

            def one(self):
                target(self.data_cfg.n)
        """
    (read,) = reads_of(argument(code))
    assert (read.keys, read.scope, read.parameter) == (("data", "n"), "Trainer.__init__", "config")


# Where values go

LOADER = """
    from torch.utils.data import DataLoader

    def make(dataset, workers):
        return DataLoader(dataset, num_workers=workers)
    """
TRAIN = """
    import yaml
    from loaders import make

    def main(dataset):
        with open("train.yaml") as file:
            config = yaml.safe_load(file)
        for batch in make(dataset, config["data"]["num_workers"]):
            batch.backward()
    """
PROGRAM = {"loaders.py": LOADER, "train.py": TRAIN, "train.yaml": "data:\n  num_workers: 64\n"}


def origins(files: Mapping[str, str]) -> list[tuple[str, ...]]:
    about, topic = context(files), TOPICS["too-many-workers"]
    return [
        origin.keys
        for sink in about.reads.sinks(topic.sinks)
        for origin in about.reads.origins(sink, topic.parameter, topic.positional)
        if origin.maker is None
    ]


@for_every(
    "files, keys",
    [
        pytest.param({}, [("data", "num_workers")], id="through-a-function"),
        pytest.param(
            {"train.py": TRAIN.replace('make(dataset, config["data"]["num_workers"])', "make(dataset, **config['loader'])")},
            [("loader", "workers")],
            id="section-to-a-function",
        ),
        pytest.param(
            {"loaders.py": LOADER.replace("num_workers=workers", "**workers")}, [("data", "num_workers", "num_workers")], id="section"
        ),
        pytest.param({"loaders.py": LOADER.replace("num_workers=workers", "num_workers=4")}, [], id="constant"),
        pytest.param({"loaders.py": LOADER.replace("from torch.utils.data", "from mine")}, [], id="another-loader"),
        pytest.param({"tests/test_loaders.py": "from loaders import make\nmake(x, cfg.other)"}, [("data", "num_workers")], id="test"),
    ],
)
def test_the_keys_behind_an_argument(files: Mapping[str, str], keys: list[tuple[str, ...]]) -> None:
    assert origins(PROGRAM | files) == keys


WORKERS = ("configured-value-reaches-call", "too-many-workers")
SCRIPT = "#!/bin/bash\ntorchrun --nproc_per_node=8 train.py --config {}\n"
ARGUMENT = TRAIN.replace('open("train.yaml")', "open(args.config)").replace(
    "def main(dataset):", "import argparse\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--config')\n    args = parser.parse_args()\n\n    def main(dataset):"
)


@for_every(
    "files, path, expected",
    [
        pytest.param({}, "train.yaml", True, id="literal-path"),
        pytest.param({"train.py": TRAIN.replace("train.yaml", "other.yaml")}, "train.yaml", False, id="another-file"),
        pytest.param({"mkdocs/x.yaml": "data:\n  num_workers: 64\n"}, "mkdocs/x.yaml", False, id="unrelated"),
        pytest.param({"big.yaml": "data:\n  num_workers: 64\n"}, "big.yaml", True, id="beside-with-the-same-keys"),
        pytest.param({"big.yaml": "job:\n  data:\n    num_workers: 64\n"}, "big.yaml", False, id="beside-with-other-keys"),
        pytest.param({"results/train.yaml": "data:\n  num_workers: 64\n"}, "results/train.yaml", False, id="recorded"),
        pytest.param({"train.yaml": "val:\n  data:\n    num_workers: 64\n"}, "train.yaml", True, id="suffix"),
        pytest.param({"train.yaml": "sets:\n- data:\n    num_workers: 64\n"}, "train.yaml", False, id="element-of-a-list"),
        pytest.param({"train.py": ARGUMENT, "run.sh": SCRIPT.format("train.yaml")}, "train.yaml", True, id="named-by-a-launch"),
        pytest.param({"train.py": ARGUMENT}, "train.yaml", False, id="named-by-nobody"),
        pytest.param({"loaders.py": LOADER.replace("=workers", "=min(8, workers)")}, "train.yaml", False, id="capped"),
        pytest.param({"train.py": TRAIN.replace("batch.backward()", "print(batch)")}, "train.yaml", False, id="no-training"),
    ],
)
def test_a_number_of_workers_that_reaches_a_loader(files: Mapping[str, str], path: str, expected: bool) -> None:
    document = (PROGRAM | files)[path]
    keys: tuple[str | int, ...] = ("data", "num_workers")
    if document.startswith("sets"):
        keys = ("sets", 0, *keys)
    elif not document.startswith("data"):
        keys = (document.partition(":")[0], *keys)
    assert ask(*WORKERS, PROGRAM | files, path, *keys).holds is expected


HYDRA = """
    import hydra
    from loaders import make

    @hydra.main({}, version_base="1.3")
    def main(cfg):
        for batch in make(cfg.dataset, cfg.data.num_workers):
            batch.backward()
    """


@for_every(
    "arguments, path, text, expected",
    [
        pytest.param('config_path="conf", config_name="train"', "conf/train.yaml", "data: {num_workers: 64}", True, id="primary"),
        pytest.param('config_path="conf"', "conf/data/books.yaml", "num_workers: 64", True, id="group"),
        pytest.param('config_path="conf"', "conf/data/books.yaml", "# @package _global_\nnum_workers: 64", False, id="package"),
        pytest.param('config_path="conf"', "conf/x.yaml", "# @package data\nnum_workers: 64", True, id="package-of-a-key"),
        pytest.param('config_path="conf"', "conf/tokens/books.yaml", "num_workers: 64", False, id="another-group"),
        pytest.param('config_path="conf"', "other/train.yaml", "data: {num_workers: 64}", False, id="another-folder"),
        pytest.param('"conf", "train"', "conf/train.yaml", "data: {num_workers: 64}", True, id="positional"),
        pytest.param(
            'config_path=str(Path(__file__).parent.joinpath("a", "conf"))', "a/conf/t.yaml", "data: {num_workers: 64}", True, id="put-together"
        ),
        pytest.param('config_path="pkg://a.conf"', "conf/train.yaml", "data: {num_workers: 64}", False, id="package-path"),
        pytest.param("config_path=FOLDER", "conf/train.yaml", "data: {num_workers: 64}", False, id="unknown-folder"),
    ],
)
def test_folders_of_hydra(arguments: str, path: str, text: str, expected: bool) -> None:
    files = {"loaders.py": LOADER, "train.py": HYDRA.format(arguments), path: text}
    keys = ("num_workers",) if "data:" not in text else ("data", "num_workers")
    assert ask(*WORKERS, files, path, *keys).holds is expected


def test_a_later_file_of_a_composition_takes_the_place() -> None:
    files = {
        "loaders.py": LOADER,
        "train.py": HYDRA.format('config_path="conf", config_name="train"'),
        "conf/train.yaml": "defaults:\n  - data: books\n  - _self_\ndata:\n  num_workers: 4\n",
        "conf/data/books.yaml": "num_workers: 64\n",
    }
    assert not ask(*WORKERS, files, "conf/data/books.yaml", "num_workers").holds
    first = files | {"conf/train.yaml": "defaults:\n  - _self_\n  - data: books\ndata:\n  num_workers: 4\n"}
    assert ask(*WORKERS, first, "conf/data/books.yaml", "num_workers").holds


MODULE = """
    from torch.utils.data import DataLoader

    class Data:
        def __init__(self, num_workers=4):
            self.num_workers = num_workers

        def train(self):
            for batch in DataLoader(self.dataset, num_workers=self.num_workers):
                batch.backward()
    """
INSTANTIATED = """
    import hydra

    @hydra.main(config_path="conf", config_name="train", version_base="1.3")
    def main(cfg):
        hydra.utils.instantiate(cfg.data).train()
        loss.backward()
    """


@pytest.mark.parametrize(
    "text, keys, expected",
    [
        pytest.param("data: {_target_: books.Data, num_workers: 64}", ("data", "num_workers"), True, id="hydra"),
        pytest.param("data: {class_path: books.Data, init_args: {num_workers: 64}}", ("data", "init_args", "num_workers"), True, id="lightning"),
        pytest.param("data: {target: books.Data, params: {num_workers: 64}}", ("data", "params", "num_workers"), True, id="params"),
        pytest.param("data: {_target_: books.Other, num_workers: 64}", ("data", "num_workers"), False, id="another-class"),
        pytest.param("data: {num_workers: 64}", ("data", "num_workers"), False, id="no-class"),
    ],
)
def test_arguments_of_a_class_that_the_configuration_names(text: str, keys: tuple[str, ...], expected: bool) -> None:
    files = {"books.py": MODULE, "train.py": INSTANTIATED, "conf/train.yaml": text}
    assert ask(*WORKERS, files, "conf/train.yaml", *keys).holds is expected


# What takes the place of a value

ZERO = PROGRAM | {"train.yaml": "data:\n  num_workers: 0\n"}
OVERRIDES = {
    "train.py": """
    import sys
    import torch
    from omegaconf import OmegaConf
    from loaders import make

    def main(dataset):
        config = OmegaConf.merge(OmegaConf.load("train.yaml"), OmegaConf.from_cli(sys.argv[1:]))
        optimizer = torch.optim.RMSprop(dataset.model.parameters())
        for batch in make(dataset, config.data.num_workers):
            batch.backward()
            optimizer.step()

    if __name__ == "__main__":
        main(None)
    """
}


@for_every(
    "arguments, expected",
    [
        pytest.param([""], True, id="none"),
        pytest.param(["data.num_workers=8"], False, id="overridden"),
        pytest.param(["data.num_workers=$WORKERS"], False, id="overridden-by-something"),
        pytest.param(["data.num_workers=0"], True, id="the-same-again"),
        pytest.param(["val.num_workers=8"], True, id="another-key"),
        pytest.param(["data.num_workers=8", ""], True, id="by-one-of-two"),
    ],
)
def test_launches_that_give_another_value(arguments: list[str], expected: bool) -> None:
    scripts = {f"run{number}.sh": f"#!/bin/bash\ntorchrun train.py {one}\n" for number, one in enumerate(arguments)}
    files = ZERO | OVERRIDES | scripts
    assert ask("configured-value-reaches-call", "no-workers", files, "train.yaml", "data", "num_workers").holds is expected


def test_too_many_workers_are_told_with_the_launch_that_gives_fewer() -> None:
    script = {"run.sh": "#!/bin/bash\ntorchrun train.py data.num_workers=8\n"}
    verdict = ask(*WORKERS, PROGRAM | OVERRIDES | script, "train.yaml", "data", "num_workers")
    assert verdict.holds
    assert any(one.message == "this launch passes another value" for one in verdict.related)


FLAGS = """
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-workers", type=int, default=0)
    args = parser.parse_args()
    if __name__ == "__main__":
        print(args)
    """


@pytest.mark.parametrize(
    "commands, expected",
    [
        pytest.param([], True, id="no-launch"),
        pytest.param(["python train.py --num-workers 8"], False, id="another"),
        pytest.param(["python train.py --num-workers 0"], True, id="the-same"),
        pytest.param(["python train.py --num-workers 8", "python train.py"], True, id="one-leaves-it"),
        pytest.param(["python other.py"], True, id="another-program"),
    ],
)
def test_a_default_that_is_in_force(commands: list[str], expected: bool) -> None:
    files = {"train.py": FLAGS, "other.py": "print()"} | {f"run{n}.sh": f"#!/bin/bash\n{one}\n" for n, one in enumerate(commands)}
    kept = context(files).view.trainings.launches_keeping(f"{ROOT}/train.py", "num_workers", "0")
    assert (kept is not None) is expected


# Timeouts

GROUP = """
    import datetime
    import yaml
    import torch.distributed as dist

    config = yaml.safe_load(open("train.yaml"))
    dist.init_process_group("nccl", timeout=datetime.timedelta({}=config["timeout"]))
    """


@pytest.mark.parametrize(
    "unit, number, length",
    [
        pytest.param("seconds", 36000, "10 hours", id="seconds"),
        pytest.param("minutes", 600, "10 hours", id="minutes"),
        pytest.param("hours", 10, "10 hours", id="hours"),
        pytest.param("seconds", 7200, None, id="the-limit"),
        pytest.param("minutes", 100, None, id="in-minutes-it-is-short"),
    ],
)
def test_the_unit_of_a_timeout_stands_in_the_call(unit: str, number: int, length: str | None) -> None:
    files = {"train.py": GROUP.format(unit), "train.yaml": f"timeout: {number}\n"}
    verdict = ask("configured-timeout-is-excessive", "7200", files, "train.yaml", "timeout")
    assert verdict.holds is (length is not None)
    assert dict(verdict.args).get("length") == length


# Keys that nothing reads

READER = """
    import yaml
    with open("train.yaml") as file:
        config = yaml.safe_load(file)
    print(config["model"]["width"], config["run_name"])
    loss.backward()
    {}
    """


@for_every(
    "code, dead",
    [
        pytest.param("", True, id="nothing"),
        pytest.param("model = config['model']\nmodel['streams']", False, id="read"),
        pytest.param("# streams", True, id="comment"),
        pytest.param("build(config['model'])", False, id="section-handed-on"),
        pytest.param("print(config['model'])", True, id="section-printed"),
        pytest.param("build(**config['model'])", False, id="section-spread"),
        pytest.param("build(**config.model)", False, id="section-spread-as-an-attribute"),
        pytest.param("build(** model)", False, id="section-spread-by-its-name"),
        pytest.param("build(**model.parts, **submodel, **modeled)", True, id="something-else-spread"),
        pytest.param("for name in config['model'].items(): print(name)", False, id="section-gone-through"),
        pytest.param("model = config['model']\nmodel[name]", False, id="any-key-looked-up"),
        pytest.param("for name in config: setattr(args, name, config[name])", False, id="taken-over-by-name"),
    ],
)
def test_a_key_is_dead_where_no_code_speaks_of_it(code: str, dead: bool) -> None:
    text = READER.replace("{}", code.replace("\n", "\n    "))
    files = {"train.py": text, "train.yaml": "run_name: x\nmodel:\n  width: 3\n  streams: 2\n"}
    assert ask("configuration-key-is-dead", "", files, "train.yaml", "model", "streams").holds is dead


@pytest.mark.parametrize("first", ["train", "other"])
def test_what_one_program_hands_on_another_may_not(first: str) -> None:
    text = "run_name: x\nmodel:\n  width: 3\n  streams: 2\n"
    files = {"train.py": READER.format(""), "train.yaml": text, "other.yaml": text}
    files["other.py"] = READER.format("build(config['model'])").replace("train.yaml", "other.yaml")
    about = context(files)
    dead = {}
    for name in sorted(("train", "other"), key=lambda name: name != first):
        document = about.project.document(f"{ROOT}/{name}.yaml")
        assert document is not None
        dead[name] = ("model", "streams") in dead_paths(about, document)
    assert dead == {"train": True, "other": False}


@for_every(
    "text, keys",
    [
        pytest.param("model:\n  width: 3\n  _target_: a.B\n  streams: 2\n", ("model", "streams"), id="argument-of-a-class"),
        pytest.param("model:\n  streams: 2\n  width: ${model.streams}\n", ("model", "streams"), id="interpolated"),
        pytest.param("model:\n  width: 3\nhydra:\n  streams: 3\n", ("hydra", "streams"), id="of-hydra"),
        pytest.param("model:\n  - streams: 2\n", ("model", 0, "streams"), id="in-a-list"),
        pytest.param("model:\n  width: 3\n  a-b: 2\n", ("model", "a-b"), id="no-name"),
        pytest.param("base: &base {streams: 3}\nmodel: *base\n", ("base", "streams"), id="anchors"),
    ],
)
def test_keys_that_somebody_else_reads(text: str, keys: tuple[str | int, ...]) -> None:
    files = {"train.py": READER.format(""), "train.yaml": text}
    assert not ask("configuration-key-is-dead", "", files, "train.yaml", *keys).holds


def test_a_section_is_reported_at_its_top() -> None:
    files = {"train.py": READER.format(""), "train.yaml": "run_name: x\nmodel:\n  width: 3\nschedule:\n  warmup: 3\n"}
    assert ask("configuration-key-is-dead", "", files, "train.yaml", "schedule").holds
    assert not ask("configuration-key-is-dead", "", files, "train.yaml", "schedule", "warmup").holds


def test_a_file_that_no_program_reads_has_no_dead_keys() -> None:
    files = {"train.py": READER.format(""), "train.yaml": "model: 3\n", "other/site.yaml": "theme: dark\n"}
    assert not ask("configuration-key-is-dead", "", files, "other/site.yaml", "theme").holds


def test_every_topic_that_a_candidate_names_exists() -> None:
    rules = Path(own_keys.__file__).parents[1].glob("*/*.py")
    text = "".join(one.read_text(encoding="utf-8") for one in rules)
    named = set(re.findall(r'"configured-value-reaches-call", "([a-z-]+)"', text)) | {"no-workers"}
    assert named == set(TOPICS)
