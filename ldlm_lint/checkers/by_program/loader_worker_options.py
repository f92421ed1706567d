"""The options of loaders that need workers, as far as the program shows what is given for them."""

from __future__ import annotations

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.data_options import WITHOUT_WORKERS, needs_workers
from ldlm_lint.program.queries import State


def worker_options_of(view: View, one: LoaderCall) -> list[str]:
    """The options of a loader that certainly need workers."""
    return [name for name in WITHOUT_WORKERS if _needs(view, one, name)]


def _needs(view: View, one: LoaderCall, name: str) -> bool:
    given = view.loaders.option(one, name)
    if given.state is not State.GIVEN or not given.sources:
        return False
    meaning = view.ask.meaning(*given.sources)
    known = meaning.is_complete and len(meaning.constants) == len(meaning.value)
    return known and needs_workers(name, meaning.constants)
