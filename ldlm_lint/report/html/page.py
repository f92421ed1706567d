"""HTML pages as one file: a template with its styles and scripts inside, which loads nothing and runs no other code.

Text of a scanned repository reaches a page only through Jinja's escaping. The content security policy of every page
names the hashes of its own style sheet and script: markup that slipped through could neither run nor load anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from ldlm_lint import __version__
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import HOME
from ldlm_lint.report.html.charts import GRID, percent

if TYPE_CHECKING:
    from jinja2 import Environment

STYLES, SCRIPTS = ("page.css",), ("page.js",)
"""The assets of every page."""


def render(template: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), connects: bool = False, **values: Any) -> str:
    """A whole page from a template of ``templates/``, which extends ``base.html``; ``values`` fill it.

    ``styles`` and ``scripts`` are files of ``assets/`` that the page needs in addition to `STYLES` and `SCRIPTS`.
    ``connects``: a page delivered by a server of this program may request data from that server only.
    """
    from markupsafe import Markup

    style, script = _joined(*STYLES, *styles), _joined(*SCRIPTS, *scripts)
    return environment().get_template(template).render(
        style=Markup(style),
        script=Markup(script),
        policy=policy(style, script, connects=connects),
        version=__version__,
        home=HOME,
        **values,
    )


def policy(style: str, script: str, *, connects: bool = False) -> str:
    """The content security policy of a page with exactly this style sheet and this script.

    >>> policy("", "").split("; ")[0]
    "default-src 'none'"
    """
    rules = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        **({"connect-src": "'self'"} if connects else {}),
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates; every value is escaped, and a missing value is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("ldlm_lint.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["clean"] = clean
    templates.filters["capitalize_first"] = sentence
    templates.globals.update(percent=percent, grid=GRID)
    return templates


def sentence(text: str) -> str:
    """A text with a capital letter at its beginning, unless it begins with a name such as a file's.

    >>> sentence("set the timeout"), sentence("environment.yml allows torch 1.13"), sentence("batch_size is 2")
    ('Set the timeout', 'environment.yml allows torch 1.13', 'batch_size is 2')
    """
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return text[:1].upper() + text[1:] if first.rstrip(",;:").isalpha() or "-" in first else text


def _joined(*names: str) -> str:
    folder = resources.files("ldlm_lint.report.html") / "assets"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
