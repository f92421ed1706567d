"""Configuration files as documents: values against the standard loaders, places against the text, and no crash."""

from __future__ import annotations

import datetime
import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.configs import json_reader, yaml_entries
from ldlm_lint.configs.document import ChartError, DataError, Document, DocumentError, Entry, Shape
from ldlm_lint.configs.read import read
from ldlm_lint.configs.scalars import yaml_scalar
from ldlm_lint.source import Kind, Source, UnreadableError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | NAMES
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12)
# TOML has no null, and its integers have 64 bits.
TOML_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)


def source(text: str | bytes, kind: Kind = Kind.YAML) -> Source:
    return Source.from_bytes("/p/file", text.encode() if isinstance(text, str) else text, kind)


def document(text: str | bytes, kind: Kind = Kind.YAML) -> Document:
    return read(source(text, kind))


def data_of(found: Document, *path: str | int, number: int = 0) -> object:
    """The document as plain data again."""
    entry = found.get(*path, document=number)
    assert entry is not None
    if entry.shape is Shape.SCALAR:
        return entry.value
    below = {one.path[-1]: data_of(found, *one.path, number=number) for one in found.children(*path, document=number)}
    return list(below.values()) if entry.shape is Shape.SEQUENCE else below


def check_places(of: Source, found: Document) -> None:
    """Every span lies in the file, in its parent's, and its text is that of the value."""
    for entry in found.entries:
        assert 0 <= entry.span.start <= entry.span.end <= len(of.data)
        text = of.slice(entry.span)
        if entry.shape is Shape.SCALAR and entry.value is not None and not entry.tag and not text.startswith(("|", ">")):
            assert loaded(text, of.kind) == entry.value
        if entry.shape is not Shape.SCALAR and not entry.shared and of.kind is not Kind.TOML:
            for child in found.children(*entry.path, document=entry.document):
                assert child.shared or entry.span.start <= child.whole.start <= child.span.end <= entry.span.end


def loaded(text: str, kind: Kind) -> object:
    if kind is Kind.JSON:
        return json.loads(text)
    if kind is Kind.TOML:
        return tomllib.loads(f"x = {text}")["x"]
    return yaml.safe_load(text) if "\n" in text else data_of(document(f"- {text}"))[0]  # type: ignore[index]


@settings(max_examples=150, deadline=None)
@given(VALUES, st.booleans(), st.booleans())
def test_json_as_the_standard_library_reads_it(value: object, spread: bool, ascii_only: bool) -> None:
    text = json.dumps(value, indent=2 if spread else None, ensure_ascii=ascii_only)
    for one in (text, "\ufeff" + text.replace("\n", "\r\n")):
        of = source(one, Kind.JSON)
        found = read(of)
        assert data_of(found) == value
        check_places(of, found)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.booleans(), st.booleans())
def test_yaml_as_pyyaml_reads_it(value: object, flow: bool, unicode: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=unicode, sort_keys=False)
    expected = yaml.safe_load(text)
    of = source(text)
    found = read(of)
    assert data_of(found) == expected
    check_places(of, found)


def toml_text(table: dict[str, object]) -> str:
    """A table as TOML, its inner tables by headers where they are not in a list."""

    def scalar(value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return json.dumps(value).replace("\x7f", "\\u007f") if value.isascii() else quoted(value)
        if isinstance(value, list):
            return "[" + ", ".join(map(scalar, value)) + "]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{quoted(key)} = {scalar(inner)}" for key, inner in value.items()) + "}"
        return repr(value)

    def quoted(text: str) -> str:
        return '"' + "".join(letter if letter.isprintable() and letter not in '"\\' else f"\\U{ord(letter):08x}" for letter in text) + '"'

    def lines(path: tuple[str, ...], inner: dict[str, object]) -> list[str]:
        own = [f"{quoted(key)} = {scalar(value)}" for key, value in inner.items() if not isinstance(value, dict)]
        found = [f"[{'.'.join(map(quoted, path))}]", *own] if path else own
        for key, value in inner.items():
            if isinstance(value, dict):
                found += lines((*path, key), value)
        return found

    return "\n".join(lines((), table)) + "\n"


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, TOML_VALUES, max_size=4))
def test_toml_as_the_standard_library_reads_it(value: dict[str, object]) -> None:
    text = toml_text(value)
    of = source(text, Kind.TOML)
    found = read(of)
    assert data_of(found) == tomllib.loads(text)
    check_places(of, found)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=60) | st.text("{}[]:,-#&*!|>'\"%@`?<= \t\n\r\\ab01.~\u2028é😀", max_size=60).map(str.encode))
def test_no_bytes_crash(data: bytes) -> None:
    for kind in DOCUMENTS:
        try:
            of = Source.from_bytes("/p/file", data, kind)
            found = read(of)
        except (UnreadableError, DocumentError):
            continue
        for entry in found.entries:
            assert 0 <= entry.span.start <= entry.span.end <= len(data)


@settings(max_examples=300, deadline=None)
@given(st.text("{}[]:,-#&*|>'\"? \n\tab01.~é", max_size=40))
def test_what_yaml_takes_we_take(text: str) -> None:
    try:
        expected = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        return
    try:
        of = source(text)
        found = read(of)
    except DocumentError as error:
        # A mapping as a key, written as two braces, is a template to everybody.
        assert "{{" in text and "template" in error.message
        return
    assert found.documents == len(expected)
    check_scalars(of, found)


def check_scalars(of: Source, found: Document) -> None:
    for entry in found.entries:
        text = of.slice(entry.span)
        if entry.shape is Shape.SCALAR and re.fullmatch(r"[ab01é]+", text):
            assert entry.text == text


@for_every(
    "text, value",
    [
        ("yes", True),
        ("Off", False),
        ("TRUE", True),
        ("y", "y"),
        ("~", None),
        ("null", None),
        ("", None),
        ("1e-4", 1e-4),
        ("1E5", 1e5),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("-1.", -1.0),
        ("1_000", 1000),
        ("017", 15),
        ("0o17", "0o17"),
        ("089", "089"),
        ("0x1F", 31),
        ("0b101", 5),
        ("-0x10", -16),
        ("0x_", "0x_"),
        ("1:30:00", "1:30:00"),
        ("2024-01-01", "2024-01-01"),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        ("-", "-"),
        (".", "."),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_plain_scalars_of_yaml(text: str, value: object) -> None:
    assert yaml_scalar(text) == value and type(yaml_scalar(text)) is type(value)


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"[-+.0-9_eExXbaAfFoinN]{1,8}|[a-zA-Z~]{0,5}", fullmatch=True))
def test_plain_scalars_as_pyyaml_has_them(text: str) -> None:
    try:
        expected = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return
    # `---` and `...` are no scalars: they begin and end a document.
    if isinstance(expected, (datetime.date, list, dict)) or text in ("=", "<<", "---", "..."):
        return
    got = yaml_scalar(text)
    if got != expected and not (got != got and expected != expected):
        # Only numbers that PyYAML leaves as text.
        assert isinstance(expected, str) and isinstance(got, float) and re.search("[eE]|^[-+][.]", text)


def spans_of(text: str | bytes, kind: Kind = Kind.YAML) -> dict[tuple[str | int, ...], str]:
    of = source(text, kind)
    return {entry.path: of.slice(entry.span) for entry in read(of).entries if entry.path}


def test_a_block_ends_with_its_last_value() -> None:
    text = "a:\n  x: 1  # of x\n  # of the block\n\n# of b\nb:\n  - 1\n  -\n  - c: |\n      text\n\n  # end\n"
    assert spans_of(text) == {
        ("a",): "x: 1",
        ("a", "x"): "1",
        ("b",): "- 1\n  -\n  - c: |\n      text",
        ("b", 0): "1",
        ("b", 1): "",
        ("b", 2): "c: |\n      text",
        ("b", 2, "c"): "|\n      text",
    }


def test_anchors_and_tags_are_not_part_of_a_value() -> None:
    text = "a: &x 1\nb: !!str 2\nc: !new:torch.optim.Adam\n  lr: !ref <lr>\nd: !include other.yaml\ne: &y\n  # c\n  k: *x\nf: !!int '3'\n"
    found = document(text)
    assert spans_of(text)[("a",)] == "1"
    assert spans_of(text)[("e",)] == "k: *x"
    assert [(one.path, one.value, one.tag) for one in found.scalars() if one.tag] == [
        (("b",), "2", "!!str"),
        (("c", "lr"), "<lr>", "!ref"),
        (("d",), "other.yaml", "!include"),
        (("f",), 3, "!!int"),
    ]
    tagged = found.get("c")
    assert tagged is not None and tagged.tag == "!new:torch.optim.Adam" and tagged.shape is Shape.MAPPING
    shared = found.get("e", "k")
    assert shared is not None and shared.shared and shared.value == 1


@pytest.mark.parametrize(
    "text",
    [
        "base: &b {x: 1, y: 2}\nm:\n  <<: *b\n  y: 3\n",
        "a: &a {x: 1}\nb: &b\n  <<: *a\n  y: 2\nm:\n  <<: *b\n  x: 5\nn: {<<: *b}\n",
        "a: &a [1, {k: v}]\nb: *a\nc: [*a, *a]\n",
    ],
)
def test_merge_keys_as_pyyaml_has_them(text: str) -> None:
    expected = yaml.safe_load(text)
    found = document(text)
    assert data_of(found) == expected
    for entry in found.entries:
        assert entry.shared == bool(entry.path and entry.path[0] != "a" and entry.path[0] != "base" and is_shared(entry, found))


def test_the_first_of_several_merged_mappings_wins() -> None:
    """As https://yaml.org/type/merge.html has it; PyYAML 6.0.4 lets the last one win where a key has more than one letter."""
    found = document("a: &a {lr: 1}\nb: &b {lr: 2, z: 0}\nm: {<<: [*a, *b], w: 1}\n")
    assert data_of(found)["m"] == {"lr": 1, "z": 0, "w": 1}


def is_shared(entry: Entry, found: Document) -> bool:
    """Whether another entry that is not shared has the same place."""
    return any(one.span == entry.span and one.path != entry.path and not one.shared for one in found.entries)


def test_a_key_written_twice_counts_once() -> None:
    for text, kind in (("a: {x: 1}\na: {y: 2}\nb: 1\nb: 2\n", Kind.YAML), ('{"a": {"x": 1}, "a": {"y": 2}, "b": 1, "b": 2}', Kind.JSON)):
        found = document(text, kind)
        assert data_of(found) == {"a": {"y": 2}, "b": 2}
        assert found.get("a", "x") is None
        assert len([one for one in found.entries if one.path == ("b",)]) == 2


def test_documents_of_a_stream() -> None:
    found = document("---\na: 1\n---\n- b\n...\n---\n# nothing\n")
    assert found.documents == 3
    assert [data_of(found, number=number) for number in range(3)] == [{"a": 1}, ["b"], None]


@pytest.mark.parametrize("text, documents", [("", 0), ("# only\n", 0), ("---\n", 1), ("\ufeff", 0)])
def test_empty_yaml(text: str, documents: int) -> None:
    assert document(text).documents == documents


def test_json_as_programs_write_it() -> None:
    text = '// of the file\n{\n  "a": NaN, # one\n  /* two */ "b": [1, -Infinity,],\n  "c\\u00e9": "\\ud83d\\ude00",\n}\n'
    found = document(text, Kind.JSON)
    assert [one.path for one in found.entries] == [(), ("a",), ("b",), ("b", 0), ("b", 1), ("cé",)]
    assert found.get("cé").value == "😀"  # type: ignore[union-attr]


def test_python_objects_stay_text() -> None:
    found = document("a: !!python/object/apply:os.system ['echo']\nb: !!python/name:os.system\n")
    assert found.get("a", 0).value == "echo"  # type: ignore[union-attr]
    assert found.get("a").tag == "!!python/object/apply:os.system"  # type: ignore[union-attr]


def test_what_only_the_reader_in_python_takes() -> None:
    """``yaml.safe_load`` and OmegaConf use that reader, so the file is sound."""
    text = "é:\n  run: |\n    \techo\n  y: [a,?]\n"
    assert data_of(document(text.replace("a,?", "a"))) == yaml.safe_load(text.replace("a,?", "a"))
    assert spans_of(text)["é", "run"] == "|\n    \techo"


def test_places_in_toml() -> None:
    text = '\ufeff# é\r\na.b = "é"  # c\r\n[t."q.r"]\r\nx = [1,\r\n  2]\r\n[[l]]\r\ny = 2024-01-01\r\n[[l]]\r\nz = {k = \'v\'}\r\n'
    found = spans_of(text, Kind.TOML)
    assert found[("a", "b")] == '"é"'
    assert found[("t", "q.r", "x", 1)] == "2"
    assert found[("l", 0, "y")] == "2024-01-01"
    assert found[("l", 1, "z", "k")] == "'v'"
    assert data_of(document(text, Kind.TOML)) == {
        "a": {"b": "é"},
        "t": {"q.r": {"x": [1, 2]}},
        "l": [{"y": "2024-01-01"}, {"z": {"k": "v"}}],
    }


def error(text: str, kind: Kind = Kind.YAML) -> tuple[str, int]:
    with pytest.raises(DocumentError) as caught:
        document(text, kind)
    return caught.value.message, caught.value.line


@for_every(
    "text, kind, words, line",
    [
        pytest.param("a: 1\n b: 2\n", Kind.YAML, "mapping values are not allowed", 2, id="indent"),
        pytest.param("a: [1\nb: 2\n", Kind.YAML, "not YAML", 2, id="open-bracket"),
        pytest.param("a: 1\nb:\n\t- c\n", Kind.YAML, "cannot start any token", 3, id="tab"),
        pytest.param("a: *nowhere\n", Kind.YAML, "undefined alias", 1, id="alias"),
        pytest.param("é: 1\u2028x\n\na: *é\n", Kind.YAML, "not YAML", 3, id="quote"),
        pytest.param('{\n"a": 1\n"b": 2}', Kind.JSON, "`,` or `}` expected", 3, id="comma"),
        pytest.param('{"a": True}', Kind.JSON, "a value expected", 1, id="python-word"),
        pytest.param("{'a': 1}", Kind.JSON, "a key in double quotes", 1, id="single-quotes"),
        pytest.param('{"a": 1}}', Kind.JSON, "the end of the file expected", 1, id="one-too-many"),
        pytest.param('{"a": "x\ny"}', Kind.JSON, "a value expected", 1, id="line-in-a-string"),
        pytest.param('{"a": 01}', Kind.JSON, "a value expected", 1, id="octal"),
        pytest.param("", Kind.JSON, "a value expected", 1, id="empty"),
        pytest.param("/* open", Kind.JSON, "a value expected", 1, id="open-comment"),
        pytest.param("a = 1\nb = = 2\n", Kind.TOML, "not TOML", 2, id="toml"),
        pytest.param("a = 1\n[a]\n", Kind.TOML, "not TOML", 2, id="toml-twice"),
        pytest.param("a = [1,", Kind.TOML, "not TOML", 1, id="toml-end"),
    ],
)
def test_errors_have_their_line(text: str, kind: Kind, words: str, line: int) -> None:
    message, where = error(text, kind)
    assert words in message
    assert where == line
    assert "template" not in message


@for_every(
    "text, kind, placeholder, line",
    [
        pytest.param("a: 1\nb: {{ cookiecutter.name }}\n", Kind.YAML, "{{ cookiecutter.name }}", 2, id="jinja-value"),
        pytest.param("a: [{{ x }}, 1]\n", Kind.YAML, "{{ x }}", 1, id="in-a-list"),
        pytest.param("a: 1\n{% if b %}\nb: 2\n{% endif %}\n", Kind.YAML, "{% if b %}", 2, id="jinja-block"),
        pytest.param("a: x\nb: {{ x }}/log\nc: 1\n", Kind.YAML, "{{ x }}", 2, id="followed-by-text"),
        pytest.param("a: %%NAME%%\n", Kind.YAML, "%%NAME%%", 1, id="percent"),
        pytest.param("a: @NAME@\n", Kind.YAML, "@NAME@", 1, id="at"),
        pytest.param('{"a": CONFIG_SIZE, "b": 1}', Kind.JSON, "CONFIG_SIZE", 1, id="bare-word"),
        pytest.param('{\n"a": {{ x }}\n}', Kind.JSON, "{{ x }}", 2, id="json-jinja"),
        pytest.param('{"a": <FILL_IN>}', Kind.JSON, "<FILL_IN>", 1, id="angle"),
        pytest.param('{"a": ${BATCH}}', Kind.JSON, "${BATCH}", 1, id="shell"),
        pytest.param('{\n{% if x %}\n"a": 1\n{% endif %}\n}', Kind.JSON, "{% if x %}", 2, id="json-jinja-block"),
        pytest.param("a = 1\nb = {{ x }}\n", Kind.TOML, "{{ x }}", 2, id="toml-jinja"),
        pytest.param("b = <X>\n", Kind.TOML, "<X>", 1, id="toml-angle"),
    ],
)
def test_templates_are_named_as_such(text: str, kind: Kind, placeholder: str, line: int) -> None:
    message = f"it contains template placeholders (`{placeholder}`) and can be read only after rendering"
    assert error(text, kind) == (message, line)


def test_a_chat_template_in_a_string_is_none() -> None:
    text = "chat_template: \"{% for m in messages %}{{ m['content'] }}{% endfor %}\"\nt: |\n  {% if a %}\n  {{ b }}\nu: ${{ matrix.x }}\n"
    assert document(text).get("t") is not None
    # Nor is it the reason for another error.
    assert error(text + "a: [1\n")[0].startswith("not YAML")
    assert document('{"chat_template": "{{ bos_token }}{% if x %}"}', Kind.JSON).get("chat_template") is not None


def test_charts_and_data_are_told_apart_from_errors() -> None:
    for chart in ("{{- if .Values.a }}\na: 1\n{{- end }}\n", "name: {{ .Release.Name }}\n", 'a:\n  {{ include "x" . | nindent 2 }}\n'):
        with pytest.raises(ChartError):
            document(chart)
    for data in ('{"a": 1}\n{"a": 2}\n', "[" + "1," * json_reader.MAX_COMMAS + "1, 2]"):
        with pytest.raises(DataError):
            document(data, Kind.JSON)
    with pytest.raises(DataError):
        document("- 1\n" * (yaml_entries.MAX_ENTRIES + 1))


def test_bombs_are_refused() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))
    assert "aliases" in error(bomb)[0]
    merges = "a0: &a0 {k0: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}\n" for n in range(1, 40))
    assert document(merges).get("a39", "k0") is not None
    assert "aliases" in error("a: &a [*a]\n")[0]
    for text, kind in (("[" * 5000, Kind.JSON), ("[" * 200 + "]" * 200, Kind.JSON), ("[" * 200 + "]" * 200, Kind.YAML)):
        assert error(text, kind)[0]
    assert error("a = " + "[" * 200 + "]" * 200, Kind.TOML)[0]


@pytest.mark.parametrize("name", ["tests/fixtures"])
def test_every_fixture_is_read(name: str) -> None:
    """The documents of our own fixtures, templates and broken ones apart."""
    root = Path(__file__).parent.parent / name
    for path in sorted(root.rglob("*")):
        kind = {".yaml": Kind.YAML, ".yml": Kind.YAML, ".json": Kind.JSON, ".toml": Kind.TOML}.get(path.suffix)
        if kind is None or "unparsable-file" in path.parts:
            continue
        of = Source.read(path, kind)
        check_places(of, read(of))
