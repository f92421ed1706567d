"""The results of functions and classes of other packages, by their dotted names."""

from __future__ import annotations

import re
from collections.abc import Callable

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import (
    A_DEVICE,
    BOOLEAN,
    CPU,
    DEVICE,
    DEVICE_LOADER,
    FIRST,
    HOMES,
    LOADER,
    MASK,
    MAY_BE_ON_DEVICE,
    NOTHING,
    OF_PYTHON,
    ON_DEVICE,
    ON_HOST,
    SOME_TENSOR,
    Value,
)
from ldlm_lint.program.calls import LATER, UNKNOWN, Calls
from ldlm_lint.program.index import TIMM
from ldlm_lint.program.modules import Module
from ldlm_lint.program.records import OPEN_RECORDS
from ldlm_lint.program.settings_read import Setting, settings_read, taken_apart
from ldlm_lint.vocabulary import tensors
from ldlm_lint.vocabulary.loaders import LOADERS
from ldlm_lint.vocabulary.parsers import RECORD_READERS

_LISTS = frozenset(
    f"torch.nn.{name}" for name in ("ModuleList", "Sequential", "ModuleDict", "ParameterList", "ParameterDict")
)
_WRAPPERS = (
    *("torch.nn.parallel", "torch.nn.DataParallel", "torch.distributed.fsdp", "torch.compile", "torch.jit"),
    *("torch.nn.SyncBatchNorm.convert", "torch.nn.modules.batchnorm.SyncBatchNorm.convert"),
)
_WITHOUT_TENSOR = frozenset({"no_grad", "inference_mode", "enable_grad", "autocast"})
_LOADERS = ("DataLoader", "WebLoader")
_FUNCTIONS = frozenset({"f", "b"})
_CALLING = frozenset({"map", "filter", "sorted", "min", "max", "list", "next"})
"""Builtin functions that call what they are given."""
_LOOKING = ("functools.wraps", "functools.update_wrapper", "inspect.", "typing.", "dataclasses.", "copy.", "pickle.")
"""Functions of Python that look at a function without calling it."""

Configured = Callable[[Setting], frozenset[str]]
"""What the configuration files say for a setting."""


class Given:
    """A call with the values of its arguments, which are asked for where something rests on them: the target of most calls
    is a function of the project, which takes what it needs itself."""

    def __init__(self, program: Calls, module: Module, call: int) -> None:
        self.module = module
        self.call = call
        """Its key."""
        self._program = program
        self._args: list[Value] | None = None
        self._keywords: dict[str, Value] | None = None

    @property
    def args(self) -> list[Value]:
        """The values of the positional arguments; of a ``*value`` those of its elements."""
        if self._args is None:
            get, nodes, base = self._program.get, self.module.nodes, self.module.base
            rows = ((nodes[one], base | one) for one in self.row[2])
            self._args = [self._program.elements(get(base | row[1])) if row[0] == "star" else get(key) for row, key in rows]
        return self._args

    @property
    def keywords(self) -> dict[str, Value]:
        """The values of the arguments that are named."""
        if self._keywords is None:
            self._keywords = {name: self._program.get(self.module.base | one) for name, one in self.row[3] if name}
        return self._keywords

    @property
    def row(self) -> Node:
        """The call's row."""
        return self.module.nodes[self.call & MASK]

    def key(self, index: int) -> int:
        """The key of a positional argument."""
        return self.module.base | self.module.nodes[self.call & MASK][2][index]

    @property
    def every(self) -> list[Value]:
        """All values."""
        return [*self.args, *self.keywords.values()]


class Outside(Calls):
    """Calls that leave the project."""

    configured: Configured | None = None

    def outside(self, name: str, given: Given) -> Value:
        """The result of calling a dotted name."""
        top = name.partition(".")[0]
        last = name.rpartition(".")[2]
        if not ((top == "builtins" and last not in _CALLING) or name.startswith(_LOOKING)):
            self.called_by_others(given)
        if top == "torch":
            return self._of_torch(name, given)
        if name in RECORD_READERS:
            return self._read_record(given)
        if top == "builtins":
            return self._of_builtins(last, given)
        if last == "checkpoint" and top in ("deepspeed", "fairscale"):
            return self._recomputed(given)
        if last.endswith(_LOADERS) or name in LOADERS:
            return self._loader(name, given)
        if last in OPEN_RECORDS or name == "dataclasses.asdict":
            return frozenset([self.atoms.atom("d", given.call)])
        if top in ("functools", "importlib", "copy", "itertools", "collections", "hydra", "argparse", "dataclasses"):
            return self._of_python(top, last, name, given)
        if name == "datetime.timedelta":
            return self._made(name, given) | OF_PYTHON
        if top in tensors.HOST_LIBRARIES:
            return OF_PYTHON | (NOTHING if top in ("numpy", "np") else self._objects(given))
        if top == "tqdm" or last in ("tqdm", "track"):
            return self._passed_on(given) or OF_PYTHON
        if last == "initialize" and "model" in given.keywords:
            model = dict(given.module.nodes[given.call & MASK][3])["model"]
            return frozenset([self.atoms.atom("init", given.module.base | model)])
        return self._of_packages(name, top, last, given)

    def called_by_others(self, given: Given) -> None:
        """A function that is handed to another package is called there; a decorator only replaces it."""
        if given.call in self.starts or given.call in self.decorating:
            return
        of = self.atoms.of
        for value in given.every:
            if any(one >= FIRST and of[one][0] in _FUNCTIONS for one in value):
                for fields in self.atoms.kinds(value, "f") + self.atoms.kinds(value, "b"):
                    self.edge(fields[1], given.call, UNKNOWN)

    def _objects(self, given: Given) -> Value:
        return frozenset(
            one
            for value in given.args
            for one in value
            if one in (LOADER, DEVICE_LOADER) or (one >= FIRST and self.atoms.of[one][0] in ("i", "self"))
        )

    def _loaders(self, given: Given) -> Value:
        """The loaders passed to an object that may iterate over them, such as a progress bar."""
        loaders = (value for value in given.every if LOADER in value)
        return frozenset(one for value in loaders for one in value if one >= FIRST and self.atoms.of[one][0] == "o")

    def _read_record(self, given: Given) -> Value:
        """An object of the dataclass that a function fills from a command line."""
        classes = given.args[0] if given.args else next(iter(given.keywords.values()), NOTHING)
        return frozenset(self.atoms.atom("i", fields[1]) for fields in self.atoms.kinds(classes, "c"))

    def _passed_on(self, given: Given) -> Value:
        return frozenset([self.atoms.atom("view", "pass", given.key(0))]) if given.args else NOTHING

    def _made(self, name: str, given: Given) -> Value:
        """An object of another package, by the call that made it."""
        return frozenset([self.atoms.atom("o", name, given.call)])

    def _loader(self, name: str, given: Given) -> Value:
        return self._made(name, given) | frozenset([LOADER])

    def _recomputed(self, given: Given) -> Value:
        """The result of ``checkpoint(function, *args)``: that of the function."""
        return self.callvalue(given.args[0], given.call, LATER, lambda: given.args[1:]) if given.args else NOTHING

    def _partial(self, given: Given) -> Value:
        if not given.args:
            return NOTHING
        # It binds arguments and calls nothing yet.
        for function, _ in self.targets(given.args[0], None)[0]:
            self.put(("partials", function), frozenset([given.call]))
        return frozenset([self.atoms.atom("partial", given.call)])

    def _of_python(self, top: str, last: str, name: str, given: Given) -> Value:
        if last == "partial":
            return self._partial(given)
        if last == "import_module":
            return self._imported_by_name(given)
        if top == "hydra":
            return NOTHING
        if last == "asdict":
            return frozenset([self.atoms.atom("d", given.call)])
        if top == "copy":
            return given.args[0] if given.args else given.keywords.get("module", NOTHING)
        if top == "itertools":
            return self._passed_on(given) or OF_PYTHON
        if top == "collections":
            return frozenset([self.atoms.atom("d", given.call)])
        return self._made(name, given) if top == "argparse" else OF_PYTHON

    def _of_torch(self, name: str, given: Given) -> Value:
        rest = name[len("torch.") :]
        last = rest.rpartition(".")[2]
        if last == "checkpoint":
            return self._recomputed(given)
        if last.endswith(_LOADERS):
            return self._loader(name, given)
        if rest == "device":
            is_cpu = bool(given.args) and self.atoms.texts(given.args[0]) == {"cpu"}
            return frozenset([CPU if is_cpu else A_DEVICE])
        if rest in tensors.ON_HOST or any(part.startswith("_") for part in rest.split(".")):
            # Private functions compute nothing that a training reads.
            return OF_PYTHON
        if rest in ("nn.Parameter", "nn.parameter.Parameter"):
            return ON_DEVICE
        if name in _LISTS:
            return frozenset([self.atoms.atom("d", given.call)])
        if name.startswith(_WRAPPERS) or name == "torch.autograd.Variable":
            return given.args[0] if given.args else given.keywords.get("module", NOTHING)
        if rest in tensors.FACTORIES:
            return self._tensor(rest, given)
        return self._of_torchs_packages(name, rest, last, given)

    def _of_torchs_packages(self, name: str, rest: str, last: str, given: Given) -> Value:
        if rest.endswith("_like"):
            return self.tensor_of(given.args[:1])
        if rest.startswith(("cuda.", "distributed.")):
            if last.endswith("Tensor"):
                return ON_DEVICE
            if last[:1].isupper():
                # Events, streams, scalers, stores.
                return self._made(name, given)
            return OF_PYTHON if rest.startswith("cuda.") and "amp" not in rest else NOTHING
        if rest.startswith("nn.utils.clip_grad") or rest == "autograd.grad":
            return ON_DEVICE
        if rest.startswith("nn.") and last[:1].isupper():
            # Layers: their identity does not matter, and there are thousands.
            return frozenset([self.atoms.atom("o", name, 0)])
        if last[:1].isupper():
            return self._made(name, given)
        if rest in _WITHOUT_TENSOR:
            return NOTHING
        if rest.startswith(("optim", "utils", "backends", "profiler", "hub")):
            return self._made(name, given) | self._objects(given)
        if rest in tensors.JOINS and given.args and self.is_container(given.args[0]):
            return self.tensor_of([given.args[0] | self.elements(given.args[0])])
        value = self.tensor_of(given.args or list(given.keywords.values()))
        return value | frozenset([BOOLEAN]) if last in tensors.BOOLEAN else value

    def _tensor(self, rest: str, given: Given) -> Value:
        """The result of a function that creates a tensor."""
        if rest in ("tensor", "as_tensor", "Tensor") and given.args and DEVICE in given.args[0]:
            return ON_DEVICE
        device = given.keywords.get("device")
        if device is None:
            return ON_HOST
        return ON_HOST if self.is_cpu(device) else ON_DEVICE

    def is_cpu(self, device: Value) -> bool:
        """Whether a device can only be the host."""
        return bool(device) and (device <= frozenset([CPU]) or self.atoms.texts(device) == {"cpu"})

    def _created_by_name(self, given: Given) -> Value:
        """The result of `timm.create_model`: that of the project's functions registered under such a name."""
        names = self.atoms.texts(given.args[0]) | self.texts_of_flags(given.args[0]) if given.args else set()
        patterns = [_pattern(name, "") for name in sorted(names or {"*"})]
        functions = (one for one in self.get(("registered", TIMM)) if one >= FIRST and self.atoms.of[one][0] == "f")
        found = frozenset(one for one in functions if any(pattern.match(self._name_of(one)) for pattern in patterns))
        return self.callvalue(found, given.call, UNKNOWN)

    def _name_of(self, function: int) -> str:
        key = self.atoms.of[function][1]
        return self.module_of(key).scopes[key & MASK].name

    def _of_packages(self, name: str, top: str, last: str, given: Given) -> Value:
        if top == "timm" and last == "create_model":
            return self._made(name, given) | self._created_by_name(given)
        registries = self._registries(last, given)
        if registries:
            value: set[int] = set()
            for registry in registries:
                classes = frozenset(one for one in self.get(("registered", registry)) if one >= FIRST and self.atoms.of[one][0] == "c")
                value |= self.callvalue(classes, given.call, UNKNOWN)
            return frozenset(value)
        if top in tensors.FRAMEWORKS and last[:1].isupper():
            return self._made(name, given) | self._objects(given)
        if last[:1].isupper() or last.startswith(("from_pretrained", "create_model")):
            return self._made(name, given) | self._objects(given) | self._loaders(given)
        homes = frozenset().union(*(value & HOMES for value in given.args))
        if top in tensors.LIBRARIES:
            return homes | self._objects(given) | (SOME_TENSOR if homes and top != "torchvision" else NOTHING)
        return self._objects(given) | (homes & MAY_BE_ON_DEVICE if top == "transformers" else NOTHING)

    def _registries(self, last: str, given: Given) -> set[str]:
        """The registries used by ``build_from_cfg(cfg, MODELS)``, ``MODELS.build(cfg)`` or ``build_model(cfg)``."""
        module, row = given.module, given.module.nodes[given.call & MASK]
        if last == "build_from_cfg" and len(row[2]) > 1:
            return {module.last_name(row[2][1])}
        if last == "build" and module.nodes[row[1]][0] == "attr":
            return {module.last_name(module.nodes[row[1]][1])}
        if not last.startswith("build_"):
            return set()
        wanted = last[len("build_") :].upper()
        return {name for name in self.registered if _singular(name).endswith(wanted) or wanted.endswith(_singular(name))}

    def all_registered(self, registry: str) -> Value:
        """Question ``("registered", registry)``: everything that a decorator registers in it."""
        return frozenset().union(*(self.get(one) for one in sorted(self.registered.get(registry, ()))))

    def modules_named(self, names: Value, near: Module) -> Value:
        """The modules that ``import_module`` of a text may return; ``*`` in the text stands for any text."""
        found: set[int] = set()
        for text in self.atoms.texts(names) | self.texts_of_flags(names):
            if not text.strip("*."):
                continue
            full = self.modules.absolute(near, text.lstrip("."), 1) if text.startswith(".") else text
            if "*" not in full:
                module = self.modules.find(full, near)
                if module is not None:
                    found.add(self.atoms.atom("m", module.index))
                elif full.partition(".")[0] == "torch":
                    # Names of other packages are not followed, so their values are unknown.
                    found.add(self.atoms.atom("x", full))
                continue
            pattern = _pattern(full, r"(?:.*\.)?")
            found |= {self.atoms.atom("m", module.index) for module in self.live if pattern.match(module.name)}
        return frozenset(found)

    def _imported_by_name(self, given: Given) -> Value:
        """The modules that a call imports by a name that callers may pass."""
        return self.modules_named(self.closed(given.key(0)), given.module) if given.args else NOTHING

    def _of_builtins(self, last: str, given: Given) -> Value:
        if last == "vars" and given.args:
            return given.args[0]
        if last in tensors.HOST_BUILTINS:
            return OF_PYTHON
        if last == "__import__":
            return self._imported_by_name(given)
        if last == "super":
            return self._super(given)
        if last == "getattr" and len(given.args) > 1:
            return self._getattr(given)
        if last in ("globals", "locals"):
            return frozenset([self.atoms.atom("m", given.module.index)])
        if last == "dict":
            homes = given.args[0] & HOMES if given.args else NOTHING
            return frozenset([self.atoms.atom("d", given.call)]) | homes
        return self._of_iterables(last, given)

    def _of_iterables(self, last: str, given: Given) -> Value:
        if last in ("min", "max", "sum", "abs", "pow", "divmod"):
            return self._extreme(last, given)
        if not given.args:
            return NOTHING
        if last in ("list", "tuple", "sorted", "set", "reversed", "iter", "frozenset", "filter"):
            key = given.key(1 if last == "filter" and len(given.args) > 1 else 0)
            how = "iter" if last == "iter" else "pass"
            return frozenset([self.atoms.atom("view", how, key)]) | (self.get(key) & HOMES)
        if last == "enumerate":
            return frozenset([self.atoms.atom("view", "enum", given.key(0))])
        if last == "zip":
            return frozenset([self.atoms.atom("view", "zip", given.call)])
        if last == "map":
            self.callvalue(given.args[0], given.call, UNKNOWN)
            return frozenset([self.atoms.atom("view", "map", given.key(0))])
        return self.elements(given.args[0]) if last == "next" else NOTHING

    def _extreme(self, last: str, given: Given) -> Value:
        found: set[int] = set()
        for value in given.args:
            found |= self.tensor_part(value) | (value & OF_PYTHON)
            if len(given.args) == 1 or last == "sum":
                found |= self.elements(value) & (HOMES | OF_PYTHON)
        return frozenset(found) or OF_PYTHON

    def _super(self, given: Given) -> Value:
        scopes = given.module.scopes
        at = given.module.table.sites[given.call & MASK].scope
        while at > 0 and scopes[at].kind != "class":
            at = scopes[at].parent
        return frozenset([self.atoms.atom("super", given.module.base | at)]) if at > 0 else NOTHING

    def _getattr(self, given: Given) -> Value:
        later = self.later(given.call, given.args[1])
        if later:
            return later
        dotted = taken_apart(given.module, given.key(1) & MASK)
        if dotted:
            return self._by_dotted_name(given, given.module.base | dotted)
        texts = self.atoms.texts(given.args[1]) | self.texts_of_flags(given.args[1])
        texts |= {text for text in self._configured(given.key(1), given.args[1]) if text.isidentifier()}
        texts = texts or {"*"}
        value = given.args[2] if len(given.args) > 2 else NOTHING
        found = NOTHING
        for text in sorted(texts):
            found |= self._matching(given.args[0], text) if "*" in text else self.attribute(given.args[0], text)
        # A default applies only if nothing was set; it does not determine the device.
        return value | found if found else value - frozenset([CPU])

    def _by_dotted_name(self, given: Given, name: int) -> Value:
        """The result of ``getattr(import_module(module), last)`` for the parts of a dotted name (key)."""
        value = self.get(name)
        later = self.later(given.call, value)
        if later:
            return later
        found = NOTHING
        for text in sorted(self.atoms.texts(value) | self.texts_of_flags(value) | self._configured(name, value)):
            module, _, last = text.rpartition(".")
            if "*" in text or not last.isidentifier():
                continue
            target = self.modules.find(module, given.module) if module else None
            found |= self.get(("global", target.index, last)) if target is not None else frozenset([self.atoms.atom("x", text)])
        return found

    def _configured(self, key: int, value: Value) -> set[str]:
        """The texts that configurations hold for the setting that a name (key) is read from."""
        if self.configured is None or self.atoms.kinds(value, "flag") or self.module_of(key).nodes[key & MASK][0] == "const":
            return set()
        return {text for setting in sorted(settings_read(self, key)) for text in self.configured(setting)}

    def texts_of_flags(self, value: Value) -> set[str]:
        """The default of an option and its choices, or ``*`` for other values that a user may pass."""
        texts: set[str] = set()
        for fields in self.atoms.kinds(value, "flag"):
            module = self.module_of(fields[1])
            given = dict(module.nodes[fields[1] & MASK][3])
            choices = module.nodes[given["choices"]] if "choices" in given else ("",)
            written = [module.nodes[one][1] for one in choices[2] if module.nodes[one][0] == "const"] if choices[0] == "seq" else []
            if "default" in given:
                texts |= self.atoms.texts(self.get(module.base | given["default"])) | ({"*"} if not written else set())
            texts |= {one for one in written if isinstance(one, str)}
        return texts

    def _matching(self, value: Value, text: str) -> Value:
        """The classes and functions of modules, and the methods of objects, whose names fit a text with ``*``."""
        found: set[int] = set()
        pattern = _pattern(text)
        for one in sorted(value):
            fields = self.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "m":
                for name in self.modules.all[fields[1]].scopes[0].bindings:
                    if name != "*" and pattern.match(name):
                        bound = self.get(("global", fields[1], name))
                        found |= {two for two in bound if two >= FIRST and self.atoms.of[two][0] in ("c", "f")}
            elif fields[0] == "x":
                # Anything of another package's.
                found.add(self.atoms.atom("x", f"{fields[1]}.*"))
            elif fields[0] in ("i", "self") and text.strip("*"):
                for owner in self.order(fields[1]):
                    for name in self.module_of(owner).scopes[owner & MASK].bindings:
                        if pattern.match(name):
                            found |= self.attribute(frozenset([one]), name)
        return frozenset(found)


def _singular(name: str) -> str:
    name = name.upper()
    return name[:-2] if name.endswith("SSES") else name.removesuffix("S")


def _pattern(text: str, before: str = "") -> re.Pattern[str]:
    """A pattern for a text in which ``*`` stands for any text."""
    return re.compile(before + re.escape(text).replace(r"\*", ".*") + r"\Z")


