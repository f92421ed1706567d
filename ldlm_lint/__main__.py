"""``python -m ldlm_lint`` is ``ldlm-lint``."""

from __future__ import annotations

import sys

from ldlm_lint.entry import main

if __name__ == "__main__":
    sys.exit(main())
