"""The names that moved from ``torch.cuda.amp`` and ``torch.cpu.amp`` to ``torch.amp``, of torch 2.4 (2024-07)."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint import tables
from ldlm_lint.model import Interface

MODULES = {"autocast": "autocast_mode", "GradScaler": "grad_scaler", "custom_fwd": "autocast_mode", "custom_bwd": "autocast_mode"}
"""The names, with the module that also has them."""
DTYPES = {"cuda": "float16", "cpu": "bfloat16"}
"""The device types, with the dtype that autocast has there unless it is given."""
NEW = ("torch.amp.", "torch.autocast.", "torch.GradScaler.")
"""How their new names begin, each with a dot behind it."""
NEW_TEXTS = frozenset({"amp", "torch.amp", "autocast", "GradScaler"})
"""What code that asks torch for one of them by a text has there."""


class Moved(NamedTuple):
    """A name that moved, and the device type of its old module."""

    name: str
    device: str

    @property
    def old(self) -> str:
        """The old name in full."""
        return f"torch.{self.device}.amp.{self.name}"

    @property
    def new(self) -> Interface:
        """Its replacement, with the first torch that has it."""
        return tables.interface(f"torch.amp.{self.name}")

    @property
    def is_decorator(self) -> bool:
        """Whether it takes the device type by name only."""
        return self.name.startswith("custom_")

    def advice(self, *, is_value: bool) -> str:
        """The new call as text; of a name that is handed on, something that is called like it."""
        device = f'device_type="{self.device}"' if self.is_decorator else f'"{self.device}"'
        if is_value:
            return f"`functools.partial(torch.amp.{self.name}, {device})`"
        return f"`torch.amp.{self.name}({device}{'' if self.is_decorator else ', ...'})`"


OLD = {f"torch.{device}.amp.{module}{name}": Moved(name, device) for device in DTYPES for name in MODULES for module in ("", f"{MODULES[name]}.")}
RENAMED = {f"torch.{device}.amp{inner}": "torch.amp" for device in DTYPES for inner in ("", *(f".{one}" for one in set(MODULES.values())))}
"""The modules from which they may be imported, with the new one."""
