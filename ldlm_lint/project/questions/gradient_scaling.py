"""What the rules of scaled gradients and of fused optimizers, which unscale by themselves, ask of the project."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.project.makers import Makers
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.skim import without_comments
from ldlm_lint.python.slots import Slot

_SCALER = lazily(r"(^|\.)(Sharded)?GradScaler$")
_OFF = lazily(r"enabled\s*=\s*False")
_TRAINER = lazily(rb"(?:^|[^\w])(Trainer\()", re.M)
_LIGHTNING = lazily(rb"lightning")
_MIXED = {"16", "16-mixed", "bf16", "bf16-mixed"}
# What clips, and what may be told to by a command or a configuration of any name.
_MAY_CLIP = Trait(
    lazily(rb"gradient_clip|clip_grad|LightningCLI|from_argparse_args"),
    (b"gradient_clip", b"clip_grad", b"LightningCLI", b"from_argparse_args"),
)
_RESTORES = Trait(lazily(rb"\boptim\w*(?:\[[^\]]*\])?\.load_state_dict\("), (b"load_state_dict",), code=True)
_REFUSES = Trait(lazily(rb"\[[\"']fused[\"']\]\s*="), (b"fused",))


def _scales_gradients(context: Context, finding: Finding, slots: str) -> Verdict:
    """No call that may have made the scaler is a class of the project, which may unscale by itself, or one switched off."""
    makers, project = Makers(context.project, context.calls), context.project
    on = known = False
    for text in filter(None, slots.split(";")):
        for path, call in makers.calls_behind(finding.span.path, Slot(*text.split(":")[:3])):
            if makers.bases(path, call) is not None:
                known = True
            elif call.callee.kind == "import" and _SCALER.search(call.callee.name):
                known = True
                on = on or _OFF.search(_call_text(project.data(path), *map(int, call.position.split(":")))) is None
    return Verdict(on or not known)


def _call_text(data: bytes, line: int, column: int) -> str:
    """The source of a call from its first byte to its closing parenthesis."""
    lines = data.split(b"\n")[line - 1 :]
    text = b"\n".join([lines[0][column:], *lines[1:]]) if lines else b""
    depth = 0
    for at, byte in enumerate(text):
        depth += (byte in b"([{") - (byte in b")]}")
        if depth == 0 and byte in b")":
            return text[: at + 1].decode(errors="replace")
    return ""


def _loss_is_divided_nowhere(context: Context, finding: Finding, name: str) -> Verdict:
    """No other file of the training divides by the number of micro-batches, or by a name for it."""
    words = rb"accum|micro|num_items" + (b"|" + re.escape(name).encode() + rb"\b" if name else b"")
    divides = re.compile(rb"(?:/=?|\bdiv_?\(|true_divide\()[ \t]*\(?[ \t]*[\w.\[\]\"']*(?:" + words + rb")", re.I)
    counts = re.compile(rb"\blen\(|steps|ceil|total|num_|n_|size|samples|tokens|epoch|//", re.I)
    own = finding.span.path
    for path in trainings_of(context.project, own) - {own}:
        code = without_comments(context.project.data(path))
        for match in divides.finditer(code):
            start = code.rfind(b"\n", 0, match.start()) + 1
            if not counts.search(code[start : match.start()]):
                return Verdict(False)
    return Verdict(True)


def _lightning_clips_mixed(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A Lightning Trainer that uses the file's module clips gradients in mixed precision, both set by literals."""
    project, path = context.project, finding.span.path
    for one in sorted(project.files):
        data = project.data(one)
        if b"gradient_clip_val" not in data or path not in project.reach(one) or project.is_test(one):
            continue
        for line, call in _trainers(data):
            if clips_mixed_precision(call):
                return Verdict(True, (Related(context.line_span(one, line), "this Trainer clips in mixed precision"),))
    return Verdict(False)


def _lightning_clips_nowhere(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Lightning Trainers that use the file's module are made with settings written out, and nothing in the project clips gradients."""
    project, path = context.project, finding.span.path
    key = ("lightning-clips-nowhere", "")
    if key not in context.answers:
        configured = any(b"gradient_clip" in project.data(one) for one in project.others)
        context.answers[key] = not configured and not project.any_shows(project.files, _MAY_CLIP)
    if not context.answers[key]:
        return Verdict(False)
    made = [call for one in sorted(project.importers(path)) if not project.is_test(one) for _, call in _trainers(project.data(one))]
    return Verdict(bool(made) and all(map(_is_written_out, made)))


def _trainers(data: bytes) -> Iterator[tuple[int, str]]:
    """The constructions of Trainers in a file with Lightning: the line and the text of each."""
    for match in _TRAINER.finditer(data) if _LIGHTNING.search(data) else ():
        line = data.count(b"\n", 0, match.start(1)) + 1
        column = match.start(1) - (data.rfind(b"\n", 0, match.start(1)) + 1)
        yield line, _call_text(data, line, column)


def _is_written_out(call: str) -> bool:
    """Whether a Trainer takes all its settings by name, and hands its model to no engine that has optimizers of its own."""
    try:
        tree = ast.parse(call, mode="eval").body
    except SyntaxError:
        return False
    return isinstance(tree, ast.Call) and all(one.arg for one in tree.keywords) and "deepspeed" not in call.lower()


def clips_mixed_precision(call: str) -> bool:
    """Whether the text of a Trainer's construction asks for mixed precision and for clipping."""
    try:
        tree = ast.parse(call, mode="eval").body
    except SyntaxError:
        return False
    given = {one.arg: one.value.value for one in getattr(tree, "keywords", ()) if isinstance(one.value, ast.Constant)}
    limit = given.get("gradient_clip_val")
    clips = isinstance(limit, (int, float)) and not isinstance(limit, bool) and limit > 0
    return clips and str(given.get("precision")) in _MIXED


def _optimizer_state_is_restored(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A file of the training loads an optimizer's state, and none sets ``fused`` again."""
    project = context.project
    files = trainings_of(project, finding.span.path)
    if project.any_shows(files, _REFUSES):
        return Verdict(False)
    path = next((one for one in sorted(files) if project.any_shows((one,), _RESTORES)), None)
    if path is None:
        return Verdict(False)
    data = project.data(path)
    place = _RESTORES.pattern.search(data)
    line = data.count(b"\n", 0, place.start()) + 1 if place else 1
    return Verdict(True, (Related(context.line_span(path, line), "the checkpoint's flags replace those of the constructor"),))


QUESTIONS: dict[str, Question] = {
    "scales-gradients": _scales_gradients,
    "loss-is-divided-nowhere": _loss_is_divided_nowhere,
    "lightning-clips-mixed": _lightning_clips_mixed,
    "lightning-clips-nowhere": _lightning_clips_nowhere,
    "optimizer-state-is-restored": _optimizer_state_is_restored,
}
