"""What loading an item costs, by names, where the code of a dataset or a function is not in the project; collected from public
trainings, 2025."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

IN_MEMORY = frozenset({"TensorDataset", "torch.load", "numpy.load", "pickle.load", "joblib.load", "numpy.memmap", "from_numpy"})
"""Functions and classes that give data in memory."""
TOYS = lazily(r"toy|dummy|fake|synthetic|mock|mnist|^random_?(?:data|tensor|token|image|text)", re.I)
"""Datasets of toys, whose items cost nothing."""
STREAMS_OF = lazily(r"^(webdataset|wds|litdata|streaming|nvidia\.dali|torchdata|torchtext\.datasets)\.|IterableDataset|Streaming")
"""Packages and classes that read streams themselves."""
DATASETS = lazily(r"data_?sets?($|_)|^ds$|_ds$", re.I)
"""Names of variables that hold a dataset."""
WRAPPERS = frozenset({"Subset", "ConcatDataset", "random_split", "train_test_split", "DatasetWrapper"})
"""Functions and classes that give the items of their first argument."""
CHEAP = frozenset(
    {
        *("len", "int", "float", "str", "dict", "list", "tuple", "range", "min", "max", "slice", "zip", "enumerate", "isinstance", "bool"),
        *("tensor", "as_tensor", "from_numpy", "LongTensor", "FloatTensor", "IntTensor", "BoolTensor", "Tensor", "array", "asarray"),
        *("stack", "cat", "zeros", "ones", "zeros_like", "ones_like", "full", "arange", "empty"),
        *("long", "float", "int", "bool", "clone", "copy", "to", "item", "view", "reshape", "unsqueeze", "squeeze", "astype", "contiguous"),
        *("randn", "rand", "randint", "random", "choice", "randrange", "seed", "manual_seed", "get", "items", "keys", "values", "append"),
        *("is_tensor", "tolist", "type", "size", "index_select", "memmap", "is_available", "print", "sum", "expand", "repeat", "BatchEncoding"),
        *("split", "strip", "map"),
    }
)
"""Functions and methods that only copy or arrange what is in memory."""
