"""Where a new import goes, which import is used if one is there, and what it must never shadow."""

from __future__ import annotations

import ast

from collected import for_every

from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.source import Kind, Source

MODULE, NAME = "torch.utils.checkpoint", "checkpoint"
LINE = f"from {MODULE} import {NAME}"


def ensure(code: str | bytes, module: str = MODULE, name: str = NAME) -> tuple[str, str]:
    """The code with the import, and the expression to use."""
    data = code if isinstance(code, bytes) else code.encode()
    source = Source.from_bytes("/t.py", data, Kind.PYTHON)
    edit, expression = ensure_import(source, module, name)
    new = apply_edits(data, [edit] if edit else [], source.encoding)
    again = Source.from_bytes("/t.py", new, Kind.PYTHON)
    assert ensure_import(again, module, name) == (None, expression)
    ast.parse(again.text)
    return new.decode(source.encoding), expression


@for_every(
    ("before", "after"),
    [
        ("", f"{LINE}\n"),
        ("x = 1\n", f"{LINE}\n\nx = 1\n"),
        ("\n\nx = 1\n", f"{LINE}\n\n\nx = 1\n"),
        ("#!/bin/env python\nx = 1\n", f"#!/bin/env python\n\n{LINE}\n\nx = 1\n"),
        ("# coding: utf-8\n# Copyright\n\nx = 1\n", f"# coding: utf-8\n# Copyright\n\n{LINE}\n\nx = 1\n"),
        ("# only a comment", f"# only a comment\n\n{LINE}"),
        ('"""Doc."""\n', f'"""Doc."""\n\n{LINE}\n'),
        ('"""Doc."""', f'"""Doc."""\n\n{LINE}'),
        ('#!x\n"""Doc\n\nmore."""  # c\n\nx = 1\n', f'#!x\n"""Doc\n\nmore."""  # c\n\n{LINE}\n\nx = 1\n'),
        ("from __future__ import annotations\nx = 1\n", f"from __future__ import annotations\n\n{LINE}\n\nx = 1\n"),
        (
            "from __future__ import annotations\nimport os\n",
            f"from __future__ import annotations\nimport os\n\n{LINE}\n",
        ),
        ("import torch\nx = 1\n", f"import torch\n{LINE}\nx = 1\n"),
        ("import torch\n\nimport numpy as np\n\nx = 1\n", f"import torch\n{LINE}\n\nimport numpy as np\n\nx = 1\n"),
        ("import torch", f"import torch\n{LINE}"),
        (
            "from torch import (\n    nn,\n    optim,\n)  # c\nx = 1\n",
            f"from torch import (\n    nn,\n    optim,\n)  # c\n{LINE}\nx = 1\n",
        ),
        ("import a; import b; x = (\n  1)\ny = 1\n", f"import a; import b; x = (\n  1)\n{LINE}\ny = 1\n"),
        (
            "import os\nos.environ['X'] = '1'\nimport torch\nx = 1\n",
            f"import os\nos.environ['X'] = '1'\nimport torch\n{LINE}\nx = 1\n",
        ),
        ("import os\nx = 1\nimport sys\n", f"import os\n\n{LINE}\n\nx = 1\nimport sys\n"),
        (
            "try:\n    import torch\nexcept ImportError:\n    pass\n",
            f"{LINE}\n\ntry:\n    import torch\nexcept ImportError:\n    pass\n",
        ),
        ("def f():\n    import torch.utils.checkpoint\n", f"{LINE}\n\ndef f():\n    import torch.utils.checkpoint\n"),
        ("def f():\n    " + LINE + "\n    checkpoint()\n", f"{LINE}\n\ndef f():\n    {LINE}\n    checkpoint()\n"),
        ("if TYPE_CHECKING:\n    " + LINE + "\n", f"{LINE}\n\nif TYPE_CHECKING:\n    {LINE}\n"),
        ("import torch\r\nx = 1\r\n", f"import torch\r\n{LINE}\r\nx = 1\r\n"),
        ("\ufeffx = 1\n", f"\ufeff{LINE}\n\nx = 1\n"),
        ("f(checkpoint=1)\na.checkpoint\n", f"{LINE}\n\nf(checkpoint=1)\na.checkpoint\n"),
    ],
)
def test_where_the_line_goes(before: str, after: str) -> None:
    assert ensure(before) == (after, NAME)


@for_every(
    ("code", "expression"),
    [
        (LINE, "checkpoint"),
        (f"{LINE} as ckpt", "ckpt"),
        (f"from {MODULE} import (noop_detach, checkpoint)", "checkpoint"),
        ("from torch.utils import checkpoint", "checkpoint.checkpoint"),
        ("from torch.utils import checkpoint as cp", "cp.checkpoint"),
        ("import torch.utils.checkpoint as cp", "cp.checkpoint"),
        ("import torch.utils.checkpoint", "torch.utils.checkpoint.checkpoint"),
        ("import torch\nimport torch.utils.checkpoint\ncheckpoint = 1", "torch.utils.checkpoint.checkpoint"),
        (f"import torch.utils.checkpoint\n{LINE}", "checkpoint"),
    ],
)
def test_an_import_that_is_there_is_used(code: str, expression: str) -> None:
    assert ensure(code) == (code, expression)


def test_a_module_without_dots() -> None:
    assert ensure("import datetime as dt\n", "datetime", "timedelta") == ("import datetime as dt\n", "dt.timedelta")
    assert ensure("import torch.nn\n", "torch", "compile") == ("import torch.nn\n", "torch.compile")
    both = "from datetime import datetime\n"
    assert ensure(both, "datetime", "timedelta") == ("from datetime import datetime, timedelta\n", "timedelta")


OLD, NEW = "from contextlib import nullcontext\n", "from datetime import timedelta\n"


@for_every(
    ("before", "after"),
    [
        # Grouped and sorted files stay so.
        (
            "import os\nimport sys\n\nimport torch\n",
            "import os\nimport sys\nfrom datetime import timedelta\n\nimport torch\n",
        ),
        (f"import os\n{OLD}from pathlib import Path\n", f"import os\n{OLD}{NEW}from pathlib import Path\n"),
        (f"{OLD}import os\nfrom pathlib import Path\n", f"{OLD}{NEW}import os\nfrom pathlib import Path\n"),
        ("import torch\n", f"{NEW}\nimport torch\n"),
        ("'Doc.'\n\nimport torch\n", f"'Doc.'\n\n{NEW}\nimport torch\n"),
        (
            "from __future__ import annotations\n\nimport torch\n",
            f"from __future__ import annotations\n\n{NEW}\nimport torch\n",
        ),
        # Where nothing is grouped it goes behind its like.
        ("import torch\nimport os\nimport numpy\n", f"import torch\nimport os\n{NEW}import numpy\n"),
        ("import os; x = 1\nimport torch\n", f"import os; x = 1\n{NEW}import torch\n"),
        ("x = 1; import torch\n", f"{NEW}\nx = 1; import torch\n"),
        ("import os\r\nimport torch as t\r\n", "import os\r\n" + NEW.replace("\n", "\r\n") + "import torch as t\r\n"),
        # Names join those of the same module, in their order.
        ("from datetime import date, tzinfo\n", "from datetime import date, timedelta, tzinfo\n"),
        ("from datetime import tzinfo, date\n", "from datetime import tzinfo, date, timedelta\n"),
        ("from datetime import date  # c\n", f"from datetime import date  # c\n{NEW}"),
        ("from datetime import (\n    date,\n)\n", f"from datetime import (\n    date,\n)\n{NEW}"),
        ("from datetime import date as d\n", f"from datetime import date as d\n{NEW}"),
        # Not usable as they are.
        (
            "try:\n    from datetime import date\nexcept E: ...\n",
            f"{NEW}\ntry:\n    from datetime import date\nexcept E: ...\n",
        ),
        ("from .datetime import date\n", f"{NEW}\nfrom .datetime import date\n"),
    ],
)
def test_where_a_line_of_the_standard_library_goes(before: str, after: str) -> None:
    assert ensure(before, "datetime", "timedelta") == (after, "timedelta")


@for_every(
    ("before", "after", "expression"),
    [
        ("import sys\n", "import os\nimport sys\n", "os.replace"),
        ("from os import path\n", "import os\nfrom os import path\n", "os.replace"),
        ("from os import replace\n", "from os import replace\n", "replace"),
        ("os = 1\n", "from os import replace\n\nos = 1\n", "replace"),
        ("import torch\n", "import os\n\nimport torch\n", "os.replace"),
        ("from .a import b\n", "import os\n\nfrom .a import b\n", "os.replace"),
    ],
)
def test_a_name_that_says_little_is_used_through_its_module(before: str, after: str, expression: str) -> None:
    assert ensure(before, "os", "replace") == (after, expression)


def test_packages_go_to_packages_and_stay_behind_what_runs_first() -> None:
    code = "import os\n\nimport numpy\nimport torch\nimport yaml\n\nfrom .a import b\n"
    assert ensure(code, "scipy", "fft")[0] == code.replace("import yaml\n", "import yaml\nfrom scipy import fft\n")
    code = "import os\nfrom .a import b\n"
    assert ensure(code, "scipy", "fft")[0] == f"{code}\nfrom scipy import fft\n"
    code = "import numpy\n\nprepare()\nimport torch\nimport yaml\n"
    assert ensure(code)[0] == code + LINE + "\n"


@for_every(
    "code",
    [
        "checkpoint = 1",
        "def f(checkpoint): ...",
        "def f():\n    checkpoint = load()",
        "def checkpoint(): ...",
        "class checkpoint: ...",
        "from other import checkpoint",
        "import checkpoint",
        "import other as checkpoint",
        "from .checkpoint import checkpoint",
        "for a, checkpoint in b: ...",
        "with a as checkpoint: ...",
        "try: ...\nexcept E as checkpoint: ...",
        "def f():\n    global checkpoint",
        "[0 for checkpoint in a]",
        "lambda *checkpoint: 0",
        "match a:\n    case {**checkpoint}: ...",
        "match a:\n    case [*checkpoint] | checkpoint: ...",
        "from other import *\ncheckpoint()",
        f"try:\n    {LINE}\nexcept ImportError:\n    checkpoint = None",
        f"{LINE}\ndef f():\n    checkpoint = load()",
        f"{LINE}\nfrom other import checkpoint",
    ],
)
def test_a_name_of_the_file_is_not_shadowed(code: str) -> None:
    new, expression = ensure(code)
    assert expression == "torch.utils.checkpoint.checkpoint"
    added = "import torch.utils.checkpoint"
    lines = [line for line in new.split("\n") if line]
    assert added in lines
    assert [line for line in lines if line != added] == code.split("\n")


def test_an_alias_where_both_names_are_taken() -> None:
    new, expression = ensure("checkpoint = torch = torch_checkpoint = None\n")
    assert expression == "torch_checkpoint_"
    assert new.startswith(f"{LINE} as torch_checkpoint_\n")


def test_a_rebound_alias_is_not_used() -> None:
    code = "import datetime as dt\ndef f(dt): ...\n"
    assert ensure(code, "datetime", "timedelta")[1] == "timedelta"


def test_latin_1_keeps_its_bytes() -> None:
    code = "# coding: latin-1\n'''ä'''\nimport torch\nx = 'ö'\n"
    new, _ = ensure(code.encode("latin-1"))
    assert new == code.replace("import torch\n", f"import torch\n{LINE}\n")


def test_two_fixes_share_the_edit_and_a_broken_file_has_none() -> None:
    source = Source.from_bytes("/t.py", b"import torch\n", Kind.PYTHON)
    assert ensure_import(source, MODULE, NAME) == ensure_import(source, MODULE, NAME)
    assert ensure_import(Source.from_bytes("/t.py", b"def f(:\n", Kind.PYTHON), MODULE, NAME)[0] is None
