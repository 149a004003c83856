"""Sessions: a graph, its state, and runs of parts of it."""

from __future__ import annotations

import threading
from typing import (Any, Dict, Iterable, List, Mapping, NamedTuple, Optional,
                    Sequence, Tuple, Union)

from . import _native
from ._futures import Future
from .graph import Graph

__all__ = ["Session", "devices"]

Fetches = Any  # a name, or lists, tuples and dicts of names, nested


def _name(tensor: Any) -> str:
    """The name of a tensor: a str, or an object of TensorFlow with a name."""
    if isinstance(tensor, str):
        return tensor
    # A variable of TensorFlow stands for the op that reads it.
    element = getattr(tensor, "_as_graph_element", None)
    if element is not None:
        tensor = element()
    name = getattr(tensor, "name", None)
    if isinstance(name, str):
        return name
    raise TypeError(f"a tensor is named by a str such as 'x' or 'x:0', not "
                    f"by {type(tensor).__name__}")


def _is_sparse(value: Any) -> bool:
    """Whether it is a SparseTensor, or the value of one, of TensorFlow."""
    return all(hasattr(value, part) for part in _SPARSE)


_SPARSE = ("indices", "values", "dense_shape")


class SparseValue(NamedTuple):
    """What fetching a SparseTensor of TensorFlow gives."""
    indices: Any
    values: Any
    dense_shape: Any


def _parts(feeds: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The feeds, with the three tensors of each SparseTensor."""
    if all(type(feed) is str for feed in feeds):
        return feeds
    found = {}
    for feed, value in feeds.items():
        if _is_sparse(feed):
            given = ([getattr(value, part) for part in _SPARSE]
                     if _is_sparse(value) else list(value))
            found.update(zip((_name(getattr(feed, part)) for part in _SPARSE),
                             given))
        else:
            found[feed] = value
    return found


def _like(structure: Any, items: Sequence[Any]) -> Any:
    """The items as a list, a named tuple or a tuple, as the structure is."""
    if isinstance(structure, list):
        return list(items)
    if hasattr(structure, "_fields"):
        return type(structure)(*items)
    return tuple(items)


def _flatten(fetches: Fetches, names: List[str]) -> Any:
    """Adds the names to the list. Returns the structure with their indices,
    or an int for one name."""
    if _is_sparse(fetches):
        return SparseValue(*(_flatten(getattr(fetches, part), names)
                             for part in _SPARSE))
    if isinstance(fetches, Mapping):
        return {key: _flatten(item, names) for key, item in fetches.items()}
    if isinstance(fetches, (list, tuple)):
        return _like(fetches, [_flatten(item, names) for item in fetches])
    names.append(_name(fetches))
    return len(names) - 1


def _fill(structure: Any, values: Sequence[Any]) -> Any:
    if structure is None:  # an operation
        return None
    if isinstance(structure, int):
        return values[structure]
    if isinstance(structure, dict):
        return {key: _fill(item, values) for key, item in structure.items()}
    return _like(structure, [_fill(item, values) for item in structure])


def _key(fetches: Fetches) -> Any:
    """What identifies a structure of names."""
    if isinstance(fetches, str):
        return fetches
    if isinstance(fetches, Mapping):
        return (dict, tuple((k, _key(v)) for k, v in fetches.items()))
    if isinstance(fetches, (list, tuple)):
        return (type(fetches), *map(_key, fetches))
    if _is_sparse(fetches):
        return (SparseValue, *(_key(getattr(fetches, p)) for p in _SPARSE))
    return _name(fetches)


def _without(structure: Any, indices: Mapping[int, Optional[int]]) -> Any:
    """The structure with other indices."""
    if structure is None:
        return None
    if isinstance(structure, int):
        return indices[structure]
    if isinstance(structure, dict):
        return {k: _without(v, indices) for k, v in structure.items()}
    return _like(structure, [_without(item, indices) for item in structure])


class Session:
    """A graph with its variables and queues; runs parts of it.

    Many threads may run one session. It ends with its last reference, with
    close(), or at the end of a `with` block: then its runs are cancelled.

    Args:
        graph: a Graph, or what Graph.from_graphdef() takes; None: empty.
        target: "tagflow://host:port" of a `tagflow master`; None: this process.
        devices: the devices of this process, such as "cpu:2".
        workers: threads; 0: one per core, which the sessions of the process
            share.
        seed: of random ops that have none of their own; None: drawn.
        timeout: seconds that a run may take if it has no time-out of its own.
        window: overrides `parallel_iterations` of all loops if more than 0.
        soft_placement: a node that cannot run on its device runs on a CPU.
        secret_file: with a target, what the processes of the cluster share.
        tls: with a target, the paths (ca, certificate, key) of files in PEM.
        share: a Session of the same devices, whose variables, queues and tables
            this one has, too.
    """

    def __init__(self, graph: Any = None, *, target: Optional[str] = None,
                 devices: str = "", workers: int = 0,
                 seed: Optional[int] = None, timeout: Optional[float] = None,
                 window: int = 0, soft_placement: bool = False,
                 secret_file: str = "",
                 tls: Optional[Tuple[str, str, str]] = None,
                 share: Optional["Session"] = None) -> None:
        where = _native.Target()
        where.address = target or ""
        where.secret_file = secret_file
        if tls is not None:
            where.tls_ca, where.tls_cert, where.tls_key = tls
        self._native: _native.Session = _native.Session.create(
            devices, workers, seed, timeout, window, soft_placement, where,
            None if share is None else share._native)
        self._target = target
        self._model: Optional[Graph] = None
        self._lock = threading.Lock()
        self._callables: Dict[Any, Tuple[_native.Callable, Any]] = {}
        if graph is not None:
            self.extend(graph)

    def extend(self, graph: Any) -> None:
        """Adds the nodes and functions of a Graph, or of what
        Graph.from_graphdef() takes; names must be new."""
        if not isinstance(graph, Graph):
            graph = Graph.from_graphdef(graph)
        self._native.extend(graph)
        if graph._path and self._model is None:
            self._model = graph

    def run(self, fetches: Fetches, feeds: Optional[Mapping[Any, Any]] = None,
            *, targets: Union[str, Sequence[str]] = (),
            timeout: Optional[float] = None) -> Any:
        """Runs what the fetches and targets need.

        Args:
            fetches: a name, "node" or "node:port", or lists, tuples and dicts
                of names, nested in any way: the results have this structure. A
                node without outputs is run, and gives None.
            feeds: values by the names of the tensors that they replace.
            targets: nodes that run, though nothing of them is returned.
            timeout: seconds; DeadlineExceededError after that.

        Ctrl-C cancels the run and raises KeyboardInterrupt.
        """
        feeds = _parts(feeds or {})
        call, structure = self._prepare(fetches, feeds, targets, timeout)
        values = call(*feeds.values())
        return _fill(structure, values)

    def run_async(self, fetches: Fetches,
                  feeds: Optional[Mapping[Any, Any]] = None, *,
                  targets: Union[str, Sequence[str]] = (),
                  timeout: Optional[float] = None) -> Future:
        """As run(), but returns at once: a Future, which can be awaited."""
        feeds = _parts(feeds or {})
        call, structure = self._prepare(fetches, feeds, targets, timeout)
        return Future(call.run_async(*feeds.values()),
                      lambda values: _fill(structure, values))

    def make_callable(self, fetches: Fetches, feeds: Iterable[Any] = (), *,
                      targets: Union[str, Sequence[str]] = (),
                      names: Optional[Sequence[str]] = None,
                      timeout: Optional[float] = None) -> _native.Callable:
        """Prepares a signature, to be called often: call it with the values of
        the feeds, in their order or by `names` (those of the tensors, if there
        are none). `fetches` is a name, or a list, a tuple or a dict of names.
        """
        feeds = [_name(feed) for feed in feeds]
        keys: List[str] = []
        if isinstance(fetches, Mapping):
            form = "dict"
            keys = [str(key) for key in fetches]
            fetches = list(fetches.values())
        elif isinstance(fetches, (list, tuple)):
            form = "list" if isinstance(fetches, list) else "tuple"
        else:
            form, fetches = "single", [fetches]
        return self._native.make_callable(
            feeds, [_name(fetch) for fetch in fetches], self._names(targets),
            list(names or ()), form, keys, timeout)

    def variables(self) -> Dict[str, Any]:
        """The values of all variables that have one, by their names, as they
        are at one moment between runs."""
        return _native.variables(self._native)

    def variable_names(self) -> List[str]:
        """The names of all variables of the graph, set or not."""
        return _native.variable_names(self._native)

    def assign(self, values: Mapping[str, Any]) -> None:
        """Assigns variables by their names, all in one step."""
        _native.assign(self._native, dict(values))

    def reset(self, *containers: str) -> None:
        """Removes the variables, queues and tables of these containers; by
        default of the unnamed one."""
        self._native.reset(list(containers) or [""])

    def devices(self) -> List[str]:
        """The full names of its devices."""
        return self._native.devices()

    def counters(self) -> Dict[str, int]:
        """Numbers of now: runs that are active, waiting and queued, compiled
        signatures, bytes of devices."""
        return self._native.counters()

    def stalled(self) -> Optional[str]:
        """Why no run of the session can go on, if that is so."""
        return self._native.stalled()

    def close(self, deadline: Optional[float] = None) -> None:
        """Cancels its runs and waits for their end, at most `deadline` seconds.
        Closing it again does nothing."""
        with self._lock:
            self._callables.clear()
        self._native.close(deadline)

    @property
    def closed(self) -> bool:
        return self._native.is_closed

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<tagflow.Session: closed>"
        names = [name.rsplit("/device:", 1)[-1] for name in self.devices()]
        where = f" at {self._target}" if self._target else ""
        return f"<tagflow.Session{where}: {', '.join(names)}>"

    @staticmethod
    def _names(targets: Union[str, Sequence[str]]) -> List[str]:
        if isinstance(targets, (list, tuple)):
            return [_name(target) for target in targets]
        return [_name(targets)]

    def _prepare(self, fetches: Fetches, feeds: Mapping[Any, Any],
                 targets: Union[str, Sequence[str]],
                 timeout: Optional[float]) -> Tuple[_native.Callable, Any]:
        key = (_key(fetches), tuple(map(_key, feeds)), _key(targets), timeout)
        found = self._callables.get(key)
        if found is None:
            names: List[str] = []
            structure = _flatten(fetches, names)
            wanted = self._names(targets)
            operations = {name for name in names
                          if self._native.is_operation(name)}
            if operations:
                wanted += sorted(operations)
                kept = [i for i, n in enumerate(names) if n not in operations]
                places = {i: place for place, i in enumerate(kept)}
                structure = _without(structure, {
                    i: places.get(i) for i in range(len(names))})
                names = [names[i] for i in kept]
            call = self._native.make_callable(
                [_name(feed) for feed in feeds], names, wanted,
                [], "tuple", [], timeout)
            found = (call, structure)
            with self._lock:
                if len(self._callables) >= 256:
                    self._callables.clear()
                self._callables[key] = found
        return found


def devices(spec: str = "") -> List[str]:
    """The names of the devices that Session(devices=spec) has."""
    with Session(devices=spec) as session:
        return session.devices()
