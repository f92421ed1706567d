"""Models that are run for their results, not for training: the place, the mode, and whether gradients are recorded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.evaluation_learning import COMPUTING, learns_after, learns_at, still_loops
from ldlm_lint.checkers.evaluation_modes import evaluates_before, evaluates_elsewhere, switches
from ldlm_lint.patterns import lazily
from ldlm_lint.python.gradients import dotted, is_held, is_quiet, part_of, root_of, switches_off
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.places import by_function, loops_around, position_of, scope_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.python.warm_ups import is_warm_up
from ldlm_lint.vocabulary.frozen_texts import is_frozen
from ldlm_lint.vocabulary.models import BUILDS, NO_FORWARD, RUNS, looks_like_model, names_evaluation, words_of

_DIFFERENTIATES = lazily(
    r"attack|adversar|adapt|(^|_)tent(_|$)|saliency|grad_?cam|attribution|perceptual|unroll|inversion"
)
# ``tokenizer.decode(…)`` is no ``decode`` of a model.
_TEXTUAL = lazily(r"(?:tokeni[sz]er|processor|vocab\w*|tok)$", re.I)
_PREDICTS = lazily(r"(^|_)(predict|prediction|infer|inference)(_|$)")
_FRAMEWORKS = lazily(
    r"^(lightning|transformers|ignite|mmengine|mmcv|fastai|detectron2|catalyst|composer|keras|tensorflow|torchtnt|trl"
    r"|sentence_transformers|flair|allennlp|stable_baselines3|torch\.autograd|unittest|pytest|nemo|speechbrain"
    r"|super_gradients)\b"
)
_TORCH = "_ldlm_imports_torch"
_PLAIN = frozenset({"object", "ABC", "abc.ABC", "typing.Generic", "typing.Protocol", "Generic", "Protocol"})


class Run(NamedTuple):
    """A call that runs a model for its results.

    ``loops`` are those around it that compute no gradients, innermost first; ``direct`` if the model is called here,
    else a function of the project may do it; ``shown`` is the call that sets evaluation mode; ``learns`` if the
    function around it computes gradients elsewhere; ``needs`` names what callers must add.
    """

    call: nodes.Call
    root: str
    owner: nodes.NodeNG
    loops: tuple[nodes.NodeNG, ...]
    direct: bool
    shown: nodes.Call | None
    learns: bool
    needs: tuple[str, ...]

    @property
    def place(self) -> nodes.NodeNG:
        """The code for which one edit turns gradients off: the function; if it computes gradients elsewhere, the loop
        or statement."""
        if not self.learns and not isinstance(self.owner, nodes.Module):
            return self.owner
        whole = bool(self.loops) and isinstance(self.loops[-1], (nodes.For, nodes.While))
        return self.loops[-1] if whole else self.call.statement()

    @property
    def group(self) -> nodes.NodeNG:
        """The common part of the runs of one finding: their place, or the block of statements between two phases of
        training."""
        return self.place if self.loops or not self.learns else self.place.parent

    @property
    def subject(self) -> str:
        """The claim for the project: see `ldlm_lint.project.questions.evaluation`."""
        lines = [str(one.lineno or one.iter.lineno) for one in self.loops]
        if self.learns and not lines:
            lines = ["-1"]
        helper = "" if self.direct else position_of(self.call)
        bases = ",".join(_foreign_bases(self.owner))
        return "|".join((scope_name(self.owner), ",".join(lines), ",".join(self.needs), helper, self.root, bases))


def runs_of(module: nodes.Module, text: str) -> Iterator[Run]:
    """The runs of models in a file that record gradients although no code in their function computes any."""
    # Where no mode is ever switched, only a loop shows an evaluation.
    switched = any(word in text for word in (".eval(", "train(False", "train(mode"))
    calls = by_function(module, nodes_of(module, (nodes.FunctionDef, nodes.Call)))
    if any(map(switches_off, calls[module])):
        return
    for owner, inner in calls.items():
        possible = [call for call in inner if (call.args or call.keywords) and (switched or loops_around(call))]
        if not possible or not _may_evaluate(owner) or any(map(switches_off, inner)):
            continue
        evaluated = frozenset(one for _, one, mode in switches(owner) if not mode)
        candidates = [(call, *model) for call in possible for model in _models(call, owner, evaluated)]
        if not candidates:
            continue
        learns = any(map(learns_at, nodes_of(owner, COMPUTING)))
        for call, root, direct in candidates:
            found = _run_of(call, root, direct, owner, learns)
            if found is not None and not is_frozen(root, text):
                yield found


def _may_evaluate(owner: nodes.NodeNG) -> bool:
    if isinstance(owner, nodes.Module):
        return True
    framework = any(_FRAMEWORKS.search(base) for base in _bases(owner))
    return not framework and not is_held(owner) and not _DIFFERENTIATES.search(scope_name(owner).lower())


def _run_of(call: nodes.Call, root: str, direct: bool, owner: nodes.NodeNG, learns: bool) -> Run | None:
    if not _is_recorded(call) or is_warm_up(call):
        return None
    loops = loops_around(call)
    still = still_loops(loops)
    shown = evaluates_before(call, root, owner)
    if learns:
        if shown is None or not loops or learns_after(call, still, loops, owner):
            return None
        between = bool(still) or shown.lineno > loops[0].statement().lineno
        return Run(call, root, owner, tuple(still), direct, shown, True, ()) if between else None
    if shown is None and any(mode and name == root for _, name, mode in switches(owner)):
        return None
    needs = _needs(owner, shown) if not loops else ()
    # A class that calls itself is a model, too, even if its base class is in another file.
    of_model = root == "self" or _stands_in_module_class(owner)
    if shown is None and not of_model:
        shown = evaluates_elsewhere(call, root, owner)
    if shown is not None:
        once = isinstance(owner, nodes.Module) and not loops
        return None if once else Run(call, root, owner, tuple(loops), direct, shown, False, needs)
    if isinstance(owner, nodes.Module) or not loops or not _imports_torch(owner.root()):
        return None
    if _is_evaluation(owner) and not of_model:
        # A prediction may be a part of a loss, too.
        needs = ("apart",) if _PREDICTS.search(words_of(owner.name)) else ()
    elif direct and _is_given(root, owner) and (not of_model or RUNS.search(owner.name)):
        needs = ("mode",)
    else:
        return None
    return Run(call, root, owner, tuple(loops), direct, None, False, needs)


def _needs(owner: nodes.NodeNG, shown: nodes.Call | None) -> tuple[str, ...]:
    """What callers of a function without a loop must have: a loop, outside of training if it may train."""
    own = shown is not None and isinstance(owner, nodes.FunctionDef)
    return ("repetition" if own and (_returns_nothing(owner) or _is_evaluation(owner)) else "loop",)


def _imports_torch(module: nodes.Module) -> bool:
    """Whether a model in a file may be a torch model."""
    known = module.__dict__.get(_TORCH)
    if known is None:
        names = [one.modname for one in nodes_of(module, nodes.ImportFrom)]
        names += [name for one in nodes_of(module, nodes.Import) for name, _ in one.names]
        known = any(name.partition(".")[0] == "torch" for name in names)
        module.__dict__[_TORCH] = known
    return known


def _returns_nothing(owner: nodes.NodeNG) -> bool:
    """Whether a function does not return its results, so that they cannot be differentiated."""
    returns = nodes_of(owner, (nodes.Return, nodes.Yield))
    return isinstance(owner, nodes.FunctionDef) and not any(one.value is not None for one in returns)


def _models(call: nodes.Call, owner: nodes.NodeNG, evaluated: Collection[str]) -> Iterator[tuple[str, bool]]:
    """The models that a call with arguments may run, and whether it does so for certain; some are ``evaluated``."""
    root = root_of(call.func)
    owned, _, name = root.rpartition(".")
    if owned == "self" and (method := _method(owner, root)) is not None:
        yield from ((one, False) for one in _run_by(method))
    elif root and (root in evaluated or looks_like_model(name)) and _is_variable(call.func):
        yield root, True
    elif owned and _may_run(owned in evaluated, name) and _is_variable(call.func):
        if not _TEXTUAL.search(owned):
            yield owned, False
    elif not BUILDS.search(words_of(last_name(call.func))):
        passed = (dotted(one) for one in (*call.args, *(keyword.value for keyword in call.keywords)))
        yield from ((one, False) for one in passed if one and looks_like_model(one.rpartition(".")[2]))


def _may_run(evaluated: bool, method: str) -> bool:
    """Whether a method of a model may run it: one with such a name, or any method of a model in evaluation."""
    return RUNS.search(method) is not None or (evaluated and method not in NO_FORWARD)


def _run_by(method: nodes.FunctionDef) -> list[str]:
    calls = (one for one in nodes_of(method, nodes.Call) if one.args or one.keywords)
    return sorted(
        {
            root
            for one in calls
            if (root := root_of(one.func)).startswith("self.") and looks_like_model(last_name(one.func))
        }
    )


def _method(owner: nodes.NodeNG, root: str) -> nodes.FunctionDef | None:
    """The method of the same class that ``self.name`` is."""
    if not isinstance(owner.parent, nodes.ClassDef) or root.count(".") != 1:
        return None
    found = owner.parent.locals.get(root.removeprefix("self."), [None])[-1]
    return found if isinstance(found, nodes.FunctionDef) else None


def _is_variable(function: nodes.NodeNG) -> bool:
    """Whether the callee is a variable or an attribute of one, not a function or class."""
    while isinstance(function := part_of(function), nodes.Attribute):
        function = function.expr
    if not isinstance(function, nodes.Name):
        return False
    # ``import model`` and then ``model = model.Net()`` is a variable too.
    found = bindings(function)
    return any(isinstance(one, (nodes.AssignName, nodes.Arguments)) for one in found) and not any(
        isinstance(one, (nodes.FunctionDef, nodes.ClassDef)) for one in found
    )


def _is_recorded(call: nodes.Call) -> bool:
    for parent in call.node_ancestors():
        if isinstance(parent, (nodes.Lambda, nodes.FunctionDef)):
            return isinstance(parent, nodes.FunctionDef)
        if isinstance(parent, nodes.With) and is_quiet(parent):
            return False
    return True


def _is_given(root: str, owner: nodes.NodeNG) -> bool:
    """Whether the model comes from outside of the function: a parameter, or an attribute of the object."""
    first = root.partition(".")[0]
    return any(one.name == first for one in owner.args.arguments)


def _is_evaluation(owner: nodes.FunctionDef) -> bool:
    given = [one for one in owner.args.arguments if one.name not in ("self", "cls")]
    # ``def test_forward():`` is a unit test.
    return names_evaluation(owner.name) and (not owner.name.startswith("test_") or bool(given))


def _bases(owner: nodes.NodeNG, depth: int = 0) -> list[str]:
    """The qualified names of the classes that the class of a method derives from, through classes of the same file."""
    parent = owner.parent
    if not isinstance(parent, nodes.ClassDef):
        return []
    return _bases_of(parent, depth)


def _bases_of(node: nodes.ClassDef, depth: int) -> list[str]:
    found: list[str] = []
    for base in node.bases:
        for name in qualified(base):
            local = node.root().locals.get(name.lstrip("."), [None])[0] if name.startswith(".") else None
            if isinstance(local, nodes.ClassDef) and local is not node and depth < 4:
                found += _bases_of(local, depth + 1)
            else:
                found.append(name if name != "?" else dotted(base))
    return found


def _stands_in_module_class(owner: nodes.NodeNG) -> bool:
    """A method of a model: its caller decides whether gradients are recorded."""
    return any(re.search(r"(^|\.)(Module|LightningModule|PreTrainedModel|ModelMixin)$", base) for base in _bases(owner))


def _foreign_bases(owner: nodes.NodeNG) -> list[str]:
    return [base for base in _bases(owner) if base not in _PLAIN and not base.startswith("torch.nn.")]
