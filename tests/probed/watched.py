"""Runs a program under the watcher, in a process that may have torch already: ``OUT STEPS PROGRAM ARGUMENTS...``."""

from __future__ import annotations

import os
import runpy
import sys

import torch

from ldlm_lint.probe.injected import Process
from ldlm_lint.probe.settings import Settings

if __name__ == "__main__":
    out, steps, program, *arguments = sys.argv[1:]
    sys.argv = [program, *arguments]
    settings = Settings(
        out=out, root=os.path.dirname(program), run_id="test", command=(program, *arguments), steps=int(steps)
    )
    Process(torch, settings).start()
    runpy.run_path(program, run_name="__main__")
