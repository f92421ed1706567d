"""Facts that need no tree: imports, called names, and words; comments and strings may only silence."""

from __future__ import annotations

import time
from functools import cached_property

import pytest
from collected import for_every

from ldlm_lint.cache.values import decode, encode
from ldlm_lint.python.called import calls_of
from ldlm_lint.python.skim import Kept, Recalled, Skim, kept, reads_variable, without_comments


@for_every(
    "code, expected",
    [
        pytest.param("import torch", ("torch",), id="import"),
        pytest.param("import a, b as c, d.e", ("a", "b", "d.e"), id="several"),
        pytest.param("from a import b", ("a", "a.b"), id="from"),
        pytest.param("    from a import b as c", ("a", "a.b"), id="indented"),
        pytest.param("from a import (b,\n  c as d,\n)", ("a", "a.b", "a.c"), id="parentheses"),
        pytest.param("from a import (b,\r\n  c)\r\n", ("a", "a.b", "a.c"), id="windows"),
        pytest.param("from a import (  # first :)\n  b,  # second\n  # c,\n)", ("a", "a.b"), id="comments"),
        pytest.param("from a import b, \\\n  c", ("a", "a.b", "a.c"), id="continued"),
        pytest.param("from a \\\n  import b", ("a", "a.b"), id="continued-early"),
        pytest.param("from a import b; import c", ("a", "a.b"), id="semicolon"),
        pytest.param("from . import b", (".", ".b"), id="package"),
        pytest.param("from .a import b", (".a", ".a.b"), id="relative"),
        pytest.param("from .. import b", ("..", "..b"), id="parent"),
        pytest.param("from a import *", ("a", "a.*"), id="star"),
        pytest.param("from . import *", (".", ".*"), id="star-of-package"),
        pytest.param("# import a", (), id="comment"),
        pytest.param("x = 'import a'", (), id="text"),
        pytest.param("important = 1\nfrom_a = 2", (), id="longer-words"),
        pytest.param("", (), id="empty"),
    ],
)
def test_imports(code: str, expected: tuple[str, ...]) -> None:
    assert Skim(code.encode()).imports == expected


@for_every(
    "code, expected",
    [
        pytest.param("sys.path.append('core')", ("core",), id="append"),
        pytest.param('sys.path.insert(0, "./src/lib/")', ("src/lib",), id="insert"),
        pytest.param("sys.path.append(os.path.join(os.path.dirname(__file__), '..', 'lib'))", ("lib",), id="joined"),
        pytest.param("sys.path.insert(0, str(ROOT / 'a' / 'b'))", ("a/b",), id="pathlib"),
        pytest.param("sys.path.append('a')\nsys.path.append('b')\nsys.path.append('a')", ("a", "b"), id="two"),
        pytest.param("sys.path.append('..')\nsys.path.append('.')", (), id="around"),
        pytest.param("sys.path.append('/opt/lib')", (), id="elsewhere"),
        pytest.param("sys.path.append(folder)  # 'lib'", (), id="unknown"),
        pytest.param("if 'lib' in sys.path.copy(): ...", (), id="read"),
    ],
)
def test_searched(code: str, expected: tuple[str, ...]) -> None:
    assert Skim(code.encode()).searched == expected


@pytest.mark.parametrize(
    "code, expected",
    [
        pytest.param("from a import b as c, d", {"b"}, id="from"),
        pytest.param("from a import (b as c,\n  d as e)", {"b", "d"}, id="parentheses"),
        pytest.param("import a.b as c", {"b"}, id="import"),
        pytest.param("with a as b: ...\n# from a import b as c", set(), id="no-import"),
    ],
)
def test_renamed(code: str, expected: set[str]) -> None:
    assert Skim(code.encode()).renamed == expected


def test_called_and_defined() -> None:
    skim = Skim(b"a(b(1), c.d (2))  # e(3)\nclass F(G): ...\n  async def h(self): ...\n# def i(): ...\n")
    assert skim.called.names == {"a", "b", "d"}
    assert skim.defined == {"F", "h"}


@for_every(
    "code, members, spaced",
    [
        pytest.param("a(1)", set(), set(), id="plain"),
        pytest.param("x.a(1)", {"a"}, set(), id="member"),
        pytest.param("x.a (1)", {"a"}, {"a"}, id="member-with-a-blank"),
        pytest.param("a(1) + x.a(2)", {"a"}, set(), id="both"),
        pytest.param("a\t (1)", set(), {"a"}, id="tab"),
        pytest.param("x = y if (a) else 1.(2)", set(), set(), id="no-call"),
        pytest.param("@x.a(1)\ndef b (c): ...", {"a"}, set(), id="definition"),
    ],
)
def test_how_names_are_called(code: str, members: set[str], spaced: set[str]) -> None:
    called = Skim(code.encode()).called
    assert (called.members, called.spaced) == (members, spaced)
    assert called.members | called.spaced <= called.names


@for_every("code", ["a(1)", "x.a(1)", "b(a(1))", "a (1)", "ba(1) or a\t(1)", "@a(1)"])
def test_places_of_calls(code: str) -> None:
    spaced = "a" in Skim(code.encode()).called.spaced
    assert [code[at:].strip("a \t") for at in calls_of(code.encode(), "a", spaced)] == [code[code.rindex("a") + 1 :].strip(" \t")]


def test_a_longer_name_is_no_place_of_a_call() -> None:
    assert list(calls_of(b"ba(1); a_(2); a; a2 (3)", "a", True)) == []


def test_bytes_that_are_no_text_are_no_error() -> None:
    skim = Skim(b"\xff\xfe\x00import \xe9\nfrom \xe9 import b\nd\xe9f(1)\n")
    assert all(isinstance(name, str) for name in (*skim.imports, *skim.called.names, *skim.defined))


def test_without_comments() -> None:
    assert without_comments(b"a  # b\n#c\nd") == b"a  \n\nd"


@for_every(
    "code",
    [
        "os.getenv('NAME')",
        "os.getenv(key='NAME')",
        "os.getenv(\n    'NAME', 3)",
        'os.environ["NAME"]',
        "os.environ.get('NAME')",
        "environ.get( 'NAME', default=1)",
        "if os.environ['NAME'] == '1': ...",
        "if 'NAME' in os.environ: ...",
        "if 'NAME' not in os.environ: ...",
        "x = os.environ['NAME']\nos.environ['NAME'] = '2'",
    ],
)
def test_read_variable(code: str) -> None:
    assert reads_variable(code.encode(), "NAME")


@for_every(
    "code",
    [
        "os.environ['NAME'] = '1'",
        'os.environ["NAME"]="1"',
        "os.environ.setdefault('NAME', '1')",
        "os.environ.update({'NAME': '1'})",
        "os.environ.pop('NAME', None)",
        "env = {'NAME': '1'}",
        "print('NAME')",
        "os.getenv('NAME_2')",
        "os.getenv('MY_NAME')",
        "os.getenv(NAME)",
        "if 'NAME' in names: ...",
    ],
)
def test_variable_that_is_set_or_only_mentioned(code: str) -> None:
    assert not reads_variable(code.encode(), "NAME")


def test_name_of_a_variable_is_no_pattern() -> None:
    assert not reads_variable(b"os.getenv('NAME')", "N.ME")


@for_every(
    "code, expected",
    [
        ("loss.backward()", True),
        ("scaler.scale(loss).backward()", True),
        ("accelerator.backward(loss)", True),
        ("optimizer.zero_grad(set_to_none=True)", True),
        ("trainer = Trainer(model)\ntrainer.train()", True),
        ("L.Trainer().fit(model)", True),
        ("# loss.backward()", False),
        ("def backward(ctx, grad): ...", False),
        ("x.register_backward_hook(f)", False),
        ("model.train()", False),
        ("trainer = Trainer(model)", False),
    ],
)
def test_trains(code: str, expected: bool) -> None:
    assert Skim(code.encode()).trains is expected


@for_every(
    "code, expected",
    [
        ("os.remove(checkpoints[0])", True),
        ("from os import remove\nremove(old_ckpt)", True),
        ("ckpts = sorted(folder.glob('*.pt'))\nfor old in ckpts[:-3]:\n    old.unlink()", True),
        ("shutil.rmtree(checkpoint_dir)", True),
        ("args = TrainingArguments(save_total_limit=3)", True),
        ("keep_last_n = 3", True),
        ("rm_checkpoints(folder, keep_n_latest=config.keep)", True),
        ("trim(folder, keep_n_latest=3)", True),
        ("delete_ckpt(old)", True),
        ("prune(folder, not args.keep_last)", True),
        ("loader(data, drop_last=False)\nprune(folder, args.keep_last)", True),
        ("loader(data, drop_last=not args.keep_last)", False),
        ("def loader(data, drop_last): ...\nloader(data, not args.keep_last)", False),
        ("loader(data, drop_last=not args.keep_last)\nkeep_last_n = 3", True),
        ("checkpoints(folder, max_keep=3)", True),
        ("Saver(folder, num_keep=3)", True),
        ("masks = [one[:max_keep] for one in masks]", False),
        ('for old in sorted(out.glob("epoch_*.pt"))[:-2]:\n    old.unlink()', True),
        ("for old in sorted(glob.glob('out/step_*.pth.tar'))[:-2]: os.remove(old)", True),
        ('for old in glob.glob("out/*.png"):\n    os.remove(old)', False),
        ("os.remove(path)", False),
        ("ckpt = 1\nlock_path.unlink()", False),
        ("ckpt = 1\nos.remove(self.lock_file)", False),
        ("ckpt = 1\ntmp.unlink()", False),
        ("# os.remove(checkpoint)", False),
        ("checkpoints.remove(x)", False),
        ("keep_names = remove_caption(checkpoint)", False),
        ("ckpt = 1" + "\n" * 40 + "os.remove(path)", False),
    ],
)
def test_prunes(code: str, expected: bool) -> None:
    assert Skim(code.encode()).prunes is expected


def test_cuda_and_engine() -> None:
    assert Skim(b"model.cuda()").cuda
    assert not Skim(b"model.to(device)  # cuda").cuda
    assert Skim(b"deepspeed.initialize(model=model)").engine


_FILES = (
    b"",
    b"from  import x\nimport\n",
    b"import torch as t\nfrom .a import (b as c, *)\ntorch.load = mine\ndeepspeed.initialize(x)\n",
    b"class A:\n    def f(self):\n        return g(self.f())\n    def f(self): ...\nos.remove(checkpoint)  # old\n",
    b"import sys\nsys.path.append('lib')\n",
    b"from torch.utils.checkpoint import checkpoint\n\ndef step(x):\n    loss(x.cuda()).backward()\n",
)
_FACTS = tuple(name for name, kind in vars(Skim).items() if isinstance(kind, (cached_property, property)) and name[0] != "_")


@for_every("data", _FILES, ids=range(len(_FILES)))
def test_what_is_recalled_is_what_is_read(data: bytes) -> None:
    again = Recalled(decode(encode(kept(data))), lambda: data)
    assert {name: getattr(again, name) for name in _FACTS} == {name: getattr(Skim(data), name) for name in _FACTS}


def test_what_is_kept_needs_no_reading() -> None:
    def read() -> bytes:
        raise AssertionError("read")

    again = Recalled(kept(_FILES[-1]), read)
    assert all(getattr(again, name) is not None for name in Kept._fields)
    with pytest.raises(AssertionError, match="read"):
        again.cuda  # noqa: B018


def test_deletions_are_looked_for_line_by_line() -> None:
    """Twelve lines above the deletion and two below it are near; many deletions take no longer than their text is long."""
    above, below = b"checkpoint = 1\n", b"\n".join((b"", b"x", b"checkpoint"))
    assert Skim(above + b"\n" * 11 + b"os.remove(path)").prunes
    assert not Skim(above + b"\n" * 12 + b"os.remove(path)").prunes
    assert Skim(b"os.remove(path)" + below).prunes
    assert not Skim(b"os.remove(path)\n" + below).prunes
    start = time.process_time()
    assert not Skim(b"f.remove(x)\n" * 100_000 + b"f.remove(x) " * 100_000).prunes
    assert time.process_time() - start < 10


def test_definitions_behind_each_other_on_a_line_are_none_and_cost_no_more_than_others() -> None:
    start = time.process_time()
    skim = Skim(b"def a def b\n  class C def d\n\tasync def e\nx def f\n" + b"def g " * 300_000)
    assert (skim.defined, skim.methods) == ({"a", "C", "e", "g"}, {"e": 1})
    assert time.process_time() - start < 10
