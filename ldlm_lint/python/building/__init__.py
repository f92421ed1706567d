"""astroid nodes from those of Python's own syntax tree, kind by kind; `ldlm_lint.python.rebuild` joins them to a tree."""
