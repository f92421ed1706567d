"""The log formats that are known exactly, one module per family.

A line is compared with them in order, so a more specific format comes first.
"""

from __future__ import annotations

from ldlm_lint.monitor.formats import dictionaries, language, vision

FORMATS = (*language.FORMATS, *vision.FORMATS)
SHAPES = dictionaries.SHAPES
