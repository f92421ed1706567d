"""Settings of training frameworks: their vocabularies, how files and commands are recognised, what is counted."""

from __future__ import annotations

import datetime

import pytest
from collected import for_every
from snippets import ROOT, ask, context

from ldlm_lint import tables
from ldlm_lint.checkers.configurations.settings import findings
from ldlm_lint.configs.read import read
from ldlm_lint.frameworks.documents import is_record, sections
from ldlm_lint.frameworks.sections import Section, Setting, vocabulary
from ldlm_lint.model import Finding, Span
from ldlm_lint.project import QUESTIONS, Project
from ldlm_lint.project.engines import checkpoints_activations, makes_optimizer
from ldlm_lint.project.frameworks import sets
from ldlm_lint.project.questions import Context
from ldlm_lint.source import Kind, Source
from ldlm_lint.vocabulary.kept_checkpoints import Schedule

TRAINER = "per_device_train_batch_size: 4\nnum_train_epochs: 8\nlr_scheduler_type: cosine\n"
FRAMEWORKS = ("transformers", "axolotl", "lightning", "deepspeed", "accelerate")


def source(text: str, name: str = "config.yaml", kind: Kind = Kind.YAML) -> Source:
    return Source.from_bytes(f"{ROOT}/{name}", text.encode(), kind)


def sections_of(text: str, name: str = "config.yaml") -> list[Section]:
    one = source(text, name, Kind.JSON if name.endswith(".json") else Kind.YAML)
    return list(sections(one, read(one)))


def found(text: str) -> set[str]:
    one = source(text)
    return {finding.rule for finding in findings(one, read(one), {})}


def test_the_vocabularies_are_dated_and_say_where_they_come_from() -> None:
    assert datetime.date.fromisoformat(tables.vocabularies_as_of()) <= datetime.date.today()
    for name in FRAMEWORKS:
        assert tables.vocabulary(name)["source"]
        assert tables.vocabulary(name)["read"]
        assert len(vocabulary(name).distinctive) >= vocabulary(name).needed
    with pytest.raises(KeyError):
        tables.vocabulary("no such framework")


def test_the_distinctive_names_of_transformers_are_fields_of_its_arguments() -> None:
    transformers = vocabulary("transformers")
    assert transformers.certain <= transformers.distinctive <= transformers.fields
    assert {"activation_checkpointing", "gradient_checkpointing", "ddp_static_graph"} <= transformers.fields
    assert set(transformers.defaults) <= transformers.fields


@for_every(
    "text, framework",
    [
        pytest.param(TRAINER, "transformers", id="trainer"),
        pytest.param(f"training:\n  {TRAINER.replace(chr(10), chr(10) + '  ').strip()}\n", "transformers", id="below-a-key"),
        pytest.param("base_model: m\nsequence_len: 8\nmicro_batch_size: 2\nnum_epochs: 3\n", "axolotl", id="axolotl"),
        pytest.param("per_device_train_batch_size: 4\nnum_train_epochs: 8\n", None, id="too-few"),
        pytest.param(TRAINER + "log_history: []\n", None, id="state-of-a-run"),
        pytest.param(TRAINER + "do_train: false\n", None, id="evaluation"),
        pytest.param(TRAINER + "do_predict: true\n", None, id="prediction"),
        pytest.param(TRAINER + "do_predict: true\ndo_train: true\n", "transformers", id="training-and-prediction"),
        pytest.param("model_type: gpt2\n" + TRAINER, None, id="configuration-of-a-model"),
        pytest.param(TRAINER + "max_train_steps: 10\n", None, id="loop-of-its-own"),
        pytest.param("gradient_accumulation_steps: 4\nnum_train_epochs: 8\nreport_to: none\n", None, id="names-that-others-share"),
        pytest.param("learning_rate: 1\nbatch_size: 2\nepochs: 3\nnum_workers: 0\n", None, id="own-keys"),
        pytest.param("$schema: https://x/job.json\n" + TRAINER, None, id="job-of-a-service"),
        pytest.param(f"inputs:\n  {TRAINER.replace(chr(10), chr(10) + '  ').strip()}\n", None, id="inputs-of-a-job"),
        pytest.param("- 1\n- 2\n", None, id="list"),
        pytest.param("", None, id="empty"),
    ],
)
def test_whose_settings_a_file_holds(text: str, framework: str | None) -> None:
    assert [one.framework for one in sections_of(text)] == ([framework] if framework else [])


def test_a_dump_of_all_arguments_is_no_configuration() -> None:
    everything = "".join(f"{name}: 1\n" for name in sorted(vocabulary("transformers").fields - {"_n_gpu"}))
    assert sections_of(everything) == []


@for_every(
    "path, record",
    [
        ("/p/wandb/run-1/files/config.yaml", True),
        ("/p/runs/checkpoint-500/config.yaml", True),
        ("/p/runs/trainer_state.json", True),
        ("/p/lightning_logs/version_0/hparams.yaml", True),
        ("/p/out/.hydra/config.yaml", True),
        ("/p/configs/wandb.yaml", False),
        ("/p/configs/checkpoints/full.yaml", False),
    ],
)
def test_what_runs_write_down_is_data(path: str, record: bool) -> None:
    assert is_record(path) is record


@for_every("number", [".inf", ".nan", "1e400", "-1", "0", "1e-320", "9" * 40, "[]", "{}", "''", "0x10", "true"])
@for_every(
    "key",
    ["save_steps", "max_steps", "num_train_epochs", "max_samples", "ddp_timeout", "dataloader_num_workers", "gradient_accumulation_steps"],
)
def test_odd_numbers_end_nothing(key: str, number: str) -> None:
    found(f"per_device_train_batch_size: 4\nlr_scheduler_type: x\nlogging_steps: 1\nwarmup_ratio: 0\n{key}: {number}\n")
    found(f"_target_: lightning.pytorch.strategies.DDPStrategy\ntimeout: {{_target_: datetime.timedelta, hours: {number}}}\n")
    found(f"_target_: torch.utils.data.DataLoader\nnum_workers: {number}\nprefetch_factor: {number}\n")
    found(f"_target_: lightning.pytorch.callbacks.ModelCheckpoint\nsave_top_k: {number}\nevery_n_epochs: {number}\n")


def section(**texts: str) -> Section:
    settings = {name: Setting(name, text, Span(f"{ROOT}/c.yaml", 0, 1)) for name, text in texts.items()}

    class Nothing:
        def replace(self, setting: object, value: object) -> None: ...

        def add(self, beside: object, name: str, value: object) -> None: ...

        def remove(self, setting: object) -> None: ...

    return Section("transformers", settings, Nothing())


def test_values_of_a_section() -> None:
    one = section(a="True", b="off", c="1_000", d="1e3", e="", f="auto", g="${x}", h="{{ y }}", i="steps", j="null")
    assert [one.flag(name) for name in "abefgi"] == [True, False, None, None, None, None]
    assert [one.number(name) for name in "cdefgh"] == [1000, 1000, None, None, None, None]
    assert [one.text(name) for name in "ijgz"] == ["steps", None, None, None]
    assert one.has("g")
    assert not one.has("e", "j", "z")
    assert one.on("a", "z")
    assert not one.on("b", "e", "z")


@for_every(
    "schedule, count, harmless",
    [
        pytest.param(Schedule(), None, False, id="defaults"),
        pytest.param(Schedule(every=100, steps=10000), 100, False, id="steps"),
        pytest.param(Schedule(every=500, steps=1000), 2, True, id="a-handful"),
        pytest.param(Schedule(every=500, steps=100), 0, True, id="never"),
        pytest.param(Schedule(every=0.1), 10, False, id="share-of-all-steps"),
        pytest.param(Schedule(every=0.25), 4, True, id="few-shares"),
        pytest.param(Schedule("epoch", epochs=20), 20, False, id="epochs"),
        pytest.param(Schedule("epoch", epochs=2.5), 3, True, id="few-epochs"),
        pytest.param(Schedule("epoch", steps=1000, epochs=None), None, False, id="epochs-and-steps"),
        pytest.param(Schedule("epoch", epochs=None), None, False, id="unknown-epochs"),
        pytest.param(Schedule("epoch", epochs=0), 0, True, id="no-epochs"),
        pytest.param(Schedule(epochs=0), None, True, id="steps-of-no-epochs"),
        pytest.param(Schedule(every=0, steps=10), None, True, id="every-0-steps"),
        pytest.param(Schedule(every=-5, steps=10), None, True, id="every-minus-5-steps"),
        pytest.param(Schedule("no"), None, True, id="no"),
        pytest.param(Schedule("best"), None, True, id="best"),
        pytest.param(Schedule(None), None, True, id="unknown-strategy"),
        pytest.param(Schedule(every=None), None, True, id="unknown-steps"),
        pytest.param(Schedule(most_steps=400), None, True, id="few-samples"),
        pytest.param(Schedule(most_steps=100000), None, False, id="many-samples"),
        pytest.param(Schedule(steps=-1), None, False, id="no-limit-of-steps"),
    ],
)
def test_how_many_checkpoints_are_kept(schedule: Schedule, count: int | None, harmless: bool) -> None:
    assert schedule.count == count
    assert schedule.harmless is harmless


@pytest.mark.parametrize(
    "schedule, text",
    [
        (Schedule(every=100, steps=10000), "keeps all 100 checkpoints of this run (10000 steps, one every 100)"),
        (Schedule(every=500, epochs=8), "keeps every checkpoint it writes (one every 500 steps of 8 epochs)"),
        (Schedule("epoch", epochs=20), "keeps all 20 checkpoints of this run (one per epoch)"),
        (Schedule(every=0.1), "keeps all 10 checkpoints of this run (one every 10.0% of the steps)"),
        (Schedule(epochs=None), "keeps every checkpoint it writes (one every 500 steps)"),
    ],
)
def test_what_is_said_of_them(schedule: Schedule, text: str) -> None:
    assert schedule.described == text


@for_every(
    "code, given",
    [
        pytest.param("TrainingArguments(save_total_limit=3)", True, id="keyword"),
        pytest.param("arguments.save_total_limit = 3", True, id="attribute"),
        pytest.param("kwargs['save_total_limit'] = 3", True, id="key"),
        pytest.param("parser.add_argument('--save_total_limit')", True, id="option"),
        pytest.param("save_total_limit: int = 3", True, id="field"),
        pytest.param("save_total_limit: int = field(default=3)", True, id="field-with-default"),
        pytest.param("save_total_limit: int | None = None", False, id="field-without-value"),
        pytest.param("save_total_limit: int | None = field(default=None)", False, id="field-with-none"),
        pytest.param("if args.save_total_limit is not None: ...", False, id="read"),
        pytest.param("if args.save_total_limit == 3: ...", False, id="compared"),
        pytest.param("# save_total_limit=3", False, id="comment"),
        pytest.param("old_save_total_limit = 3", False, id="longer-name"),
        pytest.param("x = 1", False, id="nothing"),
    ],
)
def test_code_that_sets_a_setting(code: str, given: bool) -> None:
    assert sets(code.encode(), "save_total_limit") is given


READS = "from transformers import HfArgumentParser, TrainingArguments\nfrom transformers import Trainer\n\n(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\nTrainer(args=arguments).train()\n"


@for_every(
    "files, reader, expected",
    [
        pytest.param({"train.py": READS}, "transformers", True, id="python-speaks-of-it"),
        pytest.param({"train.py": "x = 1"}, "transformers", False, id="python-does-not"),
        pytest.param({"tests/test_train.py": READS}, "transformers", False, id="only-a-test"),
        pytest.param({}, "llamafactory", True, id="keys-of-one-tool"),
        pytest.param({}, "axolotl", True, id="keys-of-another-tool"),
        pytest.param({"other/train.py": READS}, "transformers", True, id="elsewhere"),
        pytest.param({"train.py": "# TrainingArguments"}, "transformers", False, id="comment"),
    ],
)
def test_who_reads_a_configuration(files: dict[str, str], reader: str, expected: bool) -> None:
    assert ask("trainer-reads-configuration", files, reader, at="config.yaml").holds is expected


def test_the_nearest_training_decides() -> None:
    own = {"a/train.py": "loss.backward()\n", "b/train.py": READS}
    assert not ask("trainer-reads-configuration", own, "transformers", at="a/configs/config.yaml").holds
    assert ask("trainer-reads-configuration", own, "transformers", at="b/configs/config.yaml").holds
    assert ask("trainer-reads-configuration", own, "transformers", at="configs/config.yaml").holds


@for_every(
    "files, entry, expected",
    [
        pytest.param({"src/train.py": READS}, "train.py", True, id="by-name"),
        pytest.param({"src/train.py": READS}, "src/train.py", True, id="by-path"),
        pytest.param({"pkg/train.py": READS}, "pkg.train", True, id="module"),
        pytest.param({"train.py": "import arguments", "arguments.py": READS}, "train.py", True, id="imported"),
        pytest.param({"train.py": "x = 1"}, "train.py", False, id="something-else"),
        pytest.param({"a/train.py": READS, "b/train.py": "x = 1"}, "train.py", False, id="two-of-that-name"),
        pytest.param({}, "train.py", False, id="not-of-the-project"),
    ],
)
def test_what_a_launch_runs(files: dict[str, str], entry: str, expected: bool) -> None:
    assert ask("launch-runs-trainer", files, entry, at="run.sh").holds is expected


@pytest.mark.parametrize(
    "files, expected",
    [
        pytest.param({"train.py": "import torch"}, True, id="nobody"),
        pytest.param({"train.py": "args.save_total_limit = 2"}, False, id="python"),
        pytest.param({"tests/test_it.py": "args.save_total_limit = 2"}, True, id="a-test"),
    ],
)
def test_who_else_sets_a_setting(files: dict[str, str], expected: bool) -> None:
    assert ask("trainer-setting-is-unset", files, "save_total_limit", at="config.yaml").holds is expected


MAKES = "import hydra\noptimizer = hydra.utils.instantiate(config)\nmodel.cuda()\nloss.backward()\n"


@pytest.mark.parametrize(
    "files, expected",
    [
        pytest.param({"train.py": MAKES}, True, id="cuda"),
        pytest.param({"train.py": MAKES.replace("model.cuda()\n", "")}, False, id="cpu"),
        pytest.param({"train.py": MAKES.replace("hydra.utils.instantiate", "make")}, False, id="nobody-makes-it"),
        pytest.param({"train.py": "import lightning\n" + MAKES}, False, id="lightning"),
        pytest.param({"train.py": MAKES + "deepspeed.initialize(model)\n"}, False, id="deepspeed"),
    ],
)
def test_where_an_optimizer_of_a_configuration_trains(files: dict[str, str], expected: bool) -> None:
    assert ask("made-optimizer-trains-on-cuda", files, "AdamW", at="optimizer.yaml").holds is expected


def test_lightning_is_told_by_its_import() -> None:
    assert ask("project-uses-lightning", {"train.py": "import lightning as L\n"}, "", at="c.yaml").holds
    assert ask("project-uses-lightning", {"train.py": "from pytorch_lightning import Trainer\n"}, "", at="c.yaml").holds
    assert not ask("project-uses-lightning", {"train.py": "import lightning_uq\n"}, "", at="c.yaml").holds


def engine(text: str):
    return read(source(text, "engine.yaml"))


@for_every(
    "text, makes, recomputes",
    [
        pytest.param("optimizer: {type: AdamW}", True, False, id="described"),
        pytest.param("zero_optimization: {offload_optimizer: {device: cpu}}", True, False, id="on-the-cpu"),
        pytest.param("zero_optimization: {offload_optimizer: {device: none}}", False, False, id="not-on-the-cpu"),
        pytest.param("deepspeed_config: {offload_optimizer_device: nvme}", True, False, id="accelerate"),
        pytest.param("activation_checkpointing: {partition_activations: true}", False, True, id="deepspeed-recomputes"),
        pytest.param("fsdp_config: {fsdp_activation_checkpointing: true}", False, True, id="fsdp-recomputes"),
        pytest.param("fsdp_config: {fsdp_activation_checkpointing: false}", False, False, id="fsdp-does-not"),
        pytest.param("zero_optimization: {stage: 2}", False, False, id="neither"),
    ],
)
def test_duties_that_an_engine_takes_over(text: str, makes: bool, recomputes: bool) -> None:
    assert makes_optimizer(engine(text)) is makes
    assert checkpoints_activations(engine(text)) is recomputes


@for_every(
    "text, rules",
    [
        pytest.param("timeout: 36000\n", set(), id="another-key"),
        pytest.param(TRAINER + "save_strategy: no\nddp_timeout: 36000\n", {"excessive-collective-timeout"}, id="timeout"),
        pytest.param(TRAINER + "save_strategy: no\nddp_timeout: auto\n", set(), id="left-to-the-framework"),
        pytest.param(TRAINER + "save_strategy: no\nddp_timeout: [36000]\n", set(), id="a-list"),
        pytest.param(
            TRAINER + "save_strategy: no\nddp_static_graph: true\ngradient_accumulation_steps: 4\n",
            {"static-graph-with-no-sync", "gradient-accumulation-fixed"},
            id="static-graph",
        ),
        pytest.param(TRAINER, {"unbounded-checkpoints"}, id="no-limit"),
    ],
)
def test_candidates_of_a_file(text: str, rules: set[str]) -> None:
    assert found(text) == rules


def test_a_project_without_launches_overrides_nothing() -> None:
    project = context({"train.py": READS})
    assert project.launches.of_config(f"{ROOT}/config.yaml") == ()


def launched(**files: str):
    """The answers about a file ``config.yaml`` of a project with this script and this Python."""
    texts = {"train.py": READS + "HfArgumentParser(TrainingArguments).parse_yaml_file('config.yaml')\n", "config.yaml": TRAINER, **files}
    overlay = {f"{ROOT}/{name}": text.encode() for name, text in texts.items()}
    kinds = {".sh": Kind.SHELL, ".yaml": Kind.YAML}
    others = {path: kinds[path[path.rfind(".") :]] for path in overlay if not path.endswith(".py")}
    project = Project(ROOT, [path for path in overlay if path.endswith(".py")], overlay, None, others)
    found = Finding("some-rule", "W7101", Span(f"{ROOT}/config.yaml", 0, 0))
    return lambda kind, subject="": QUESTIONS[kind](Context(project), found, subject)


@pytest.mark.parametrize(
    "scripts, holds, shown",
    [
        pytest.param(["--dataloader_num_workers 4"], False, 0, id="the-only-launch"),
        pytest.param(["--dataloader_num_workers 4", ""], True, 1, id="one-of-two"),
        pytest.param(["", ""], True, 0, id="none"),
        pytest.param(["--seed 1"], True, 0, id="another-setting"),
    ],
)
def test_a_setting_that_launches_override(scripts: list[str], holds: bool, shown: int) -> None:
    lines = {f"run{number}.sh": f"torchrun train.py config.yaml {one}\n" for number, one in enumerate(scripts)}
    verdict = launched(**lines)("trainer-setting-is-in-force", "dataloader_num_workers")
    assert (verdict.holds, len(verdict.related)) == (holds, shown)


@pytest.mark.parametrize(
    "line, holds",
    [
        pytest.param("torchrun train.py config.yaml", True, id="nothing-else"),
        pytest.param("torchrun train.py config.yaml --save_total_limit 2", False, id="given"),
        pytest.param('torchrun train.py config.yaml "$@"', False, id="open"),
    ],
)
def test_a_setting_that_a_launch_gives(line: str, holds: bool) -> None:
    assert launched(**{"run.sh": line + "\n"})("trainer-setting-is-unset", "save_total_limit").holds is holds


@pytest.mark.parametrize(
    "line, world",
    [
        pytest.param('torchrun --nproc_per_node "${NUM_GPUS}" train.py config.yaml', "`--nproc_per_node $NUM_GPUS`", id="outside"),
        pytest.param("torchrun --nproc_per_node 8 train.py config.yaml", None, id="fixed"),
        pytest.param('torchrun --nproc_per_node "${NUM_GPUS}" train.py config.yaml --gradient_accumulation_steps 1', None, id="given"),
        pytest.param('torchrun --nproc_per_node "${NUM_GPUS}" train.py other.yaml', None, id="another-file"),
    ],
)
def test_launches_with_any_number_of_processes(line: str, world: str | None) -> None:
    verdict = launched(**{"run.sh": line + "\n"})("launch-varies-processes", "gradient_accumulation_steps")
    assert verdict.holds is (world is not None)
    assert dict(verdict.args).get("world") == world


@pytest.mark.parametrize(
    "line, holds",
    [
        pytest.param("torchrun train.py config.yaml", True, id="torchrun"),
        pytest.param("deepspeed train.py config.yaml", False, id="deepspeed"),
        pytest.param("torchrun train.py config.yaml --deepspeed zero3.json", False, id="option"),
        pytest.param("accelerate launch --use_fsdp train.py config.yaml", False, id="fsdp"),
        pytest.param("accelerate launch --config_file engine.yaml train.py config.yaml", False, id="file"),
    ],
)
def test_launches_that_shard_the_optimizer(line: str, holds: bool) -> None:
    engine = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 8\n"
    assert launched(**{"run.sh": line + "\n", "engine.yaml": engine})("launches-do-not-shard", "optim").holds is holds
