"""Hydra's composition and OmegaConf's interpolations, against what Hydra 1.3.8 itself composes from the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldlm_lint.config import Config
from ldlm_lint.configs.hydra import Composition, Override, compose, single
from ldlm_lint.configs.read import read
from ldlm_lint.discover import discover
from ldlm_lint.project.index import Project
from ldlm_lint.source import Kind, Source

FILES = {
    "config.yaml": """\
defaults:
  - base_schema
  - db: mysql
  - server/apache@srv: https
  - model@enc: large
  - model@dec: small
  - optional local: mine
  - net: ${db}_net
  - _self_
  - exp: null
  - override model@dec: huge
seed: 1
enc:
  width: 5
x: ${seed}
y: ${enc.width}
z: a${seed}b${y}
list: [1, '${seed}']
w: ${list.1}
v: ${list[0]}
q: ${oc.select:nokey,7}
""",
    "base_schema.yaml": """\
seed: 0
flag: false
""",
    "db/mysql.yaml": """\
# comment
# @package _global_
dbname: mysql
port: 3306
db:
  rel: ${.other}
  other: 4
""",
    "db/pg.yaml": """\
defaults:
  - /model: small
  - extra
  - sub/deep
  - _self_
name: pg
width: 99
up: ${..seed}
""",
    "db/extra.yaml": """\
extra: 1
name: e
""",
    "db/sub/deep.yaml": "deep: 1\n",
    "server/apache/https.yaml": """\
defaults:
  - ssl: on1
  - override /db@_global_.db: pg
port: 443
""",
    "server/apache/ssl/on1.yaml": "cert: x\n",
    "model/large.yaml": """\
width: 10
depth: 2
""",
    "model/small.yaml": """\
defaults: [common]
width: 1
""",
    "model/huge.yaml": "width: 1000\n",
    "model/common.yaml": """\
act: relu
width: 0
""",
    "net/pg_net.yaml": "k: 1\n",
    "net/mysql_net.yaml": "k: 2\n",
    "exp/a.yaml": """\
# @package _global_
defaults:
  - override /model@enc: small
  - override /net: mysql_net
seed: 42
enc:
  act: gelu
""",
    "exp/b.yaml": """\
# @package foo.bar
seed: 43
""",
    "exp/c.yaml": """\
defaults: [a]
t: 1
""",
    "sub/prim.yaml": """\
defaults:
  - /model: large
  - other
  - /db@here: mysql
  - /db@_global_.glob: pg
m: 1
""",
    "sub/other.yaml": "o: 1\n",
    "multi.yaml": """\
defaults:
 - model: [large, common]
 - exp: b
model:
  depth: 3
""",
    "noself.yaml": """\
defaults:
 - model: large
model:
  width: 11
""",
    "selffirst.yaml": """\
defaults:
 - _self_
 - model: large
model:
  width: 11
  new: 1
""",
    "nul.yaml": """\
defaults:
 - model: large
 - _self_
model: null
""",
    "miss.yaml": """\
defaults:
 - model: large
 - _self_
model:
  width: ???
  depth: ${.width}
""",
}

# What `hydra.compose` says, keys joined by points.
EXPECTED: dict[tuple[str, str], dict[str, object]] = {
    ("config", ""): {
        "seed": 1,
        "flag": False,
        "db.model.act": "relu",
        "db.model.width": 1,
        "db.extra": 1,
        "db.name": "pg",
        "db.sub.deep": 1,
        "db.width": 99,
        "db.up": "${..seed}",
        "srv.ssl.cert": "x",
        "srv.port": 443,
        "enc.width": 5,
        "enc.depth": 2,
        "dec.width": 1000,
        "net.k": 1,
        "x": "${seed}",
        "y": "${enc.width}",
        "z": "a${seed}b${y}",
        "w": "${list.1}",
        "v": "${list[0]}",
        "q": "${oc.select:nokey,7}",
    },
    ("config", "exp=a"): {
        "seed": 42,
        "flag": False,
        "db.model.act": "relu",
        "db.model.width": 1,
        "db.extra": 1,
        "db.name": "pg",
        "db.sub.deep": 1,
        "db.width": 99,
        "db.up": "${..seed}",
        "srv.ssl.cert": "x",
        "srv.port": 443,
        "enc.act": "gelu",
        "enc.width": 5,
        "dec.width": 1000,
        "net.k": 2,
        "x": "${seed}",
        "y": "${enc.width}",
        "z": "a${seed}b${y}",
        "w": "${list.1}",
        "v": "${list[0]}",
        "q": "${oc.select:nokey,7}",
    },
    ("config", "exp=b +model@third=large"): {
        "seed": 1,
        "flag": False,
        "db.model.act": "relu",
        "db.model.width": 1,
        "db.extra": 1,
        "db.name": "pg",
        "db.sub.deep": 1,
        "db.width": 99,
        "db.up": "${..seed}",
        "srv.ssl.cert": "x",
        "srv.port": 443,
        "enc.width": 5,
        "enc.depth": 2,
        "dec.width": 1000,
        "net.k": 1,
        "x": "${seed}",
        "y": "${enc.width}",
        "z": "a${seed}b${y}",
        "w": "${list.1}",
        "v": "${list[0]}",
        "q": "${oc.select:nokey,7}",
        "foo.bar.seed": 43,
        "third.width": 10,
        "third.depth": 2,
    },
    ("config", "exp=c"): {
        "seed": 42,
        "flag": False,
        "db.model.act": "relu",
        "db.model.width": 1,
        "db.extra": 1,
        "db.name": "pg",
        "db.sub.deep": 1,
        "db.width": 99,
        "db.up": "${..seed}",
        "srv.ssl.cert": "x",
        "srv.port": 443,
        "enc.act": "gelu",
        "enc.width": 5,
        "dec.width": 1000,
        "net.k": 2,
        "x": "${seed}",
        "y": "${enc.width}",
        "z": "a${seed}b${y}",
        "w": "${list.1}",
        "v": "${list[0]}",
        "q": "${oc.select:nokey,7}",
        "exp.t": 1,
    },
    ("config", "db=mysql model@enc=huge"): {
        "seed": 1,
        "flag": False,
        "db.dbname": "mysql",
        "db.port": 3306,
        "db.db.rel": "${.other}",
        "db.db.other": 4,
        "srv.ssl.cert": "x",
        "srv.port": 443,
        "enc.width": 5,
        "dec.width": 1000,
        "net.k": 2,
        "x": "${seed}",
        "y": "${enc.width}",
        "z": "a${seed}b${y}",
        "w": "${list.1}",
        "v": "${list[0]}",
        "q": "${oc.select:nokey,7}",
    },
    ("config", "~net"): {
        "seed": 1,
        "flag": False,
        "db.model.act": "relu",
        "db.model.width": 1,
        "db.extra": 1,
        "db.name": "pg",
        "db.sub.deep": 1,
        "db.width": 99,
        "db.up": "${..seed}",
        "srv.ssl.cert": "x",
        "srv.port": 443,
        "enc.width": 5,
        "enc.depth": 2,
        "dec.width": 1000,
        "x": "${seed}",
        "y": "${enc.width}",
        "z": "a${seed}b${y}",
        "w": "${list.1}",
        "v": "${list[0]}",
        "q": "${oc.select:nokey,7}",
    },
    ("sub/prim", ""): {
        "sub.model.width": 10,
        "sub.model.depth": 2,
        "sub.o": 1,
        "sub.here.dbname": "mysql",
        "sub.here.port": 3306,
        "sub.here.db.rel": "${.other}",
        "sub.here.db.other": 4,
        "sub.m": 1,
        "glob.model.act": "relu",
        "glob.model.width": 1,
        "glob.extra": 1,
        "glob.name": "pg",
        "glob.sub.deep": 1,
        "glob.width": 99,
        "glob.up": "${..seed}",
    },
    ("multi", ""): {
        "model.width": 0,
        "model.depth": 3,
        "model.act": "relu",
        "foo.bar.seed": 43,
    },
    ("multi", "model=[small,huge]"): {
        "model.act": "relu",
        "model.width": 1000,
        "model.depth": 3,
        "foo.bar.seed": 43,
    },
    ("noself", ""): {
        "model.width": 11,
        "model.depth": 2,
    },
    ("noself", "+exp=b +db=pg"): {
        "model.width": 11,
        "model.depth": 2,
        "foo.bar.seed": 43,
        "db.model.act": "relu",
        "db.model.width": 1,
        "db.extra": 1,
        "db.name": "pg",
        "db.sub.deep": 1,
        "db.width": 99,
        "db.up": "${..seed}",
    },
    ("selffirst", ""): {
        "model.width": 10,
        "model.new": 1,
        "model.depth": 2,
    },
    ("nul", ""): {
        "model": None,
    },
    ("miss", ""): {
        "model.width": 10,
        "model.depth": "${.width}",
    },
}


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


@pytest.mark.parametrize("name, overrides", EXPECTED)
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
