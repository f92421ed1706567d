"""From a source to its document, for every format."""

from __future__ import annotations

from ldlm_lint.configs.document import Document
from ldlm_lint.source import Kind, Source


def read(source: Source) -> Document:
    """The document of a YAML, JSON or TOML file; raises DocumentError if it is invalid."""
    if source.kind is Kind.YAML:
        from ldlm_lint.configs.yaml_reader import read as read_yaml

        return read_yaml(source)
    if source.kind is Kind.JSON:
        from ldlm_lint.configs.json_reader import read as read_json

        return read_json(source)
    if source.kind is Kind.TOML:
        from ldlm_lint.configs.toml_reader import read as read_toml

        return read_toml(source)
    raise ValueError(f"{source.kind} is not a kind of document")
