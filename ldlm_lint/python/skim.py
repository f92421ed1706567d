"""What can be told of a Python file without parsing it: its imports, the names it calls, the words it holds.

The project pass asks these of every file of a project, so they cost one regular expression each. A match inside a
string or a comment is possible; the questions are put so that it can only make the linter more silent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ldlm_lint.rules.memory import MISSING_ACTIVATION_CHECKPOINTING

_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]*)|import[ \t]+([^\n#;]*))", re.M)
_CALLED = re.compile(rb"([A-Za-z_]\w*)[ \t]*\(")
_DEFINED = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_]\w*)", re.M)
_NAME = re.compile(rb"[A-Za-z_][\w.]*")
_READ = r"""(?:environ(?:\.get)?[ \t]*[\[(]|getenv[ \t]*\()[ \t\n]*["']%s["'](?![ \t]*\][ \t]*=[^=])"""
_CHECKPOINTING = re.compile(b"|".join(map(re.escape, MISSING_ACTIVATION_CHECKPOINTING.silencers)))
_COMMENT = re.compile(rb"#[^\n]*")
_CHECKPOINT_WORD = re.compile(rb"ckpt|checkpoint|snapshot", re.I)
_REMOVAL = re.compile(rb"(?:os\.remove|os\.unlink|rmtree)\([ \t]*(?P<argument>[\w.\[\]]*)|(?P<owner>[\w.\[\]]+)\.unlink\(")
_OTHER_FILES = re.compile(rb"lock|tmp|temp|cache|log", re.I)
_ROTATION = re.compile(
    rb"save_total_limit|total_limit|max_keep|keep_last|keep_latest|max_to_keep|keep_checkpoint|keep_n\b|num_to_keep|save_top_k"
    rb"|max_checkpoints|checkpoint_history|rotate_checkpoint|cleanup_checkpoint|cleanup_old|remove_old|delete_old|prune_checkpoint|n_saved"
    rb"|clean_checkpoint|num_keep|save_last_n|keep_every"
)
_NEAR = 600


@dataclass(frozen=True, slots=True)
class Skim:
    """The facts of one file that no tree is needed for.

    ``imports`` are dotted names as written (leading dots kept), one for each module and each imported name.
    """

    imports: tuple[str, ...]
    called: frozenset[str]
    defined: frozenset[str]
    trains: bool
    cuda: bool
    engine: bool
    checkpoints_activations: bool
    prunes: bool


def skim(data: bytes) -> Skim:
    """The facts of a file's bytes."""
    code = without_comments(data)
    return Skim(
        imports=tuple(_imports(data)),
        called=frozenset(name.decode() for name in _CALLED.findall(code)),
        defined=frozenset(name.decode() for name in _DEFINED.findall(data)),
        trains=any(word in code for word in (b"backward(", b"zero_grad(", b"Trainer(", b".fit(", b"train_batch(")),
        cuda=b"cuda" in data or b'accelerator="gpu"' in data,
        engine=b"deepspeed.initialize" in data,
        checkpoints_activations=_CHECKPOINTING.search(code) is not None,
        prunes=_ROTATION.search(code) is not None or _removes_checkpoints(code),
    )


def without_comments(data: bytes) -> bytes:
    """The bytes with everything from a ``#`` to the end of its line taken out, strings with a ``#`` included."""
    return _COMMENT.sub(b"", data)


def reads_variable(data: bytes, name: str) -> bool:
    """Whether Python code reads an environment variable by its literal name; assigning it is not reading it."""
    return name.encode() in data and re.search((_READ % re.escape(name)).encode(), data) is not None


def _imports(data: bytes) -> list[str]:
    found: list[str] = []
    for module, names, plain in _IMPORT.findall(data):
        if plain:
            found += [part.strip().split(b" ")[0].decode(errors="replace") for part in plain.split(b",") if part.strip()]
            continue
        base = module.decode(errors="replace")
        found.append(base)
        for part in names.strip(b"() \t\r\n").split(b","):
            match = _NAME.match(part.strip())
            if match:
                found.append(base + ("" if base.endswith(".") else ".") + match.group().decode())
    return found


def _removes_checkpoints(data: bytes) -> bool:
    """Whether a deletion of anything but a lock, log or temporary file stands near a word that speaks of checkpoints."""
    return any(
        not _OTHER_FILES.search(match["argument"] or match["owner"] or b"")
        and _CHECKPOINT_WORD.search(data, max(match.start() - _NEAR, 0), match.end() + _NEAR // 3)
        for match in _REMOVAL.finditer(data)
    )
