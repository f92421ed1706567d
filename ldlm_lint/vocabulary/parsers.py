"""Parsers of other packages that create dataclasses from a command line or a file, by dotted name (read in November
2026)."""

from __future__ import annotations

RECORD_PARSERS = frozenset(
    [
        *("transformers.HfArgumentParser", "transformers.hf_argparser.HfArgumentParser"),
        *("trl.TrlParser", "trl.scripts.TrlParser", "trl.scripts.utils.TrlParser", "trl.commands.cli_utils.TrlParser"),
        "llamafactory.hparams.parser.HfArgumentParser",
    ]
)
"""Classes whose objects are made with dataclasses, of which their methods give one object each, in order."""
PARSES = frozenset(
    {"parse_args_into_dataclasses", "parse_yaml_file", "parse_json_file", "parse_dict", "parse_args_and_config"}
)
RECORD_READERS = frozenset(
    {"tyro.cli", "pyrallis.parse", "draccus.parse", "simple_parsing.parse", "simple_parsing.parse_known_args", "chz.entrypoint"}
)
"""Functions that give an object of the dataclass that they are given first."""
