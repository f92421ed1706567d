"""The output for styled lines: rich's console, and whether to use colours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

CHOICES = ("auto", "always", "never")


def wants_colour(stream: TextIO, choice: str = "auto", environ: Mapping[str, str] | None = None) -> bool:
    """Whether styles may be written to a stream.

    The user's option decides, then ``NO_COLOR`` (https://no-color.org), ``FORCE_COLOR`` (https://force-color.org),
    ``TERM=dumb``, and last whether the stream is a terminal.
    """
    environ = os.environ if environ is None else environ
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return environ.get("TERM", "").lower() not in ("dumb", "unknown") and stream.isatty()


def console_of(stream: TextIO, *, colour: bool | None = None, width: int | None = None) -> Console:
    """What writes styled lines to a stream as they are, in colour if wanted (None: decided by `wants_colour`)."""
    from rich.console import Console

    class Plain(Console):
        """A console that leaves a closed pipe to the caller, who decides about the exit code."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    styled = wants_colour(stream) if colour is None else colour
    return Plain(
        file=stream,
        highlight=False,
        markup=False,
        emoji=False,
        width=width,
        # The sixteen colours that a terminal's theme defines.
        color_system="standard" if styled else None,
        force_terminal=True if styled else None,
        no_color=not styled,
    )
