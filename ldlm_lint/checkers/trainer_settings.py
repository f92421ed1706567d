"""The settings that Python passes to a Trainer, as sections: calls of TrainingArguments and its relatives, and classes
derived from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from astroid import nodes

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.frameworks.sections import Section
from ldlm_lint.model import Claim, Finding

# Their statements about a group or DDP apply wherever the arguments are used; the others affect only a training.
_OF_ANY_RUN = frozenset({"excessive-collective-timeout", "ddp-find-unused-parameters", "find-unused-with-reentrant-checkpoint"})
# No launch overrides an argument that the code passes.
_IN_FORCE = "trainer-setting-is-in-force"
_UNSET = "trainer-setting-is-unset"


def about(section: Section, node: nodes.Call | nodes.ClassDef, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about the settings of a section from a call or class."""
    if not _trains(section):
        return
    for finding in findings_of(section, options):
        yield _claiming(finding, section)


def _claiming(finding: Finding, section: Section) -> Finding:
    """A finding with the claims about its file; a launch cannot override an argument that the code passes."""
    flags = {one.flag for one in section.settings.values()}
    claims = tuple(one for one in finding.claims if section.call is None or one.kind != _IN_FORCE or one.subject in flags)
    if section.call is None:
        # The user may pass fields that a class leaves to transformers.
        claims = tuple(Claim("trainer-default-is-left", one.subject) if one.kind == _UNSET else one for one in claims)
    return finding._replace(claims=claims if finding.rule in _OF_ANY_RUN else (Claim("belongs-to-training"), *claims))


def _trains(section: Section) -> bool:
    """Whether the arguments are those of a training, as far as known."""
    return section.flag("do_train") is not False and not (section.on("do_predict") and not section.on("do_train"))


__all__ = ["about"]
