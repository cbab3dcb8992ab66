"""The arrays of a run as seen by the compiled loop: addresses of records, since passing thirty arrays along costs more than
the events themselves (numba counts references to each array at each call).

``World`` owns the arrays; its record ``addresses`` holds where each begins and how many rows it has. ``record_at`` reads a row
by its address: there is no bounds check, and nothing may use a record of addresses after its arrays have gone. Tenants have
a world each, in which the arrays that they share are the same ones; their records of addresses lie in one table.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

from rlqueue.simulation import state


@intrinsic
def record_at(_typing_context, address, index, dtype):  # noqa: ARG001
    """The row ``index`` of an array of ``dtype`` that begins at ``address``, to read and to write."""
    record = dtype.dtype

    def generate(context, builder, _signature, arguments):
        begin, row, _ = arguments
        place = builder.add(begin, builder.mul(row, ir.Constant(begin.type, record.size)))
        return builder.inttoptr(place, context.get_value_type(record))

    return record(types.int64, types.int64, dtype), generate


class World:
    """All arrays of one tenant's run, and where they are; ``table`` has the addresses of all tenants."""

    def __init__(self, arrays: dict[str, np.ndarray], table: np.ndarray | None = None, tenant: int = 0) -> None:
        self.arrays = arrays
        self.table = np.zeros(1, ALONE) if table is None else table
        self.addresses = self.table[tenant : tenant + 1]
        if self.table.dtype == ADDRESSES:
            self.addresses["table"], self.addresses["tenants"] = self.table.ctypes.data, self.table.size
        self._point()

    def _point(self) -> None:
        for name, array in self.arrays.items():
            self.addresses[name] = array.ctypes.data
            self.addresses[f"{name}_room"] = array.size

    def put(self, name: str, array: np.ndarray) -> None:
        """Another array in the place of one of them."""
        self.arrays[name] = array
        self._point()

    def make_room(self) -> None:
        """Twice the room for those arrays that grow with the run and are more than half full."""
        for name, (count, rows) in state.GROWING.items():
            old = self.arrays[name]
            if 2 * rows * int(self.clock[count]) >= old.size > 0:
                self.arrays[name] = np.zeros(2 * old.size, old.dtype)  # joined ones would have anything between fields
                self.arrays[name][: old.size] = old
        self._point()

    @property
    def clock(self) -> np.void:
        """The state of the tenant's run."""
        return self.arrays["clock"][0]

    @property
    def host(self) -> np.void:
        """The state of what tenants share."""
        return self.arrays["host"][0]


ALONE = np.dtype([(name, "i8") for each in state.ARRAYS for name in (each, f"{each}_room")], align=True)
"""Addresses of a run without other tenants: a type of its own, for which the loop is compiled without looking for any."""

ADDRESSES = np.dtype([("table", "i8"), ("tenants", "i8"), *ALONE.descr], align=True)
"""With those of the other tenants. It begins otherwise: numba takes a record that only goes on longer for the same type."""

HOST = state.HOST

CLOCK, PARAMS, SLOT, REPLICA, GROUP, COHORT = (
    state.CLOCK, state.PARAMS, state.SLOT, state.REPLICA, state.GROUP, state.COHORT,
)  # fmt: skip
STEP, SPAN, ROLLOUT, SERIES, RETRY, NUMBER = (
    state.STEP,
    state.SPAN,
    state.ROLLOUT,
    state.SERIES,
    state.RETRY,
    state.NUMBER,
)
ENTRY, NODE, LIST, ITERATION, KEY, RATE = (
    state.ENTRY, state.NODE, state.LIST, state.ITERATION, state.KEY, state.RATE,
)  # fmt: skip
COURSE, PROMPT = state.COURSE, state.PROMPT
ENTRY_BYTES = ENTRY.itemsize


@njit
def clock(w):
    return record_at(w.clock, 0, CLOCK)


@njit
def host(w):
    return record_at(w.host, 0, HOST)


def tenants_of(w):
    """How many there are; called from compiled code only."""
    raise NotImplementedError


def world_at(w, tenant):
    """The world of a tenant; called from compiled code only."""
    raise NotImplementedError


@overload(tenants_of, inline="always")
def _tenants_of(w):
    return (lambda w: w.tenants) if "tenants" in w.fields else (lambda w: 1)  # noqa: ARG005


@overload(world_at, inline="always")
def _world_at(w, tenant):  # noqa: ARG001
    if "tenants" in w.fields:
        return lambda w, tenant: record_at(w.table, tenant, ADDRESSES)
    return lambda w, tenant: w  # noqa: ARG005


@njit
def world_of(w, i):
    """The world of the tenant whose rollout is in slot i."""
    return world_at(w, slot_at(w, i).tenant)


@njit
def params(w):
    return record_at(w.params, 0, PARAMS)


@njit
def slot_at(w, i):
    return record_at(w.slots, i, SLOT)


@njit
def replica_at(w, i):
    return record_at(w.replicas, i, REPLICA)


@njit
def group_at(w, i):
    return record_at(w.groups, i, GROUP)


@njit
def cohort_at(w, i):
    return record_at(w.cohorts, i, COHORT)


@njit
def step_at(w, i):
    return record_at(w.steps, i, STEP)


@njit
def span_at(w, i):
    return record_at(w.spans, i, SPAN)


@njit
def logged_at(w, i):
    return record_at(w.rollouts, i, ROLLOUT)


@njit
def point_at(w, i):
    return record_at(w.series, i, SERIES)


@njit
def waiting_retry_at(w, i):
    return record_at(w.retry, i, RETRY)


@njit
def queue_at(w, i):
    return record_at(w.queue, i, NUMBER)


@njit
def free_at(w, i):
    return record_at(w.free, i, NUMBER)


@njit
def heap_of(w, ri):
    """The address of a replica's heap of running requests."""
    return w.heap + ri * params(w).heap_room * ENTRY_BYTES


@njit
def request_at(w, ri, place):
    return record_at(heap_of(w, ri), place, ENTRY)


@njit
def timer_at(w, i):
    return record_at(w.timers, i, ENTRY)


@njit
def ends_at(w, i):
    return record_at(w.ends, i, NODE)


@njit
def loads_at(w, i):
    return record_at(w.loads, i, NODE)


@njit
def list_at(w, i):
    return record_at(w.lists, i, LIST)


@njit
def iteration_at(w, i):
    return record_at(w.iterations, i, ITERATION)


@njit
def key_at(w, i):
    return record_at(w.keys, i, KEY)


@njit
def changed_at(w, i):
    return record_at(w.changed, i, NUMBER)


@njit
def given_at(w, i):
    return record_at(w.given, i, NUMBER)


@njit
def rate_at(w, i):
    return record_at(w.solve_rates, i, RATE)


@njit
def course_at(w, i):
    return record_at(w.course, i, COURSE)


@njit
def prompt_at(w, i):
    return record_at(w.prompts, i, PROMPT)


@njit
def taught_at(w, i):
    return record_at(w.taught, i, NUMBER)


@njit
def bin_at(w, i):
    return record_at(w.bins, i, NUMBER)


@njit
def key(w, cause):
    return key_at(w, cause).key
