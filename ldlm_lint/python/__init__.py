"""The Python front end: light trees, qualified names, three-valued arguments and per-file facts.

Everything here depends on the file's text alone. Nothing is inferred through installed packages, since torch
is usually absent where a linter runs, and since the answer must be the same in both hosts.
"""
