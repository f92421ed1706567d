"""The cache of earlier runs: results keyed by the contents they depend on, in one directory of the user.

There are three layers, each usable without the next. `ldlm_lint.cache.replay` replays a whole run,
`ldlm_lint.cache.session` keeps facts about single files, `ldlm_lint.cache.index` knows the content of each file, from
its status alone if that is certain. Nothing is ever taken from the scanned repository, unreadable entries are ignored,
and a cache that cannot be written only costs time.
"""
