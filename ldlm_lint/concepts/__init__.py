"""What training is made of, each fact with one owner, asked of a `ldlm_lint.program.Program`."""
