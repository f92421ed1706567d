"""The results of methods of tensors, containers, modules and objects of other packages."""

from __future__ import annotations

from ldlm_lint.program.atoms import (
    A_DEVICE,
    BOOLEAN,
    DEVICE,
    FIRST,
    HOMES,
    HOST,
    HOST_TENSOR,
    IF_TENSOR,
    LOADER,
    MASK,
    MAY_BE_ON_DEVICE,
    MOVED,
    NOTHING,
    OF_PYTHON,
    ON_DEVICE,
    ON_HOST,
    PARAMETERS,
    SCALER_STATE,
    SOME_TENSOR,
    TENSOR,
    WHERE_TENSOR,
    Value,
)
from ldlm_lint.program.calls import BOUND
from ldlm_lint.program.outside import Given, Outside
from ldlm_lint.vocabulary import tensors
from ldlm_lint.vocabulary.loaders import ENDLESS, PASSES, STREAMS
from ldlm_lint.vocabulary.parsers import PARSES, RECORD_PARSERS
from ldlm_lint.vocabulary.tensors import is_method_of_tensor

_PREPARES = frozenset({"prepare", "setup", "setup_dataloaders", "setup_module", "prepare_data_loader"})
_GATHERS = frozenset({"gather", "reduce", "gather_for_metrics", "clip_grad_norm_", "pad_across_processes"})
_RUNS = frozenset({"forward", "encode", "decode", "generate", "__call__", "get_text_features", "get_image_features"})
_TENSORS = frozenset({DEVICE, HOST_TENSOR, TENSOR})
_MOVED = frozenset({DEVICE, MOVED})
_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group", "add_parser", "add_subparsers"})


class Methods(Outside):
    """Methods that the project does not define."""

    def method(self, value: Value, name: str, given: Given, base: int) -> Value:
        """The result of ``value.name(…)``; ``base`` is the key of the object's expression."""
        if name == "__iter__":
            return frozenset([self.atoms.atom("view", "iter", base)]) | (value & HOMES)
        if name == "__next__":
            return self.elements(value)
        found = set(self._of_tensor(value, name, given, base))
        for one in value:
            if one == HOST and not self.tensor_part(value):
                found.add(HOST)
            if one >= FIRST:
                found |= self._of_object(one, name, given, base)
        if name == "format" and self.atoms.texts(value):
            found |= self.formatted(value)
        return frozenset(found)

    def formatted(self, value: Value) -> Value:
        """Texts with unknown text in their braces."""
        import re

        return frozenset(self.atoms.constant(re.sub(r"\{[^}]*\}", "*", text)) for text in self.atoms.texts(value))

    def _of_tensor(self, value: Value, name: str, given: Given, base: int) -> Value:
        homes = self.tensor_part(value)
        if not homes:
            return self._of_unknown(value, name, given)
        if name in tensors.TO_HOST or name in tensors.HOST_METHODS or name == "keys":
            return OF_PYTHON
        if name == "cpu":
            return ON_HOST
        if name in ("parameters", "buffers"):
            return frozenset([PARAMETERS])
        if name == "type_as" and given.args:
            return self.tensor_part(given.args[0]) or homes
        if name in tensors.KEEPS_BOOLEANS:
            return self._same_numbers(value, homes, name, given)
        if name == "type":
            return self._of_type(homes, given)
        if name == "items":
            return frozenset([self.atoms.atom("view", "items", base)])
        if name in ("get", "pop", "setdefault"):
            return self._entry_or_default(homes, given)
        if not is_method_of_tensor(name) and name not in tensors.MODULE_METHODS:
            return self._of_record(homes)
        if name in tensors.NOT_OF_ARRAYS and IF_TENSOR in homes:
            # Then it is a tensor.
            homes |= SOME_TENSOR
        return homes | frozenset([BOOLEAN]) if name in tensors.BOOLEAN else homes

    def _of_record(self, homes: Value) -> Value:
        """The result of a method that no tensor has: what moved to the device is a batch or a module, or a text."""
        known = homes & HOMES
        return known if known.isdisjoint(MAY_BE_ON_DEVICE) else WHERE_TENSOR

    def _entry_or_default(self, homes: Value, given: Given) -> Value:
        """The result of ``batch.get("name", default)``; tensors have no default."""
        texts = self.atoms.texts(given.args[0]) if given.args else set()
        entry = self.entry(homes, next(iter(texts)) if len(texts) == 1 else None)
        return entry | given.args[1] if len(given.args) > 1 else entry

    def _same_numbers(self, value: Value, homes: Value, name: str, given: Given) -> Value:
        """The result of methods that keep the numbers of a tensor (shape, device): a mask stays a mask."""
        if name in ("to", "cuda"):
            # What is only a tensor if it is one may be a module as well.
            is_tensor = MOVED not in value and not homes.isdisjoint(_TENSORS)
            homes = self.moved(homes, given) if name == "to" else ON_DEVICE
            homes |= frozenset([MOVED]) if DEVICE in homes and not is_tensor else NOTHING
        return homes | frozenset([BOOLEAN]) if BOOLEAN in value and not self._changes_type(name, given) else homes

    def _changes_type(self, name: str, given: Given) -> bool:
        """Whether ``.to(…)`` has, or may have, a dtype that is not ``bool``."""
        if name != "to":
            return False
        given_types = "dtype" in given.keywords or any(self.atoms.kinds(one, "x") for one in given.args)
        return given_types or len(given.args) > 1 or any(not one for one in given.args)

    def _of_unknown(self, value: Value, name: str, given: Given) -> Value:
        """The result of a method that only tensors have, if nothing else is known about the object."""
        if any(one >= FIRST for one in value):
            return NOTHING
        if name == "cuda":
            return _MOVED
        if name == "to" and given.args and HOST not in value and self._is_device(given.args[0]):
            moved = self.moved(SOME_TENSOR, given)
            return _MOVED if DEVICE in moved else moved
        return NOTHING

    def _is_device(self, value: Value) -> bool:
        """Whether a value names a device."""
        return A_DEVICE in value or any(text.partition(":")[0] in tensors.DEVICES for text in self.atoms.texts(value))

    def _of_type(self, homes: Value, given: Given) -> Value:
        if not given.args:
            return OF_PYTHON
        written = given.module.last_name(given.module.nodes[given.call & MASK][2][0])
        if not written.endswith("Tensor"):
            return homes
        names = [fields[1] for fields in self.atoms.kinds(given.args[0], "x")]
        return ON_DEVICE if any(".cuda." in name for name in names) else ON_HOST

    def moved(self, homes: Value, given: Given) -> Value:
        """Where ``.to(…)`` brings a tensor."""
        device = given.args[0] if given.args else given.keywords.get("device")
        if device is None:
            return homes
        if self.is_cpu(device):
            return ON_HOST
        if given.args and given.module.plain(given.module.nodes[given.call & MASK][2][0])[0::2] == ("attr", "dtype"):
            return homes
        types = self.atoms.kinds(device, "x")
        if types and A_DEVICE not in device:
            # A type of numbers.
            return homes | frozenset([BOOLEAN]) if any(fields[1] == "torch.bool" for fields in types) else homes
        return device & HOMES if device & HOMES else ON_DEVICE

    def _of_object(self, one: int, name: str, given: Given, base: int) -> Value:
        fields = self.atoms.of[one]
        kind = fields[0]
        if kind in ("i", "self"):
            return self._of_module(one, name, base)
        if kind == "c":
            return self._of_class(fields[1], name, given)
        if kind == "d":
            return self._of_container(one, name, given, base)
        if kind == "o":
            return self._of_outside_object(one, name, given, base)
        if kind == "ns":
            return frozenset([self.atoms.atom("view", "items", base)]) if name == "items" else NOTHING
        return OF_PYTHON if kind == "k" else NOTHING

    def _of_module(self, one: int, name: str, base: int) -> Value:
        if not self.is_module(self.atoms.of[one][1]):
            return NOTHING
        if name in tensors.MODULE_METHODS:
            return frozenset([one])
        if name in ("parameters", "buffers"):
            return frozenset([PARAMETERS])
        return frozenset([self.atoms.atom("view", "parameters", base)]) if name in ("named_parameters", "named_buffers") else NOTHING

    def _of_class(self, owner: int, name: str, given: Given) -> Value:
        value = NOTHING
        if name not in ("register", "apply") and self.outside_of(owner) and not self.get(("attr", owner, name, False)):
            value = frozenset([self.atoms.atom("i", owner)])
        if name == "apply":
            for function in self.methods(owner, "forward"):
                self.edge(function, given.call, BOUND)
                value |= self.instantiate(function, given.call, BOUND)
        return value

    def _of_container(self, one: int, name: str, given: Given, base: int) -> Value:
        place = self.atoms.of[one][1]
        if name in ("get", "pop", "setdefault", "popitem"):
            texts = self.atoms.texts(given.args[0]) if given.args else set()
            key = next(iter(texts)) if len(texts) == 1 and "*" not in next(iter(texts)) else None
            return self.get(("content", place, key)) | (given.args[1] if len(given.args) > 1 else NOTHING)
        if name in ("values", "items"):
            return frozenset([self.atoms.atom("view", name, base)])
        if name == "keys":
            return OF_PYTHON
        if name in ("copy", "to", "cuda", "train", "eval", "half", "float"):
            return frozenset([one])
        return frozenset([PARAMETERS]) if name == "parameters" else NOTHING

    def _of_outside_object(self, one: int, name: str, given: Given, base: int) -> Value:
        made = self.atoms.of[one][1]
        if made.startswith("argparse."):
            return self._of_parser(one, name, given)
        if made in RECORD_PARSERS:
            return frozenset([self.atoms.atom("parsed", self.atoms.of[one][2])]) if name in PARSES else NOTHING
        if made in STREAMS and name in PASSES | ENDLESS:
            return frozenset([one, LOADER])
        if name in _PREPARES:
            prepared = self.prepared(given.args[0]) if len(given.args) == 1 else NOTHING
            return frozenset([self.atoms.atom("prep", given.call)]) | prepared
        if name in ("unwrap_model", "prepare_model"):
            return given.args[0] if given.args else NOTHING
        if name in tensors.MODULE_METHODS:
            return frozenset([one])
        if name == "parameters":
            return frozenset([PARAMETERS])
        if name in _GATHERS or made.startswith("torch.distributions"):
            return ON_DEVICE
        if made.startswith("torch.cuda") or made.endswith("GradScaler"):
            return ON_DEVICE if name == "scale" else frozenset([SCALER_STATE]) if name == "state_dict" else NOTHING
        if name in _RUNS and any(self.tensor_part(value) for value in given.every):
            return self.tensor_of(given.every)
        return NOTHING

    def _of_parser(self, one: int, name: str, given: Given) -> Value:
        """Of an `argparse.ArgumentParser`, and of the groups in it."""
        if name == "parse_args":
            return frozenset([self.atoms.atom("ns", self.atoms.of[one][2])])
        if name == "parse_known_args":
            return frozenset([self.atoms.atom("ns", self.atoms.of[one][2])])
        return frozenset([one]) if name in _GROUPS else NOTHING


