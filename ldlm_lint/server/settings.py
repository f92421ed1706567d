"""Settings from an editor or the server's command line, next to the project's own configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldlm_lint.config import LEVELS

if TYPE_CHECKING:
    from ldlm_lint.configurations import Configurations

SECTION = "ldlm-lint"
ON_TYPE, ON_SAVE = "onType", "onSave"
_LIST = "a list of names"


@dataclass(frozen=True, slots=True)
class Settings:
    """Selection as on the command line; empty values leave the project's own configuration alone.

    ``config`` is an absolute path. ``run`` says when a buffer is linted, `ON_TYPE` or `ON_SAVE`: only editors can set it.
    """

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    level: str = ""
    config: str = ""
    isolated: bool = False
    pedantic: bool = False
    run: str = ON_TYPE

    @property
    def plain(self) -> dict[str, Any]:
        """The settings as JSON has them."""
        return asdict(self)

    @classmethod
    def of_plain(cls, values: Mapping[str, Any]) -> Settings:
        """The settings of `plain`."""
        known: dict[str, Any] = {
            one: tuple(value) if isinstance(value, list) else value for one, value in values.items()
        }
        return cls(**known)

    def load(self, path: Path) -> Configurations:
        """The configurations of a run about a file; raises what loading the configuration of the run raises."""
        from ldlm_lint.config import Overrides
        from ldlm_lint.configurations import Configurations
        from ldlm_lint.select import Layer

        level = LEVELS[self.level] if self.level else None
        overrides = Overrides(Layer(self.select, self.extend_select, self.ignore), level, pedantic=self.pedantic)
        explicit = Path(self.config) if self.config else None
        configured = Configurations(path, explicit=explicit, isolated=self.isolated, overrides=overrides)
        assert configured.run is not None
        return configured


def merged(settings: Settings, given: object) -> tuple[Settings, list[str]]:
    """Settings merged with those from an editor, and one line for each invalid value.

    Names are those of the command line (``extend-select``); the spellings of JSON and Python are understood too.
    Settings inside a section with our name are read from it.
    """
    if given is None:
        return settings, []
    if not isinstance(given, Mapping):
        return settings, [f"settings must be an object, not {given!r}"]
    if SECTION in given:
        return merged(settings, given[SECTION])
    known = {_folded(one.name): one.name for one in fields(Settings)}
    changes: dict[str, Any] = {}
    complaints = []
    for key, value in given.items():
        name = known.get(_folded(str(key)))
        if name is None:
            from ldlm_lint.select import nearest

            names = [one.replace("_", "-") for one in known.values()]
            complaints.append(f'unknown setting "{key}"{nearest(str(key), names)}')
        elif (wanted := _wrong(name, value)) is not None:
            complaints.append(f'setting "{key}" must be {wanted}, not {value!r}')
        elif value is not None:
            changes[name] = tuple(value) if isinstance(value, list) else value
    return replace(settings, **changes), complaints


def _folded(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _wrong(name: str, value: object) -> str | None:
    """The expected type of a wrong value, None if the value is right; null leaves a setting unchanged."""
    if value is None:
        return None
    if name in ("select", "extend_select", "ignore"):
        fits = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return None if fits else _LIST
    if name in ("isolated", "pedantic"):
        return None if isinstance(value, bool) else "true or false"
    if name == "run":
        return None if value in (ON_TYPE, ON_SAVE) else f"one of {ON_TYPE}, {ON_SAVE}"
    if name == "level":
        return None if value == "" or value in LEVELS else f"one of {', '.join(LEVELS)}"
    return None if isinstance(value, str) and (not value or Path(value).is_absolute()) else "an absolute path"
