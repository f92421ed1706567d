"""What the text of a call tells of its arguments, and the trees that need not be made for it."""

from __future__ import annotations

from collected import for_every

from ldlm_lint.project.call_texts import may_hand_on


@for_every(
    "text",
    [
        "DataLoader(data, num_workers=n)",
        "torch.utils.data.DataLoader(\n    data,\n    num_workers=n,\n)",
        "DataLoader (data, num_workers=n)",
        "DataLoader \\\n  (data, num_workers=n)",
        "DataLoader(data, **config.loader)",
        "DataLoader(*arguments)",
        "DataLoader(data, 8, True, None, None, 4)",
        "DataLoader(Texts(')'), num_workers=n)",
        "DataLoader(Texts(\"it's )\"), # it's )\n num_workers=n)",
        "DataLoader('''\n)''', num_workers=n)",
        "DataLoader(data, [a, (b, c)], num_workers=n",
        "from torch.utils.data import DataLoader as Loader",
        "from torch.utils.data import (\n    DataLoader as Loader,\n)",
        "from torch.utils.data import DataLoader \\\n  as Loader",
        "Loader = DataLoader\n",
        "functools.partial(DataLoader, num_workers=n)",
        "DataLoader(data, num_workers=4 * n)",
        "DataLoader(data, num_workers=4 if n else num_workers)",
        "DataLoader(Texts(num_workers=4), num_workers=n)",
        "from a import b\nuse(DataLoader, n)\n",
        "from a import (b,\n  c)\nLoader = DataLoader\n",
        "def loader() -> DataLoader:\n",
        "DataLoader(data)\nDataLoader(data, num_workers=args.n)",
    ],
)
def test_what_may_hand_on_the_parameter(text: str) -> None:
    assert may_hand_on(text.encode(), ["DataLoader"], "num_workers", 5)


@for_every(
    "text",
    [
        "DataLoader(data)",
        "DataLoader(data, batch_size=8, shuffle=True)",
        "DataLoader(Texts(a, b, c, d, e, f), batch_size=(1, 2, 3, 4, 5, 6))",
        "from torch.utils.data import DataLoader\nDataLoader(data)\nnum_workers = 4\n",
        "from torch.utils.data import Dataset, DataLoader, Sampler\n",
        "DataLoader(data, num_workers=4)",
        "DataLoader(data, num_workers = 4 , pin_memory=True)",
        "from torch.utils.data import (DataLoader, RandomSampler,\n    Dataset)\nDataLoader(data)",
        "from torch.utils.data import (\r\n    Dataset,\r\n    DataLoader,\r\n)\r\nDataLoader(data)",
        "try:\n    from torch.utils.data import DataLoader\nexcept ImportError:\n    pass\n",
        "MyDataLoader(data, num_workers=n)",
        "DataLoader(data, ', , , , , , ')",
    ],
)
def test_what_cannot_give_the_parameter(text: str) -> None:
    assert not may_hand_on(text.encode(), ["DataLoader"], "num_workers", 5)


def test_a_parameter_without_a_place_is_given_by_name_alone() -> None:
    assert not may_hand_on(b"AdamW(a, b, c, d, e, f, g)", ["Adam", "AdamW"], "fused", None)
    assert may_hand_on(b"AdamW(a, fused=on)", ["Adam", "AdamW"], "fused", None)
