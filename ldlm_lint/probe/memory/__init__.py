"""Peak memory of a training step without the hardware: the user's model under fake tensors, in a separate process.

`request` and `launch` need no torch and run in the command; the other modules run in the child process (``python -m
ldlm_lint.probe.memory``), since the user's code may crash, hang or exhaust the memory there.
"""
