"""The linting process of a server: requests as lines of JSON on stdin, answers on stdout, in order.

It is a separate process, so that typing never waits for a lint, a hanging lint can be ended, and a crash in a parser
written in C does not end the server.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

from ldlm_lint.server.analyst import Analyst
from ldlm_lint.server.settings import Settings

_Request = dict[str, Any]


def main() -> None:
    """Answer requests until stdin ends."""
    answers = _own_stdout()
    serve(sys.stdin.buffer, answers)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer the requests of a stream; a request without ``id`` gets no answer."""
    analyst = Analyst()
    for line in requests:
        request = json.loads(line)
        answer = answered(analyst, request)
        if "id" in request:
            answers.write(json.dumps({"id": request["id"], **answer}).encode("ascii") + b"\n")
            answers.flush()


def answered(analyst: Analyst, request: _Request) -> dict[str, Any]:
    """``result`` of a request; or ``usage`` with errors in the settings and ``faults`` with their places, or ``error``
    with a failure of ours."""
    from ldlm_lint.select import SelectorError
    from ldlm_lint.tomlfile import ConfigError

    try:
        return {"result": _OPERATIONS[request["do"]](analyst, request)}
    except ConfigError as error:
        faults = [{"path": one.path, "line": one.line, "message": one.what} for one in error.errors]
        return {"usage": str(error), "faults": faults}
    except SelectorError as error:
        return {"usage": str(error), "faults": []}
    except Exception:
        return {"error": traceback.format_exc()}


def _configure(analyst: Analyst, request: _Request) -> None:
    analyst.configure(Settings.of_plain(request["settings"]), request["encoding"])


_OPERATIONS: dict[str, Callable[[Analyst, _Request], Any]] = {
    "configure": _configure,
    "put": lambda analyst, request: analyst.put(request["path"], request["text"]),
    "drop": lambda analyst, request: analyst.drop(request["path"]),
    "lint": lambda analyst, request: analyst.lint(request["path"]),
    "ignore": lambda analyst, request: analyst.ignore(request["path"], request["finding"]),
    "fix-all": lambda analyst, request: analyst.fix_all(request["path"]),
}


def _own_stdout() -> BinaryIO:
    """The stream of answers; other output of this process goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers
