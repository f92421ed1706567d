"""Forms of code: what checkers find, however oddly it is spelled, and what looks like it and cannot be it."""

from __future__ import annotations

BLOCK = "import torch.nn as nn\nclass Block(nn.Module):\n    def __init__(self):\n        self.attn = nn.MultiheadAttention(8, 1)\n"

# Each is found by its checker before the project is asked: an odd spelling must not hide it.
FOUND = {
    "evaluation: a name of an evaluation": (
        "evaluation-with-gradients",
        "import torch\ndef evaluate(model, data):\n    for x in data:\n        y = model(x)\n",
    ),
    "evaluation: blanks and a continued line": (
        "evaluation-with-gradients",
        "import torch\ndef run(net, data):\n    net . eval ()\n    for x in data:\n        y = net \\\n            (x)\n",
    ),
    "evaluation: a comment inside of brackets": (
        "evaluation-with-gradients",
        "import torch\ndef run(net, data):\n    (net # eval\n     .eval())\n    return [net(x) for x in data]\n",
    ),
    "evaluation: through forward": (
        "evaluation-with-gradients",
        "import torch\ndef run(net, data):\n    net.eval()\n    while data:\n        net.module.forward(data.pop())\n",
    ),
    "evaluation: several models, one loop": (
        "evaluation-with-gradients",
        "import torch\ndef run(a, b, data):\n    for m in (a, b):\n        m.eval()\n    for x in data:\n        a(b(x))\n",
    ),
    "evaluation: no_grad over another statement only": (
        "evaluation-with-gradients",
        "import torch\ndef validate(model, data):\n    with torch.no_grad():\n        print(1)\n    for x in data:\n        model(x)\n",
    ),
    "evaluation: switched by another method": (
        "evaluation-with-gradients",
        "import torch\nclass Scorer:\n    def __init__(self, net):\n        self.net = net\n        self.net.eval()\n"
        "    def run(self, data):\n        return [self.net.module(x) for x in data]\n",
    ),
    "evaluation: switched by the module": (
        "evaluation-with-gradients",
        "import torch\nnet = make().to('cuda').eval()\ndef run(data):\n    return [net(x) for x in data]\n",
    ),
    "evaluation: between two phases of a training": (
        "evaluation-with-gradients",
        "import torch\ndef fit(model, data, held, optimizer):\n    for epoch in range(3):\n        model.train()\n        for x in data:\n"
        "            model(x).backward()\n            optimizer.step()\n        model.train(mode=False)\n        for x in held:\n            model(x)\n",
    ),
    "evaluation: through a method": (
        "evaluation-with-gradients",
        "import torch\nclass Runner:\n    def once(self, x):\n        return self.model(x)\n    def evaluate(self, data):\n"
        "        self.model.eval()\n        for x in data:\n            self.once(x)\n",
    ),
    "evaluation: in a case": (
        "evaluation-with-gradients",
        "import torch\nmatch mode:\n    case 1:\n        def evaluate(model, data):\n            for x in data:\n                model(x)\n",
    ),
}

# A condition that let everything pass would cost time and spare none.
SPARED = {
    "evaluation: no_grad around it": (
        "evaluation-with-gradients",
        "import torch\ndef evaluate(model, data):\n    for x in data:\n        with torch.no_grad():\n            model(x)\n",
    ),
    "evaluation: a decorator": (
        "evaluation-with-gradients",
        "import torch\n@torch.no_grad()\ndef evaluate(model, data):\n    for x in data:\n        model(x)\n",
    ),
    "evaluation: a model's own forward": (
        "evaluation-with-gradients",
        "from torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        for _ in range(3):\n            x = self.encoder(x)\n",
    ),
    "evaluation: a training": (
        "evaluation-with-gradients",
        "import torch\ndef fit(model, data, optimizer):\n    model.train()\n    for x in data:\n        model(x).backward()\n        optimizer.step()\n",
    ),
    "evaluation: a decoder that is a model itself": (
        "evaluation-with-gradients",
        "import torch\nfrom .base import ConfigMixin, ModelMixin\nclass Tiles(ModelMixin, ConfigMixin):\n"
        "    def tiles(self, z):\n        return [self.decoder(one) for one in z]\n",
    ),
    "memory: a file that trains nothing": (
        "cache-emptied-in-training-loop",
        "import torch\ndef free():\n    torch.cuda.empty_cache()\n",
    ),
}
