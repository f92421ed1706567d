"""The runtime probe: experiments on this machine, and the watcher of the user's own training.

The only part of ldlm-lint that imports torch or runs the user's code, and only when asked to.
"""
