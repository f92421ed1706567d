"""The values that a program reads from a configuration file: users write them, and the project's files show them.

    class Trainer:
        def __init__(self, model, save_folder=None):
            self.save_folder = save_folder          # unset: the project's files have no trainer.save_folder

    trainer = Trainer(model, **json.load(file)["trainer"])
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.concepts.programs import Programs
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr
from ldlm_lint.program.walks import Through, origins
from ldlm_lint.source import Kind

READERS = frozenset(
    [
        *(f"{yaml}.{name}" for yaml in ("yaml", "ruamel.yaml", "ruamel_yaml") for name in ("load", "safe_load", "full_load", "unsafe_load", "load_all")),
        *("json.load", "json.loads", "toml.load", "toml.loads", "tomllib.load", "tomli.load", "hjson.load", "commentjson.load"),
        *("omegaconf.OmegaConf.load", "omegaconf.OmegaConf.from_cli", "hydra.compose", "mmcv.Config.fromfile", "mmengine.Config.fromfile"),
        *("mmengine.config.Config.fromfile", "mmcv.utils.Config.fromfile"),
    ]
)
"""Functions that give what a configuration file holds."""
_SAME = frozenset({"dict", "OrderedDict", "deepcopy", "copy", "EasyDict", "edict", "AttrDict", "Munch", "to_container", "create", "merge", "Box"})
"""Functions and classes, by last name, that give a mapping in another form."""
_DICTIONARIES = frozenset({"dict", "OrderedDict", "UserDict"})
_PARTS = frozenset({"get", "pop", "copy", "setdefault", "items", "values", "__getitem__"})
_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)
_BACK = Through.NAMES | Through.PARTS | Through.PARAMETERS | Through.OUTSIDE | Through.ATTRIBUTES | Through.RETURNS


class ReadSettings(Concept):
    """Answers for the expressions and calls of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._unset: dict[tuple[Class, str], object] = {}

    def may_be_added(self, call: Call) -> bool:
        """Whether the unpacked arguments of a call are unknown only because a user's configuration file fills them."""
        opened = call.unpacked_from
        may_be = bool(opened) and all(one is not None and self.is_read(one) for one in opened)
        return may_be and not any(one.kind == "star" for one in call.positional)

    def may_give(self, call: Call, *names: str) -> bool:
        """Whether the code of a call may give one of some arguments, or a configuration that names one does."""
        for name in names:
            given = call.argument(name)
            is_left_to_user = given.is_open and self.may_be_added(call) and not self.code.is_named_in_configurations(*names)
            if not (given.is_absent or given.options or is_left_to_user):
                return True
        return False

    def names(self, expr: Expr) -> bool:
        """Whether a file determines what an expression is, as in ``getattr(torch, config["dtype"])``: another file may
        choose something else."""
        found = expr.unnamed
        return isinstance(found, Call) and any(map(self.is_read, found.positional))

    def is_read(self, expr: Expr) -> bool:
        """Whether an expression is, or may be, a part of a file that the program reads."""
        return any(map(_reads, origins(expr, _BACK, _handed_on)))

    def unset_value(self, attribute: Expr) -> object:
        """The constant that an attribute of ``self`` is unless a user's file sets it; `Ellipsis` for any other expression."""
        found = attribute.unnamed
        owner = found.owner_of_self
        if owner is None:
            return ...
        key = (owner, found.name)
        if key not in self._unset:
            self._unset[key] = self._find(*key)
        return self._unset[key]

    def _find(self, owner: Class, name: str) -> object:
        family = dict.fromkeys((*owner.bases, *owner.subclasses))
        written = [value for one in family for value in one.set_itself(name)]
        if len(written) != 1 or self.code.writes_of(name) or not any(map(self._is_built_with_mapping, family)):
            return ...
        parameter = written[0].unnamed
        if parameter.kind != "param" or parameter.function.name != "__init__" or parameter.default is None:
            return ...
        default = parameter.default.unnamed.constant
        return default if default is not ... and self._is_left(parameter) else ...

    def _is_built_with_mapping(self, owner: Class) -> bool:
        """Whether a call by the name of a class unpacks a mapping: who calls its constructor is looked for only then."""
        return any(call.unpacked for call in self.code.calls_named(owner.name))

    def _is_left(self, parameter: Expr) -> bool:
        """Whether each call of a constructor leaves a parameter out, and one of them may get it from a user's file."""
        calls = [one for one in parameter.passed if self.code[Programs].of(one.call.function) - {None}]
        is_left = all(one.is_visible and one.value is None and self._leaves(one.call, parameter.name) for one in calls)
        return is_left and any(one.call.unpacked for one in calls)

    def _leaves(self, call: Call, name: str) -> bool:
        if any(one.kind == "star" for one in call.positional):
            return False
        return not call.unpacked or (self.may_be_added(call) and all(self._is_shown_without(one, name) for one in call.unpacked))

    def _is_shown_without(self, mapping: Expr, name: str) -> bool:
        """Whether files of the project show the section that a mapping is, and neither they nor a script set a key of it."""
        shown, files = False, self.code.files
        for path, kind in files.others.items():
            document = files.document(path) if kind in _DOCUMENTS else None
            if document is None and name.encode() in files.data(path):
                return False
            paths = [entry.path for entry in document.entries] if document is not None else []
            if any(one[-len(section) - 1 :] == (*section, name) for one in paths for section in mapping.settings):
                return False
            shown = shown or any(one[-len(section) :] == section for one in paths for section in mapping.settings)
        return shown


def _reads(expr: Expr) -> bool:
    """Whether an expression is what a file holds: read by a call, or passed by ``@hydra.main(…)``."""
    if isinstance(expr, Call):
        return not READERS.isdisjoint(expr.callee.outside_names)
    decorators = expr.function.decorators if expr.kind == "param" else []
    composed = (one.callee for one in decorators if isinstance(one, Call) and one.called_name in ("main", "hydra_main"))
    return any(name.startswith("hydra.") for one in composed for name in one.outside_names)


def _handed_on(expr: Expr) -> Iterator[Expr]:
    """What a call gives back in another form: ``dict(config)``, ``config.get("optimizer")``."""
    if isinstance(expr, Call):
        if expr.called_name in _SAME or _makes_mapping(expr.callee):
            yield from (*expr.positional, *expr.unpacked)
        elif expr.receiver is not None and expr.called_name in _PARTS:
            yield expr.receiver


def _makes_mapping(callee: Expr) -> bool:
    """Whether a class of the project is a dictionary of another form."""
    return any(name.rpartition(".")[2] in _DICTIONARIES for owner in callee.as_classes for name in owner.outside_bases)


__all__ = ["READERS", "ReadSettings"]
