"""What runs remember: answers by the contents they rest on, in one directory of the user's.

Three layers, each usable without the next. `ldlm_lint.cache.replay` gives a whole run again, `ldlm_lint.cache.session`
what is known of single files, `ldlm_lint.cache.index` which content a file has, told by its status alone where that is
certain. Nothing is ever taken from the scanned repository, an entry that cannot be read is none, and a cache that
cannot be written costs time and nothing else.
"""
