"""Finds attention that is computed operation by operation in models that train."""

from __future__ import annotations

import functools
import re

from astroid import nodes

from ldlm_lint.checkers.attention_patterns import written_out_attention
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Argument, Arguments
from ldlm_lint.python.names import qualified
from ldlm_lint.rules.attention import RULES, UNFUSED_ATTENTION
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

_FUSED = lazily(
    r"scaled_dot_product_attention|flash_attn|flash_attention|memory_efficient_attention|flex_attention|xformers|sdpa|fused_attn"
)
# Constructors with a switch for fused attention: the keyword, the value that turns it off, and the value that turns it
# on. As of transformers 4.57, x-transformers 2.11, denoising-diffusion-pytorch 2.2.
_SWITCHES: tuple[tuple[re.Pattern[str], str, object, str], ...] = (
    (re.compile(r"^transformers\..*\.(from_pretrained|from_config)$"), "attn_implementation", "eager", '"sdpa"'),
    (
        re.compile(r"^x_transformers\.(\w+\.)?(Encoder|Decoder|PrefixDecoder|CrossAttender|AttentionLayers)$"),
        "attn_flash",
        False,
        "True",
    ),
    (re.compile(r"^denoising_diffusion_pytorch\.(\w+\.)?Unet$"), "flash_attn", False, "True"),
)
_REASON = "another kernel changes the last bits, and a model or device without such a kernel raises"


class AttentionChecker(LdlmChecker):
    """Attention that no fused kernel computes."""

    rules = RULES

    def visit_functiondef(self, node: nodes.FunctionDef) -> None:
        """Check every function with a softmax between two products."""
        if b"oftmax(" not in self.source.data:
            return
        softmax = written_out_attention(node)
        if softmax is None or _FUSED.search(self._text_around(node)):
            return
        owner = node.parent if isinstance(node.parent, nodes.ClassDef) else node
        self.report(
            UNFUSED_ATTENTION,
            softmax,
            args={"what": quoted(owner.name), "advice": "call `F.scaled_dot_product_attention`"},
            claims=(Claim("model-trains", owner.name),),
        )

    def visit_call(self, node: nodes.Call) -> None:
        """Check constructors that switch fused attention off."""
        names = qualified(node.func)
        if len(names) != 1:
            return
        name = next(iter(names))
        for pattern, keyword, off, on in _SWITCHES:
            if not pattern.search(name):
                continue
            argument = Arguments(node)[keyword]
            if not argument.is_only(off) or b"output_attentions" in self.source.data:
                continue
            self.report(
                UNFUSED_ATTENTION,
                node,
                args={"what": f"{quoted(node.func.as_string())} with `{keyword}={off!r}`", "advice": f"pass `{keyword}={on}`"},
                claims=(Claim("file-trains"),),
                fix=functools.partial(_switched_on, argument=argument, keyword=keyword, value=on),
            )

    def _text_around(self, node: nodes.FunctionDef) -> str:
        """The code of the class that a function belongs to, which may choose between two implementations."""
        around = node.parent if isinstance(node.parent, nodes.ClassDef) else node
        return "\n".join(self.source.lines[around.fromlineno - 1 : around.end_lineno])


def _switched_on(source: Source, argument: Argument, keyword: str, value: str) -> Fix | None:
    """The fix that sets the switch to its other value, if it is in the call."""
    if not isinstance(argument.node, nodes.Const):
        return None
    edit = Edit(span_of(source, argument.node), value)
    return Fix(f"pass {keyword}={value}", (edit,), Applicability.DISPLAY, _REASON)
