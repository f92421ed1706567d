"""What the text of a call tells of its arguments, and the trees that need not be made for it."""

from __future__ import annotations

import pytest

from ldlm_lint.project.call_texts import may_give


@pytest.mark.parametrize(
    "text",
    [
        "DataLoader(data, num_workers=4)",
        "torch.utils.data.DataLoader(\n    data,\n    num_workers=n,\n)",
        "DataLoader (data, num_workers=4)",
        "DataLoader \\\n  (data, num_workers=4)",
        "DataLoader(data, **config.loader)",
        "DataLoader(*arguments)",
        "DataLoader(data, 8, True, None, None, 4)",
        "DataLoader(Texts(')'), num_workers=4)",
        "DataLoader(Texts(\"it's )\"), # it's )\n num_workers=4)",
        "DataLoader('''\n)''', num_workers=4)",
        "DataLoader(data, [a, (b, c)], num_workers=4",
        "from torch.utils.data import DataLoader as Loader",
        "from torch.utils.data import (\n    DataLoader as Loader,\n)",
        "from torch.utils.data import DataLoader \\\n  as Loader",
        "Loader = DataLoader\n",
        "functools.partial(DataLoader, num_workers=4)",
        "def loader() -> DataLoader:\n",
        "DataLoader(data)\nDataLoader(data, num_workers=2)",
    ],
)
def test_what_may_give_the_parameter(text: str) -> None:
    assert may_give(text.encode(), ["DataLoader"], "num_workers", 5)


@pytest.mark.parametrize(
    "text",
    [
        "DataLoader(data)",
        "DataLoader(data, batch_size=8, shuffle=True)",
        "DataLoader(Texts(a, b, c, d, e, f), batch_size=(1, 2, 3, 4, 5, 6))",
        "from torch.utils.data import DataLoader\nDataLoader(data)\nnum_workers = 4\n",
        "from torch.utils.data import Dataset, DataLoader, Sampler\n",
        "MyDataLoader(data, num_workers=4)",
        "DataLoader(data, ', , , , , , ')",
    ],
)
def test_what_cannot_give_the_parameter(text: str) -> None:
    assert not may_give(text.encode(), ["DataLoader"], "num_workers", 5)


def test_a_parameter_without_a_place_is_given_by_name_alone() -> None:
    assert not may_give(b"AdamW(a, b, c, d, e, f, g)", ["Adam", "AdamW"], "fused", None)
    assert may_give(b"AdamW(a, fused=True)", ["Adam", "AdamW"], "fused", None)
