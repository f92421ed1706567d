"""The other arm of an ``if``, told from a text."""

from __future__ import annotations

import re

from collected import for_every

from ldlm_lint.project.arms import stands_in_other_arm

ENGINE = re.compile(rb"deepspeed")


@for_every(
    ("text", "expected"),
    [
        ("if args.deepspeed:\n    a()\nelse:\n    wrap()\n", True),
        ("if args.deepspeed:\n    a()\nelif args.distributed:\n    wrap()\n", True),
        ("if args.deepspeed:\n    a(\n        b,\n    )\nelse:\n    # one of many\n    if args.distributed:\n        wrap()\n", True),
        ("if args.fast:\n    a()\nelif args.deepspeed:\n    b()\nelse:\n\n    wrap()\n", True),
        ("def main():\n\tif args.deepspeed:\n\t\ta()\n\telse:\n\t\twrap()\n", True),
        # None of these says that it is the one or the other.
        ("if args.deepspeed:\n    wrap()\n", False),
        ("if args.deepspeed:\n    a()\nwrap()\n", False),
        ("if args.fast:\n    a()\nelse:\n    wrap()\n", False),
        ("if args.deepspeed:\n    a()\nelse:\n    def later():\n        wrap()\n", False),
        ("for deepspeed in y:\n    a()\nelse:\n    wrap()\n", False),
    ],
)
def test_where_a_line_stands(text: str, expected: bool) -> None:
    line = text[: text.index("wrap()")].count("\n") + 1
    assert stands_in_other_arm(text.encode(), line, ENGINE) is expected
