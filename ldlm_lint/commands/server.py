"""``ldlm-lint server``: runs the language server, on stdin and stdout or a socket."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import FINDINGS, OK
from ldlm_lint.extras import install
from ldlm_lint.options import configure_what

INSTALL = install("server")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``server``."""
    parser.add_argument(
        "--tcp", type=_address, metavar="HOST:PORT", help="wait for one editor at a socket (default: stdin and stdout)"
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        metavar="LEVEL",
        help="the log level on stderr: debug, info, warning or error (default: warning)",
    )
    configure_what(parser)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def run(arguments: argparse.Namespace) -> int:
    """Serve one editor until it disconnects, and return the exit code: 1 if it disconnects without a shutdown request,
    as the protocol requires."""
    if importlib.util.find_spec("pygls") is None or importlib.util.find_spec("lsprotocol") is None:
        raise UsageError(f"the language server needs pygls: {INSTALL}")
    import logging

    try:
        from ldlm_lint.server.features import make
    except ImportError as error:
        raise UsageError(f"the language server needs pygls 2 ({error}): {INSTALL}") from error
    from ldlm_lint.server.settings import Settings

    if arguments.config and arguments.isolated:
        raise UsageError("--config and --isolated cannot be combined")
    logging.basicConfig(level=arguments.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    settings = Settings(
        tuple(arguments.select) if arguments.select is not None else None,
        tuple(arguments.extend_select or ()),
        tuple(arguments.ignore or ()),
        arguments.level or "",
        Path(os.path.abspath(arguments.config)).as_posix() if arguments.config else "",
        arguments.isolated,
        arguments.pedantic,
    )
    server = make(settings)
    if arguments.tcp is None:
        # The protocol gets a stream of its own, so that printed text cannot get between its messages.
        messages = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        server.start_io(stdout=messages)
    else:
        server.start_tcp(*arguments.tcp)
    server.stop()
    return OK if server.finished else FINDINGS
