"""Threads for the cores that fits may use."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock, RLock, get_ident
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# Locks of other libraries that a fit waits for, which no fork renews: module, name, and where the
# lock is. One that is not there any more is passed over.
FORKED_LOCKS = (
    ("numba.core.compiler_lock", "global_compiler_lock", "_lock"),
    ("scipy.sparse.linalg._eigen.arpack.arpack", "_ARPACK_LOCK", "_rlock"),
)


class _Pools:
    """The thread pools of native libraries, found once: to look for them reads all of them."""

    def __init__(self) -> None:
        self._found: tuple[int, ThreadpoolController] | None = None

    def __call__(self) -> ThreadpoolController:
        """Give the controller of those that are loaded; a new one comes with a new module."""
        found, n = self._found, len(sys.modules)
        if found is None or found[0] != n:
            found = self._found = n, ThreadpoolController()
        return found[1]


class _Cores:
    """Threads for the cores that fits may use.

    How many that is, is the user's say: the environment, ``threadpoolctl.threadpool_limits``, or
    joblib, whose workers get one each. Overlapping fits share the threads.
    """

    pool: ThreadPoolExecutor | None

    def __init__(self, forked_locks: Iterable[tuple[str, str, str]] = FORKED_LOCKS) -> None:
        self._forked_locks = forked_locks
        self._blas: Any = None
        self._limit: Any = None
        self._renew()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """Begin anew, as in a forked child: the threads and the fits that ran are not there."""
        self._lock, self._turn, self._users, self.count = Lock(), Lock(), 0, 1
        limit, self._limit, self._owner, self.pool = self._limit, None, 0, None
        if limit is not None:
            limit.restore_original_limits()
        for module, name, attribute in self._forked_locks:
            lock = getattr(sys.modules.get(module), name, None)
            if hasattr(lock, attribute):
                setattr(lock, attribute, RLock())

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Have threads for compiled loops."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                with self._turn:  # or BLAS would seem to have one thread
                    self._blas = pools().select(user_api="blas")
                    self.count = max([1, *(int(b["num_threads"]) for b in self._blas.info())])
                self.pool = ThreadPoolExecutor(self.count) if self.count > 1 else None
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users and self.pool is not None:
                    self.pool.shutdown(wait=False)
                    self.pool = None

    @contextmanager
    def without_blas(self) -> Iterator[None]:
        """Have threads for NumPy's functions, with BLAS held to one.

        BLAS's number of threads belongs to the whole process, and is set back by the thread that
        set it: overlapping fits take turns, or one would restore what another had set.
        """
        with self(), self._turn, self._blas.limit(limits=1) as self._limit:
            self._owner = get_ident()
            try:
                yield
            finally:
                self._owner, self._limit = 0, None

    def map(self, function: Callable[..., T], *items: Iterable[Any]) -> Iterator[T]:
        """As ``map``, on several cores inside ``with cores.without_blas():``, in order."""
        pool = self.pool if self._owner == get_ident() else None
        return map(function, *items) if pool is None else pool.map(function, *items)

    def share(self, function: Callable[[Any], None], items: Iterable[Any]) -> None:
        """Call a function with each item; the calling thread works too: one fewer to wake up."""
        left = iter(items)

        def work() -> None:
            for item in left:
                function(item)

        pool = self.pool
        pending = [pool.submit(work) for _ in range(self.count - 1)] if pool is not None else []
        work()
        for future in pending:
            future.result()


pools, cores = _Pools(), _Cores()
