"""The language server: diagnostics, quick fixes and rule pages for the buffers of an editor.

Two processes. This one speaks the protocol (`app`) and never waits for a lint; the other one (`worker`) lints, one
buffer at a time, and keeps what it knows of the project's unchanged files. Between them go lines of JSON (`link`):
values of the protocol's own shape, with paths in place of URIs.
"""
