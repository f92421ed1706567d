"""The Python front end: light trees, qualified names, three-valued arguments and per-file facts.

Everything here depends on the file's text alone. Nothing is inferred through installed packages, since torch is usually
missing where a linter runs, and since the command and the pylint plugin must give the same answer.
"""
