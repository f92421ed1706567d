"""A tree of Hydra configurations, and what Hydra 1.3.8 composed of it when these tests were written."""

from __future__ import annotations

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
