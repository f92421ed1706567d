"""What a launch comes to: its configurations, which of several values wins, and who asks for it."""

from __future__ import annotations

from launched import HYDRA, ROOT, entry, launches, programs


def configs(script: str, **files: str) -> list[tuple[str, str]]:
    named = {path.replace("__", "/").replace("_DOT_", "."): text for path, text in files.items()}
    (program,) = programs({"scripts/run.sh": script, **named})
    return [(use.path.removeprefix(f"{ROOT}/"), use.why) for use in program.configs]


def test_configurations_on_the_command_line() -> None:
    files = {
        "train_DOT_py": "",
        "configs__a_DOT_yaml": "x: 1",
        "ds_DOT_json": "{}",
        "acc_DOT_yaml": "x: 1",
        "data_DOT_json": "[]",
    }
    script = "accelerate launch --config_file acc.yaml train.py --config configs/a.yaml --deepspeed ds.json --train_file data.json"
    assert configs(script, **files) == [
        ("acc.yaml", "--config_file"),
        ("configs/a.yaml", "--config"),
        ("ds.json", "--deepspeed"),
    ]
    assert configs("python train.py configs/a.yaml", **files) == [("configs/a.yaml", "named on the command line")]
    assert configs("python train.py data.json", **files) == []
    assert configs("python train.py --config $UNKNOWN", **files) == []
    assert configs("C=a\npython train.py --config configs/$C.yaml", **files) == [("configs/a.yaml", "--config")]


def test_hydra_names_the_primary_config() -> None:
    files = {
        "src__train_DOT_py": HYDRA,
        "src__configs__base_DOT_yaml": "x: 1",
        "src__configs__big_DOT_yaml": "x: 2",
        "conf__o_DOT_yaml": "",
    }
    assert configs("python src/train.py a.b=1", **files) == [("src/configs/base.yaml", "hydra.main")]
    assert configs("python src/train.py --config-name big", **files) == [("src/configs/big.yaml", "--config-name")]
    assert configs("python src/train.py --config-name=big.yaml", **files) == [("src/configs/big.yaml", "--config-name")]
    assert configs("python src/train.py --config-path ../conf -cn o", **files) == [("conf/o.yaml", "-cn")]
    assert configs("python src/train.py --config-name $C", **files) == []
    broken = {**files, "src__train_DOT_py": HYDRA + "if x:\ny = 1\n"}
    assert configs("python src/train.py", **broken) == [("src/configs/base.yaml", "hydra.main")]
    commented = {**files, "src__train_DOT_py": HYDRA.replace("\n", "\n# ")}
    assert configs("python src/train.py", **commented) == []


def test_programs_have_configurations_of_their_own() -> None:
    parser = (
        'import argparse, yaml\np = argparse.ArgumentParser()\np.add_argument("--config", default="configs/a.yaml")\n'
    )
    files = {"train_DOT_py": parser, "configs__a_DOT_yaml": "x: 1", "configs__b_DOT_yaml": "x: 1"}
    assert configs("python train.py", **files) == [("configs/a.yaml", "the default of --config")]
    assert configs("python train.py --config configs/b.yaml", **files) == [("configs/b.yaml", "--config")]
    loads = 'import yaml\ncfg = yaml.safe_load(open("configs/b.yaml"))\nopen("configs/a.yaml", "w")\n'
    assert configs("python train.py", **{**files, "train_DOT_py": loads}) == [
        ("configs/b.yaml", "loaded by the program")
    ]
    imported = {**files, "train_DOT_py": "import options", "options_DOT_py": parser}
    assert configs("python train.py", **imported) == [("configs/a.yaml", "the default of --config")]


def value(
    script: str, *keys: str, entry: str = HYDRA, config: str = "data:\n  num_workers: 4\nx: 1\n"
) -> list[tuple[object, str]] | None:
    """What a key comes to in the one launch of a script, the winner first."""
    found = launches({"run.sh": script, "train.py": entry, "configs/base.yaml": config})
    effective = found.value_of(found.programs[0], *keys)
    return None if effective is None else [(one.values, one.source) for one in (effective.winner, *effective.shadowed)]


def test_arguments_win_over_configurations() -> None:
    config = (("4",), "config")
    assert value("python train.py", "data", "num_workers") == [config]
    assert value("python train.py data.num_workers=8", "data", "num_workers") == [(("8",), "argument"), config]
    assert value("python train.py data.num_workers=8 ++data.num_workers=2", "data", "num_workers") == [
        (("2",), "argument"),
        (("8",), "argument"),
        config,
    ]
    assert value("python train.py data.num_workers=$W", "data", "num_workers") == [(None, "argument"), config]
    assert value("python train.py num_workers=8", "data", "num_workers") == [config]
    assert value("python train.py", "data", "pin_memory") is None
    assert value("python train.py ~data.num_workers", "data", "num_workers") == [((), "argument"), config]


def test_flags_have_a_meaning() -> None:
    assert value("python train.py --fused", "fused", entry="") == [(("true",), "argument")]
    assert value("python train.py --fused --no-fused", "fused", entry="") == [
        (("false",), "argument"),
        (("true",), "argument"),
    ]


def test_of_two_files_that_differ_none_is_known_to_win() -> None:
    files = {
        "run.sh": "python train.py --config a.yaml --cfg b.yaml",
        "train.py": "",
        "a.yaml": "x: 1\ny: 3",
        "b.yaml": "x: 2\ny: 3",
    }
    found = launches(files)
    one, both = (found.value_of(found.programs[0], key) for key in "xy")
    assert one is not None and one.winner.values is None
    assert both is not None and both.winner.values == ("3",)


def test_launches_are_found_by_entry_and_configuration() -> None:
    files = {
        "run.sh": "python train.py --config a.yaml\npython other.py",
        "train.py": "import lib",
        "other.py": "",
        "lib.py": "",
        "a.yaml": "x: 1",
    }
    found = launches(files)
    assert [one.entry_text for one in found.of_config(f"{ROOT}/a.yaml")] == ["train.py"]
    assert [one.entry_text for one in found.programs if one.entry == f"{ROOT}/other.py"] == ["other.py"]
    assert [one.entry_text for one in found.running(f"{ROOT}/lib.py")] == ["train.py"]


def test_nothing_outside_of_the_project_is_looked_at() -> None:
    assert entry("python ../train.py", "x.py") is None
    assert configs("python train.py --config ../../etc/a.yaml", train_DOT_py="", a_DOT_yaml="x: 1") == []
    assert configs("python train.py --config-path /etc", train_DOT_py=HYDRA, a_DOT_yaml="x: 1") == []
