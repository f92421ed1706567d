"""The language server: diagnostics, quick fixes and rule pages for the buffers of an editor.

There are two processes. This one handles the protocol (`app`) and never waits for a lint; the other one (`worker`)
lints one buffer at a time and caches facts about the project's unchanged files. They exchange lines of JSON (`link`):
values in the protocol's own shape, with paths instead of URIs.
"""
