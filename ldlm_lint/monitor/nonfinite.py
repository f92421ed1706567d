"""Messages of programs about non-finite values: the problem (NaN, inf, invalid), the quantity, and that it happened."""

from __future__ import annotations

from ldlm_lint.monitor.patterns import pattern

_ONE = r"(?:nans?|infs?|infinit(?:e|y)|non-?finite|not a number)"
_BAD = rf"(?<![\w.])(?:{_ONE}(?: ?(?:/|,|or|and)+ ?{_ONE})*)(?![\w=])"
_QUANTITY = (
    r"(?:loss(?:es)?|(?:grad(?:ient)?s?(?:[ _-]norms?)?|gnorm|(?:total|global)[ _]norm)|weights?|param(?:eter)?s?|logits"
    r"|activations?|outputs?|predictions?|inputs?|tensors?|rewards?|perplexity|embeddings?|latents?|values?)"
)
_OF = rf"(?:(?:train(?:ing)?|val(?:idation)?|total|batch|model|policy|critic|actor|lm|local|global|micro-?batch)[ _])?{_QUANTITY}"
_INVALID = r"(?<![\w.])invalid (?:train(?:ing)? |total )?(?:loss(?:es)?|grad(?:ient)?s?(?:[ _]norms?)?)(?! ?(?:function|fn|type|name|weight|reduction|scale))"
_HAPPENED = r"(?:detected|encountered|found|occurr?(?:s|ed)?|seen|observed|appeared|hit)\b"
_DONE = r"(?:skip|stop|abort|terminat|exit|halt|rais|revert|roll|restart|ignor|break|discard|reset|quit|end(?:ing|ed)\b|reload|recover)\w*"
_WHERE = (
    r"(?:at|in|on|for|during|after|from) (?:the |local |rank )?(?:\w+[ _])?(?:step|iter\w*|epoch|batch|layer|rank|param\w*|micro\w*|loss|grad\w*"
    r"|update|forward|backward|inputs?|outputs?|weights?|logits?|activations?|norm|sample|\d)"
)
_THEN = rf"(?!: ?(?:skip|raise|ignore)\b)(?:\W{{1,4}}(?:so |now )?{_DONE}|\W{{1,4}}please check)"
_PROOF = rf"(?:(?: (?:was|were|has been|have been))? {_HAPPENED}| {_WHERE}|{_THEN}| ?!(?!=))"
_FORMS = "|".join(
    (
        # NaN gradient detected; Nan grad norm occurs; NaN/Inf loss at step 3; Invalid loss nan, terminating training
        rf"(?:{_BAD}[ -]|(?<!\w)nan(?=loss|grad))(?:valued? )?{_OF}(?: ?\([^()]{{1,24}}\)|:? [-+]?(?:nan|inf)\b)?{_PROOF}",
        rf"{_INVALID}(?: (?:value|of))?(?::? ?[-+]?(?:nan|inf|[\d.e+]+))?{_PROOF}",
        # Loss became NaN at step 3; gradients contain inf values; training loss is not finite
        rf"(?<![\w.]){_OF}(?:'s value| value| norm)? (?:is|are|was|were|became|becomes|has become|have become|turned(?: in)?to|turned|went(?: to)?"
        rf"|contains?|contained|ha(?:s|ve|d))(?: (?:now|an?|some|all))? (?:{_BAD}|not finite)(?: (?:values?|gradients?|elements?|entries))?"
        rf"(?=\s*(?:$|[.,!;:)(\-\u2013\u2014|])| {_WHERE})",
        # NaN detected in gradients; Inf values found at step 3
        rf"{_BAD}(?: values?)?(?: (?:was|were|has been|have been))? {_HAPPENED}(?=\s*(?:$|[!.,;(]| ?(?:in|at|for|on|during|after|from|by)\b))",
        # Detected a NaN loss; encountered inf in grad norm
        rf"(?<![\w.])(?:detected|encountered|found|got|produced|observed|hit)(?: (?:an?|some|[1-9]\d*))? (?:{_BAD}(?: values?)?(?: {_OF}| {_WHERE})|{_INVALID})",
        # NaN in loss at step 3; parameter x.weight has NaN gradient; AssertionError: loss should not be NaN
        rf"{_BAD}(?: values?)? (?:in|for) (?:the )?{_OF}(?= ?!| {_WHERE})",
        rf"\b(?:param(?:eter)?|layer|weight|module|tensor) [\w.'\"/]+ (?:has|had|contains?|contained)(?: an?)? {_BAD}",
        rf"\w(?:error|exception): [^:\"']{{0,60}}?(?<![\w.]){_OF} (?:should not be|must not be|cannot be) {_BAD}",
        # loss=nan at step 3, stopping
        rf"(?<![\w.]){_OF} ?[=:] ?[-+]?{_ONE}\b[^|=]{{0,30}}?{_THEN}",
        # Skipping batch due to NaN values
        rf"(?<![\w.]){_DONE}(?: \w+){{0,4}}?(?: due to| because of|:| as| since| after| on)(?: (?:the|an?|{_OF}(?: (?:is|are|was|were))?))? (?:{_BAD}|not finite|{_INVALID})",
    )
)
_TRIGGERS = (
    "NaN|NAN|=nan|: nan|= nan|Nan |nan loss|nan grad|nan norm|nan value|nan in |nan at |nan detected|nan found|is nan|are nan|e nan|o nan|d nan|t nan|/nan|nan/"
    "|n-finite|nfinite|ot finite|nvalid loss|nvalid grad|nvalid train|inf loss|inf grad|inf detected|inf found|inf in |inf or nan|is inf|e inf|o inf"
    "|Inf |Infs |INF |s nan"
)
PATTERNS = (pattern("nan-message", _TRIGGERS, rf"(?i)(?:{_FORMS})", spoken=True),)
