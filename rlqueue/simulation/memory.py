"""The arrays of a run as seen by the compiled loop: addresses of records, since passing thirty arrays along costs more than
the events themselves (numba counts references to each array at each call).

``World`` owns the arrays; its record ``addresses`` holds where each begins and how many rows it has. ``record_at`` reads a row
by its address: there is no bounds check, and nothing may use a record of addresses after its arrays have gone.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

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
    """All arrays of one run, and where they are."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.addresses = np.zeros(1, ADDRESSES)
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
        for name, count in state.GROWING.items():
            old = self.arrays[name]
            if 2 * int(self.clock[count]) >= old.size > 0:
                self.arrays[name] = np.zeros(
                    2 * old.size, old.dtype
                )  # joined arrays would have anything between fields
                self.arrays[name][: old.size] = old
        self._point()

    @property
    def clock(self) -> np.void:
        """The state of the whole run."""
        return self.arrays["clock"][0]


ADDRESSES = np.dtype([(name, "i8") for each in state.ARRAYS for name in (each, f"{each}_room")], align=True)

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
