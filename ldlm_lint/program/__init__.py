"""What a repository means: modules, links, calls and values, joined from the tables of its files and asked on demand."""

from ldlm_lint.program.program import Program, linked

__all__ = ["Program", "linked"]
