"""What a text freezes: a model whose parameters need no gradients is evaluated for nothing else."""

from __future__ import annotations

from collected import for_every

from ldlm_lint.vocabulary.frozen_texts import is_frozen


@for_every(
    ("text", "root", "frozen"),
    [
        ("for p in vae.parameters():\n    p.requires_grad = False\n", "vae", True),
        ("for p in vae.parameters():\n    p.requires_grad = False\n", "self.vae", True),
        ("for p in vae.module.named_parameters():  # all\n    p.requires_grad_(False)\n", "vae", True),
        ("for p in self.vae.parameters():\n    p.requires_grad = False\n", "self.vae", True),
        ("for p in self.vae.module.parameters():\n    p.requires_grad = False\n", "self.vae", True),
        ("for p in self.vae.decoder.parameters():\n    p.requires_grad = False\n", "self.vae", False),
        ("for p in vae.parameters():\n    p.requires_grad = True\n", "vae", False),
        ("for p in vae.parameters():\n    names.append(p)\np.requires_grad = False\n", "vae", False),
        ("for p in a.parameters(): b.parameters(); p.requires_grad=False\n", "b", False),
        ("[x for p in a.parameters(): for q in b.parameters(): q.requires_grad=False]", "b", True),
        ("self.vae.requires_grad_(False)\n", "model.vae", True),
        ("vae.module.eval().requires_grad_(False)\n", "vae", True),
        ("vae.module.eval().requires_grad_(False)\n", "module", True),
        ("vae.requires_grad_(True)\n", "vae", False),
        ("vae_2.requires_grad_(False)\n", "vae", False),
        ("self.vae = load(\n    path,\n).eval().requires_grad_(False).to(device)\n", "self.vae", True),
        ("vae = load(\n    path,\n)\nload(\n    other,\n).requires_grad_(False)\n", "vae", False),
        ("vae = load(\n    path,\n    other(\n        1,\n    ).requires_grad_(False),\n)\n", "vae", False),
        ("self.vae = load(path).to(device).requires_grad_(False)\n", "vae", True),
        ("self.vae = load(path).to(device).requires_grad_(False)\n", "self.vae", True),
        ("self.vae = load(path).to(device).requires_grad_(False)\n", "other.vae", False),
        ("a = b = load().requires_grad_(False)\n", "b", True),
        ("a = load()\nb.c.requires_grad_(False)\n", "a", False),
        ("vae.freeze()\n", "vae", True),
        ("vae.freeze_encoder()\n", "vae", False),
        ("freeze_model(vae.module)\n", "vae", True),
        ("freeze(self.vae)\n", "vae", False),
        ("freeze(vae, True)\n", "vae", False),
        ("G = make().requires_grad_(False).to(device)\nG_ema = copy.deepcopy(G).eval()\n", "G_ema", True),
        ("net.requires_grad_(False)\nema = deepcopy(net.module)\n", "ema", True),
        ("self.net.requires_grad_(False)\nself.ema = deepcopy(self.net)\n", "self.ema", True),
        ("ema = copy.deepcopy(net)\nnet.requires_grad_(False)\n", "ema", False),
        ("vae.requires_grad_(False)\nema = copy.deepcopy(net)\n", "ema", False),
        ("vae.requires_grad_(False)\nema = copy.deepcopy(vae, memo)\n", "ema", False),
        ("import onnxruntime\n", "anything", True),
        ("model = torch.jit.freeze(model)\n", "anything", True),
        ("", "vae", False),
    ],
)
def test_is_frozen(text: str, root: str, frozen: bool) -> None:
    assert is_frozen(root, text) is frozen
