"""Settings that are off unless somebody asks for them, as the texts of a project tell."""

from __future__ import annotations

from collected import for_every
from snippets import context

from ldlm_lint.project.optional_settings import is_off_everywhere


@for_every(
    "files, off",
    [
        ({"train.py": 'parser.add_argument("--save_every", type=int, help="(in epochs)")\n'}, True),
        ({"train.py": 'parser.add_argument("--save-every", type=int, default=0)\n'}, True),
        ({"train.py": 'parser.add_argument("--save_every", default=None)\nrun(save_every=args.save_every)\n'}, True),
        ({"train.py": "class Options:\n    save_every: int | None = None\n"}, True),
        ({"train.py": 'parser.add_argument("--save_every", type=int, default=5)\n'}, False),
        ({"train.py": 'parser.add_argument("--save_every", type=int, required=True)\n'}, False),
        ({"train.py": "class Options:\n    save_every: int = 0\n", "run.py": "Options(save_every=10)\n"}, False),
        # Nothing is known of it.
        ({"train.py": "run(save_every=args.save_every)\n"}, False),
        ({"train.py": "def test_step():\n    return 0\n"}, False),
        # What only tests set is set nowhere.
        ({"train.py": "def run(save_every=None):\n    pass\n", "tests/test_run.py": "run(save_every=1)\n"}, True),
    ],
)
def test_what_is_off_everywhere(files: dict[str, str], off: bool) -> None:
    assert is_off_everywhere(context(files).project, "save_every") is off
