"""The meaning of a repository: modules, links, calls and values, joined from the tables of its files and computed on
demand.
"""

from ldlm_lint.program.program import Program, linked

__all__ = ["Program", "linked"]
