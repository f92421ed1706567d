"""The log formats that are known exactly, one room a family.

A line is compared with them in order, so a format that another one contains stands before it.
"""

from __future__ import annotations

from ldlm_lint.monitor.formats import dictionaries, language, vision

FORMATS = (*language.FORMATS, *vision.FORMATS)
SHAPES = dictionaries.SHAPES
