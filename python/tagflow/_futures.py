"""The results of runs that were started, and how asyncio waits for them."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import itertools
import threading
from typing import Any, Callable, Dict, Generator, List, Optional

from . import _native
from .errors import CancelledError, DeadlineExceededError


class _Watcher:
    """Calls what waits for runs, on a thread of its own, which starts with the
    first such call: the threads of the engine never run Python."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._futures: Dict[int, "Future"] = {}
        self._thread: Optional[threading.Thread] = None

    def watch(self, future: "Future") -> bool:
        """False if its run is over already."""
        with self._lock:
            if self._thread is None:
                _native.close_finished(False)
                self._thread = threading.Thread(
                    target=self._serve, name="tagflow futures", daemon=True)
                self._thread.start()
                atexit.register(self.stop)
            number = next(self._numbers)
            self._futures[number] = future
        if future._pending.watch(number):
            return True
        with self._lock:
            del self._futures[number]
        return False

    def stop(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            _native.close_finished(True)
            thread.join()

    def _serve(self) -> None:
        while (number := _native.finished()) is not None:
            with self._lock:
                future = self._futures.pop(number)
            future._call_back()


_watcher = _Watcher()


class Future(concurrent.futures.Future):
    """The result of `run_async`, when it is there.

    It is a `concurrent.futures.Future`, and can be awaited. If the task that
    awaits it is cancelled, so is the run.
    """

    # Without that of the base class, whose lock few need.
    def __init__(self, pending: _native.Pending,
                 unpack: Optional[Callable[[Any], Any]] = None) -> None:
        self._pending = pending
        self._unpack = unpack
        self._lock = threading.Lock()
        self._known_condition: Optional[threading.Condition] = None
        self._is_announced = False
        self._waiters: List[Any] = []
        self._callbacks: List[Callable[["Future"], Any]] = []
        self._is_watched = False
        self._is_taken = False
        self._result: Any = None
        self._error: Optional[BaseException] = None

    def done(self) -> bool:
        """Whether the run is over."""
        return self._pending.done()

    def cancel(self) -> bool:
        """Asks the run to stop. False if it is over already."""
        if self._pending.done():
            return False
        self._pending.cancel()
        return True

    def cancelled(self) -> bool:
        """Whether the run is over since it was cancelled."""
        return self.done() and isinstance(self._take(), CancelledError)

    def running(self) -> bool:
        return not self.done()

    def exception(self, timeout: Optional[float] = None
                  ) -> Optional[BaseException]:
        """Waits for the end; the error of the run, or None."""
        if not self._pending.wait(timeout):
            raise DeadlineExceededError(
                f"[future] the run is not over after {timeout} s; it goes on")
        return self._take()

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits for the result, at most `timeout` seconds: after that the run
        goes on, and TimeoutError is raised. Raises the error of the run."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._result

    def add_done_callback(self, callback: Callable[["Future"], Any]) -> None:
        """Calls callback(future) when the run is over: at once if it is, else
        on a thread that all such calls share. What it raises is reported, as
        an exception of a thread."""
        with self._lock:
            if not self._pending.done():
                self._callbacks.append(callback)
                if self._is_watched or _watcher.watch(self):
                    self._is_watched = True
                    return
                self._callbacks.remove(callback)
        self._tell(callback)

    def __await__(self) -> Generator[Any, None, Any]:
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def set_over() -> None:
            if not over.done():
                over.set_result(None)

        def tell(_: "Future") -> None:
            try:
                loop.call_soon_threadsafe(set_over)
            except RuntimeError:  # the loop is closed: nobody waits any more
                pass

        self.add_done_callback(tell)
        try:
            yield from over
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.result()

    def __repr__(self) -> str:
        return f"<tagflow.Future: {'done' if self.done() else 'running'}>"

    def _take(self) -> Optional[BaseException]:
        with self._lock:
            if not self._is_taken:
                # Again, if Ctrl-C comes in between.
                try:
                    result = self._pending.result()
                    self._result = (self._unpack(result) if self._unpack
                                    else result)
                except Exception as error:  # kept for each who asks
                    self._error = error
                self._is_taken = True
            return self._error

    def _call_back(self) -> None:
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._tell(callback)

    def _tell(self, callback: Callable[["Future"], Any]) -> None:
        try:
            callback(self)
        except Exception as error:
            threading.excepthook(threading.ExceptHookArgs(
                (type(error), error, error.__traceback__,
                 threading.current_thread())))

    # --- What wait() and as_completed() of concurrent.futures use ------------
    # They hold the condition while they read the state and add a waiter, so
    # from its making on the state changes only with the condition held.

    @property
    def _condition(self) -> threading.Condition:
        with self._lock:
            if self._known_condition is not None:
                return self._known_condition
            made = self._known_condition = threading.Condition()
        self.add_done_callback(Future._announce)
        return made

    @property
    def _state(self) -> str:
        if not (self._is_announced if self._known_condition is not None
                else self.done()):
            return "RUNNING"
        return "CANCELLED_AND_NOTIFIED" if self.cancelled() else "FINISHED"

    def _announce(self) -> None:
        cancelled, error = self.cancelled(), self.exception()
        with self._condition:
            self._is_announced = True
            for waiter in self._waiters:
                if cancelled:
                    waiter.add_cancelled(self)
                elif error is not None:
                    waiter.add_exception(self)
                else:
                    waiter.add_result(self)
