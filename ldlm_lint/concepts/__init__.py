"""The concepts of training, one module per concept, computed on a `ldlm_lint.program.Program`."""
