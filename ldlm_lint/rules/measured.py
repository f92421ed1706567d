"""Records of measurements in this repository, as sources of what a defect costs."""

from __future__ import annotations

from ldlm_lint.model import Reference

H100 = Reference("Measured on an H100, torch 2.11", "https://github.com/ldlm-lint/ldlm-lint/blob/main/docs/evidence/h100-2.11.md")
