"""Names of tests that hold in few steps only, when only the names are known.

Both analyses of a program use them; collected from about 200 repositories.
"""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

RARE_NAME = lazily(
    r"(^|_)(should|time_to|do|is|need|needs|will|to|if)_(be_)?(log|print|report|save|eval|valid|vis|plot|sample|summar"
    r"|display|record|checkpoint|val|test)|(log|print|report|save|eval|vis|plot|record)_(now|this|step|iter|flag)"
    r"|every(_|$)|(^|_)(interval|freq|frequency|period|due|ready|tick|elapsed|verbose\w*|debug\w*|profil\w+"
    r"|benchmark\w*|sanity\w*|dry_?run|trac(e|ing)|scripting|onnx\w*|export\w*|dump\w*|visuali[sz]e\w*|first|last"
    r"|final|finished|done|stopp?(ed|ing)?|warning|warned|warn|summary)(_|$)|(^|_)every"
    # Parameters trained besides a weight are neither added to it nor switched off.
    r"|(^|_)(merged|safe_merge|disabled?_adapters?|deploy(ed)?)$"
    r"|(^|_)(error|raise|fail|warn|assert|throw)_(if|on|when)(_|$)|(^|_)is_time_(for|to)(_|$)|(^|_)periodic(_|$)",
    re.I,
)
TROUBLE = lazily(
    r"nan|inf($|_)|inf_|overflow|skip(ped)?($|_)|invalid|diverg|oom($|_)|bad($|_)|fail|error|exception|corrupt|broken"
    r"|expired|dead($|_)|thrash",
    re.I,
)
EVALUATION_WORD = lazily(
    r"(^|_)(eval\w*|val|valid|validation|validate|validating|test|testing|infer\w*|predict)(_|$)", re.I
)
GENERATES = lazily(r"streaming_state|incremental_state|past_(key|kv)|kv_?cache", re.I)
HAS_DEVICE = lazily(r"^(use|has|is|on|with)?_?(cuda|gpu)(_available)?$")
