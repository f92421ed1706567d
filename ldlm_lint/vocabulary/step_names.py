"""Names of optimizers, schedules of the learning rate and what may step them, for objects of which only the name is known
(public trainings, 2023 to 2026)."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

OPTIMIZER = lazily(r"optim|(^|_)opts?(_|\d|$)|adam|sgd", re.I)
NO_OPTIMIZER = lazily(r"sched|(^|_)lrs?(_|$)|options?$|params?$|args?$|config|cfg|noamopt|swarm", re.I)
SCALER = lazily(r"scaler", re.I)
SCHEDULE = lazily(r"sched|(^|_)lr_?(policy|decay|updater)", re.I)
NO_SCHEDULE = lazily(
    r"noise|ddpm|ddim|dpm|diffus|sampl|euler|beta|temper|tau|kl_|weight|wd_|decay_sched|momentum|mask|curricul|ema|eps|prof"
    r"|pipe|pp_|task|job|request|timestep|sigma|dropout|sparsity|prun|ratio|prob|size|plateau",
    re.I,
)
MAY_STEP = lazily(r"train|optim|(?<!time)(^|_)step|update|epoch(?!s)|^fit|^run|iteration|backward|learn(?!ing_rate)", re.I)
STEPS_NOTHING = lazily(
    r"zero_grad|sched|learning_rate|(^|_)lr(_|$)|set_epoch|state_dict|metric|(?<!ra)meter|(^|_)ema|pbar|progress|log|writer|wandb|print|"
    r"parse|args|load|sav|range|time|sampler|eval|valid|^len$|^update$|optimizers?$"
    r"|^_*(get|build|create|make|init|setup|configure|prepare|set|is|has|should|register|count|num|compute|calc)_"
)
NEVER_TRAINED = lazily(r"env|prof|sched|meter|metric|bar$|tim(e|er)$|ema|logger|watch|(^|_)lr", re.I)
SEVERAL = lazily(r"sched|optim|opts", re.I)
"""Collections of schedules or optimizers."""
PROGRESS = lazily(r"step|epoch|iter|idx|index|batch|count|warm|start|resum|first", re.I)
"""What conditions on the progress of a training mention."""
GENERIC = frozenset({"lr", "sched", "scheduler", "schedulers", "schedule", "optim", "optimizer", "optimizers", "opt", "opts", "self"})
"""Words that tell no optimizer from another one."""
