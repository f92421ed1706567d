"""Questions of findings in scripts about scripts in the same shell, through ``source``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.rules.environment_aliases import winner_beside
from ldlm_lint.rules.environment_watchdog import HEARTBEAT, inert_beside
from ldlm_lint.shell.launch_pipes import is_environment, speaks_of_pipefail
from ldlm_lint.shell.variables import settings
from ldlm_lint.source import Kind

_SHOWN = 3


def _holds_with_sourced_scripts(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The launch gets the same value also with the variables of sourced files."""
    path = finding.span.path
    return Verdict(any(one.span == finding.span for one in _of_launches(context, path, finding)))


def _holds_in_sourcing_script(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A script that sources this one passes the value to a training; one finding for all of them."""
    from ldlm_lint.project.questions import decide

    args: Mapping[str, object] = {}
    related: list[Related] = []
    for path in context.sourcing.sourcers(finding.span.path):
        found = (one for one in _of_launches(context, path, finding) if one.span == finding.span)
        decided = next((one for one in found if decide(one, context) is not None), None)
        if decided is not None:
            args = {name: value for name, value in decided.args if name not in dict(finding.args) or name == "world"}
            related += [one for one in decided.related if one not in related]
    return Verdict(bool(related), tuple(related[:_SHOWN]), tuple(sorted(args.items())))


def _of_launches(context: Context, path: str, finding: Finding) -> Iterator[Finding]:
    """The findings of a rule for the launches of a script with its sourced files."""
    from ldlm_lint.shell import launch_values

    codes = context.sourcing.codes(path)
    for code in codes:
        if finding.rule == "dataloader-too-many-workers":
            options = {"workers-limit": dict(finding.args)["workers"]}
            found = launch_values.too_many_workers(code, codes[0], options)
        else:
            found = launch_values.fixed_accumulation(code, codes[0])
        yield from (_without(one) for one in found)


def _without(finding: Finding) -> Finding:
    """A finding without the question that is being answered."""
    return finding._replace(claims=tuple(one for one in finding.claims if one.kind != "holds-with-sourced-scripts"))


def _heartbeat_is_inert_beside(context: Context, finding: Finding, names: str) -> Verdict:
    """A script in the same shell switches the monitor off, or blocking wait on, for the launches that get the heartbeat."""
    own = finding.span.path
    for path in sorted(context.sourcing.around(own)):
        source = context.project.source(path)
        if source is None or _is_taken_back(context, own, own, HEARTBEAT):
            continue
        beside = [one for one in settings(source, context.sourcing.codes(path)) if not _is_taken_back(context, own, path, one.name)]
        cause = inert_beside(beside, names.split())
        if cause is not None:
            setting, said = cause
            return Verdict(True, (Related(setting.span, "this disables the heartbeat timeout"),), (("cause", said),))
    return Verdict(False)


def _winner_differs_beside(context: Context, finding: Finding, subject: str) -> Verdict:
    """A script in the same shell sets the name that torch reads instead, to another value."""
    sourcing, path = context.sourcing, finding.span.path
    if _is_taken_back(context, path, path, str(dict(finding.args).get("name", ""))):
        return Verdict(False)
    together = {one for script in (path, *sourcing.sourcers(path)) for one in sourcing.sourced_at_all(script)}
    for other in sorted(together - {path}):
        name = subject.partition("|")[0]
        source = None if _is_taken_back(context, path, other, name) else context.project.source(other)
        found = winner_beside(settings(source, sourcing.codes(other), (name,)), subject) if source is not None else None
        if found is not None:
            setting, said = found
            return Verdict(True, (Related(setting.span, "torch reads this one"),), (("winner", said),))
    return Verdict(False)


def _is_taken_back(context: Context, path: str, home: str, name: str) -> bool:
    """Whether every script that runs two files in one shell unsets the variables of one of them (``home``) before any
    launch."""
    sourcing = context.sourcing
    shells = [one for one in (path, *sourcing.sourcers(path)) if home != one and home in sourcing.sourced_at_all(one)]
    return bool(shells) and all(sourcing.takes_back(one, home, name) for one in shells)


def _variable_is_read_nowhere_else(context: Context, finding: Finding, name: str) -> Verdict:
    """The finding is in any case; but where other files read the variable, it must not change without a look there."""
    path = finding.span.path
    if finding.fix is None:
        return Verdict(True)
    if context.project.others.get(path) is Kind.SHELL and context.sourcing.reads(path, name):
        return Verdict(True, unsafe="a script in the same shell uses the variable")
    read = context.reads_variable(name)
    return Verdict(True, unsafe="Python code of the project reads the variable" if read else "")


def _sourced_scripts_leave_pipefail_off(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Every file that is sourced is known, or one for the environment, and none of them sets the option."""
    sourcing = context.sourcing
    scripts = sourcing.sourced_at_all(finding.span.path)
    known = context.project.others.keys() >= scripts
    strange = any(not is_environment(word.text) for path in scripts for word in sourcing.unknown(path))
    sets = any(speaks_of_pipefail(context.project.data(path)) for path in scripts - {finding.span.path})
    return Verdict(known and not strange and not sets)


QUESTIONS: dict[str, Question] = {
    "holds-with-sourced-scripts": _holds_with_sourced_scripts,
    "holds-in-sourcing-script": _holds_in_sourcing_script,
    "heartbeat-is-inert-beside": _heartbeat_is_inert_beside,
    "sourced-scripts-leave-pipefail-off": _sourced_scripts_leave_pipefail_off,
    "winner-differs-beside": _winner_differs_beside,
    "variable-is-read-nowhere-else": _variable_is_read_nowhere_else,
}
