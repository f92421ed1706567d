"""Hydra's composition and OmegaConf's interpolations, against what Hydra 1.3.8 itself composes from the same files."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every
from hydra_example import EXPECTED, FILES

from ldlm_lint.config import Config
from ldlm_lint.configs.hydra import Composition, Override, compose, single
from ldlm_lint.configs.read import read
from ldlm_lint.discover import discover
from ldlm_lint.project.index import Project
from ldlm_lint.source import Kind, Source


def project(root: Path, files: dict[str, str]) -> Project:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    kinds = {path.as_posix(): kind for path, kind in discover([root], Config(), root).files}
    return Project(root.as_posix(), (), others=kinds)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project(tmp_path_factory.mktemp("hydra"), FILES)


def composed(of: Project, name: str, overrides: str = "") -> Composition:
    given = [Override(key, value) for key, _, value in (one.partition("=") for one in overrides.split())]
    return compose(of, of.root, name, given)


def value(of: Composition, keys: str) -> object:
    held = of.value_at(*keys.split("."))
    return "nothing" if held is None else held.entry.value


@for_every("name, overrides", EXPECTED)
def test_as_hydra_composes_it(example: Project, name: str, overrides: str) -> None:
    got = composed(example, name, overrides)
    expected = EXPECTED[name, overrides]
    # Hydra leaves `???` where nothing gives a value.
    assert {keys: value(got, keys) for keys in expected} == {keys: "nothing" if one == "???" else one for keys, one in expected.items()}
    assert got.complete
    parts = {keys for part in got.parts if part.document for keys in leaves(part.package, part.document)}
    assert {keys for keys in parts if value(got, keys) != "nothing"} <= expected.keys()


def leaves(package: tuple[object, ...], document: object) -> set[str]:
    """The dotted keys that a part gives values to, the defaults list and lists left out."""
    found = set()
    for one in document.scalars():  # type: ignore[attr-defined]
        if one.path and one.path[0] != "defaults" and not any(isinstance(key, int) for key in one.path):
            found.add(".".join(map(str, (*package, *one.path))))
    return found


def test_what_is_shadowed(example: Project) -> None:
    held = composed(example, "config", "exp=a").value_at("enc", "width")
    assert held is not None
    assert (held.entry.value, Path(held.path).name) == (5, "config.yaml")
    assert [(one.value, Path(one.span.path).name) for one in held.shadowed] == [(1, "small.yaml"), (0, "common.yaml")]


@for_every(
    "keys, resolved, through",
    [("x", 1, 1), ("y", 5, 1), ("z", "a1b5", 0), ("w", 1, 2), ("v", 1, 1), ("q", None, 0), ("seed", 1, 0), ("db.up", 1, 1)],
)
def test_interpolations(example: Project, keys: str, resolved: object, through: int) -> None:
    got = composed(example, "config").resolved(*keys.split("."))
    if resolved is None:
        assert got is None
    else:
        assert got is not None
        assert (got.value, len(got.through)) == (resolved, through)


@for_every(
    "text, expected, variable",
    [
        ("${b.c}", 8, ""),
        ("${oc.env:WORKERS,4}", "4", "WORKERS"),
        ("${oc.env:WORKERS,null}", None, "WORKERS"),
        ("${env:WORKERS,4}", 4, "WORKERS"),
        ("${oc.decode:${oc.env:WORKERS,4}}", 4, "WORKERS"),
        ("${oc.env:WORKERS}", "unknown", ""),
        ("${oc.select:b.c,9}", 8, ""),
        ("${b.${k}}", 8, ""),
        ("x-${b.c}-${k}", "x-8-c", ""),
        ("${eval:1+1}", "unknown", ""),
        ("${missing}", "unknown", ""),
        ("${l.1}", 2, ""),
        ("${b.rel}", 8, ""),
        ("${self}", "unknown", ""),
        ("${open", "unknown", ""),
        ("\\${b.c}", "unknown", ""),
        ("${b}", "unknown", ""),
        ("${hydra:runtime.cwd}", "unknown", ""),
    ],
)
def test_interpolation_of_one_file(text: str, expected: object, variable: str) -> None:
    data = f"a: {text}\nb: {{c: 8, rel: '${{.c}}'}}\nk: c\nl: [1, 2]\nself: ${{self}}\n"
    got = single(read(Source.from_bytes("/p/a.yaml", data.encode(), Kind.YAML))).resolved("a")
    if expected == "unknown":
        assert got is None
    else:
        assert got is not None
        assert (got.value, got.variable) == (expected, variable)


def test_what_is_unknown_is_not_told(tmp_path: Path) -> None:
    of = project(
        tmp_path,
        {
            "main.yaml": "defaults:\n  - schema\n  - model: ???\n  - data: nowhere\n  - optional local: mine\n  - _self_\nmodel:\n  own: 1\nb: 2\n",
            "late.yaml": "defaults:\n  - _self_\n  - data: nowhere\n  - net: ${oc.env:NET}\ndata:\n  x: 1\nnet: {y: 1}\nb: 2\n",
            "model/a.yaml": "width: 1\n",
        },
    )
    main = composed(of, "main")
    assert not main.complete
    assert (value(main, "model.own"), value(main, "b")) == (1, 2)
    assert (value(main, "model.width"), value(main, "data.x"), value(main, "other")) == ("nothing",) * 3
    assert not main.absent("model", "width") and not main.absent("other")
    late = composed(of, "late")
    assert (value(late, "data.x"), value(late, "net.y"), value(late, "b")) == ("nothing", "nothing", 2)
    assert late.absent("c") and not late.absent("data", "z") and not late.absent("b")
    chosen = compose(of, of.root, "main", [Override("model", "a")])
    assert value(chosen, "model.width") == 1
    unknown = compose(of, of.root, "main", [Override("model", None), Override("b", None)])
    assert value(unknown, "model.width") == "nothing" and value(unknown, "b") == 2
    assert not composed(of, "absent").complete


def test_a_replaced_mapping_is_gone(tmp_path: Path) -> None:
    of = project(
        tmp_path,
        {
            "main.yaml": "defaults: [base, _self_]\nb: null\nc: ${a}\nd: [1]\ne: {x: '???'}\n",
            "base.yaml": "a: {x: 1}\nb: {x: 1}\nc: {x: 1}\nd: {x: 1}\ne: {x: 5}\n",
        },
    )
    got = composed(of, "main")
    assert [value(got, f"{key}.x") for key in "abcde"] == [1, "nothing", "nothing", "nothing", 5]
    assert [got.absent(key, "x") for key in "abcde"] == [False, True, False, True, False]


def test_cycles_and_ways_out_end(tmp_path: Path) -> None:
    of = project(
        tmp_path / "project",
        {
            "a.yaml": "defaults: [b]\nx: 1\n",
            "b.yaml": "defaults: [a]\n",
            "out.yaml": "defaults: [../../secret, /etc/passwd, {g: ../../secret}, [x], 5, {a b: c}]\nx: 1\n",
            "wide.yaml": "defaults: [" + "g/c, " * 2000 + "]\n",
            "g/c.yaml": "defaults: [d, d, d]\n",
            "g/d.yaml": "y: 1\n",
            "list.yaml": "- 1\n",
            "broken.yaml": "a: [1\n",
            "text.yaml": "defaults: all\nx: 1\n",
        },
    )
    (tmp_path / "secret.yaml").write_text("x: 2\n")
    assert not composed(of, "a").complete
    out = composed(of, "out")
    assert value(out, "x") == 1
    assert all(part.document is None or part.path.endswith("out.yaml") for part in out.parts)
    assert not composed(of, "wide").complete
    assert value(composed(of, "text"), "x") == 1
    assert not composed(of, "broken").complete
    assert composed(of, "list").absent("x")
