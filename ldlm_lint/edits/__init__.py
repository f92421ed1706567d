"""Building the edits of a fix from what a rule knows: a keyword, an import, a line, a part of an expression as written.

Edits are minimal text on bytes, so that comments, newlines and trailing commas survive; `ldlm_lint.autofix` applies them.
"""
