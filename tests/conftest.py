"""Property tests try the same examples in every run, so that a change is judged by what it changes.

``HYPOTHESIS_PROFILE=search python -m pytest`` looks for new ones; what it finds becomes an example of its own.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("fixed", derandomize=True)
settings.register_profile("search")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
