"""Observes calls of torch's functions without changing them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from ldlm_lint.probe.frames import in_the_callers_name
from ldlm_lint.probe.session import Session

Seen = Callable[..., None]


def tracing(torch: Any) -> Callable[[], bool]:
    """The function that says whether dynamo is tracing; a plain one, since a traced wrapper calls it."""
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_compiling", None) or (lambda: False)


def watch(
    session: Session,
    owner: Any,
    name: str,
    topic: str,
    *,
    before: Seen | None = None,
    after: Seen | None = None,
    failed: Seen | None = None,
) -> Callable[[], None]:
    """Observe calls of ``owner.name``, and return the function that ends it.

    ``before`` gets the call's arguments, ``after`` its result and the arguments, ``failed`` the exception and the
    arguments. None of them can change the call, and none runs while torch.compile traces, or for a call of the probe's
    own.
    """
    is_tracing = tracing(session.torch)

    def wrap(original: Any) -> Any:
        called = in_the_callers_name(original)

        def wrapper(*arguments: Any, **options: Any) -> Any:
            if session.is_at_work or is_tracing():
                return original(*arguments, **options)
            if before is not None:
                session.guard(topic, functools.partial(before, *arguments, **options))
            try:
                result = called(*arguments, **options)
            except Exception as error:
                if failed is not None:
                    session.guard(topic, functools.partial(failed, error, *arguments, **options))
                raise
            if after is not None:
                session.guard(topic, functools.partial(after, result, *arguments, **options))
            return result

        return wrapper

    return session.patch(owner, name, wrap, topic)


class Fragile:
    """Patches of functions that compilers inspect: removed permanently when the program first calls torch.compile, and
    temporarily while torch.jit compiles.

    ``install`` makes the patches and returns the functions that end them.
    """

    def __init__(self, session: Session, install: Callable[[], list[Callable[[], None]]]) -> None:
        self._install = install
        self._ends: list[Callable[[], None]] = []
        self._over = session.uses_compile
        session.before_compile(self.end)
        session.fragile.append(self)
        self.resume()

    def pause(self) -> None:
        """Take the patches away until `resume`."""
        while self._ends:
            self._ends.pop()()

    def resume(self) -> None:
        """Make the patches, if they are not there and not over."""
        if not self._over and not self._ends:
            self._ends = self._install()

    def end(self) -> None:
        """Take the patches away for good."""
        self._over = True
        self.pause()


def watch_outermost(
    session: Session,
    owners: Iterator[Any],
    name: str,
    topic: str,
    *,
    before: Seen | None = None,
    failed: Seen | None = None,
) -> None:
    """Observe the outermost calls of a method that subclasses override and call again."""
    depth = [0]
    is_tracing = tracing(session.torch)

    def wrap(original: Any) -> Any:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            if depth[0] or session.is_at_work or is_tracing():
                return original(*arguments, **options)
            depth[0] += 1
            try:
                if before is not None:
                    session.guard(topic, functools.partial(before, *arguments, **options))
                return original(*arguments, **options)
            except Exception as error:
                if failed is not None:
                    session.guard(topic, functools.partial(failed, error, *arguments, **options))
                raise
            finally:
                depth[0] -= 1

        return wrapper

    for owner in owners:
        session.patch(owner, name, wrap, topic)


def classes_with(namespace: Any, base: type, method: str) -> Iterator[type]:
    """The classes of a module that are or derive from ``base`` and define ``method`` themselves."""
    for value in list(vars(namespace).values()):
        if isinstance(value, type) and issubclass(value, base) and method in vars(value):
            yield value


def scaler_classes(torch: Any) -> list[type]:
    """The gradient scalers of this torch: one in torch.amp since 2.3, before it one in torch.cuda.amp."""
    found = [getattr(getattr(torch, "amp", None), "GradScaler", None)]
    if found == [None]:
        cuda = getattr(torch, "cuda", None)
        found = [getattr(getattr(cuda, "amp", None), "GradScaler", None)]
    return [one for one in found if isinstance(one, type)]
