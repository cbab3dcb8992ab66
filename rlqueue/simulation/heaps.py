"""Small ordered stores for the compiled loop: a heap per replica, one of timers, lists of slots, trees of the least."""

from numba import njit

from rlqueue.simulation.memory import HEAP, NODE, list_at, record_at, slot_at, timer_at


@njit
def _ends_before(a, end, joined):
    """Whether request a ends before another one: by token clock, then in order of joining the batch."""
    return a.end < end or (a.end == end and a.joined < joined)


@njit
def _write(entry, end, joined, slot):
    entry.end, entry.joined, entry.slot = end, joined, slot


@njit
def _rise(base, place, end, joined, slot):
    """Put a request into the heap at or above ``place``."""
    while place > 0:
        parent = (place - 1) >> 1
        above = record_at(base, parent, HEAP)
        if _ends_before(above, end, joined):
            break
        _write(record_at(base, place, HEAP), above.end, above.joined, above.slot)
        place = parent
    _write(record_at(base, place, HEAP), end, joined, slot)


@njit
def heap_push(w, begin, size, end, joined, slot):
    """Add a request to the heap of ``size`` that begins at row ``begin``."""
    _rise(w.heap + begin * HEAP_BYTES, size, end, joined, slot)


HEAP_BYTES = HEAP.itemsize


@njit
def heap_remove(w, begin, size, place):
    """Take out the request at ``place``; the heap then has ``size - 1``."""
    last = size - 1
    if place == last:
        return
    base = w.heap + begin * HEAP_BYTES
    moved = record_at(base, last, HEAP)
    end, joined, slot = moved.end, moved.joined, moved.slot
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        below = record_at(base, child, HEAP)
        if child + 1 < last:
            right = record_at(base, child + 1, HEAP)
            if _ends_before(right, below.end, below.joined):
                child += 1
                below = right
        if not _ends_before(below, end, joined):
            break
        _write(record_at(base, place, HEAP), below.end, below.joined, below.slot)
        place = child
    _rise(base, place, end, joined, slot)


@njit
def _rings_before(a, at, order):
    return a.at < at or (a.at == at and a.order < order)


@njit
def _set(entry, at, order, slot):
    entry.at, entry.order, entry.slot = at, order, slot


@njit
def timer_push(w, place, at, order, slot):
    """Add a timer at or above ``place``: the number of timers there are, for a new one."""
    while place > 0:
        parent = (place - 1) >> 1
        above = timer_at(w, parent)
        if _rings_before(above, at, order):
            break
        _set(timer_at(w, place), above.at, above.order, above.slot)
        place = parent
    _set(timer_at(w, place), at, order, slot)


@njit
def timer_remove(w, size, place):
    """Take out the timer at ``place``; then there are ``size - 1``."""
    last = size - 1
    if place == last:
        return
    moved = timer_at(w, last)
    at, order, slot = moved.at, moved.order, moved.slot
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        below = timer_at(w, child)
        if child + 1 < last:
            right = timer_at(w, child + 1)
            if _rings_before(right, below.at, below.order):
                child += 1
                below = right
        if not _rings_before(below, at, order):
            break
        _set(timer_at(w, place), below.at, below.order, below.slot)
        place = child
    timer_push(w, place, at, order, slot)


@njit
def list_append(w, which, i):
    """Put slot i at the tail of a list."""
    q, line = slot_at(w, i), list_at(w, which)
    q.previous, q.next = line.tail, -1
    if line.tail < 0:
        line.head = i
    else:
        slot_at(w, line.tail).next = i
    line.tail = i


@njit
def list_prepend(w, which, i):
    """Put slot i at the head of a list."""
    q, line = slot_at(w, i), list_at(w, which)
    q.previous, q.next = -1, line.head
    if line.head < 0:
        line.tail = i
    else:
        slot_at(w, line.head).previous = i
    line.head = i


@njit
def list_remove(w, which, i):
    """Take slot i out of a list, wherever it stands."""
    q, line = slot_at(w, i), list_at(w, which)
    if q.previous < 0:
        line.head = q.next
    else:
        slot_at(w, q.previous).next = q.next
    if q.next < 0:
        line.tail = q.previous
    else:
        slot_at(w, q.next).previous = q.previous


@njit
def tree_set(tree, room, leaf, value):
    """Set the value of a leaf in a tree of the least; node 1 then has the least value and its leaf, the lowest among equals.

    ``tree`` is the address of ``room`` nodes, a power of two: node i has 2 i and 2 i + 1 below it, the last half are leaves.
    """
    node = (room >> 1) + leaf
    record_at(tree, node, NODE).value = value
    node >>= 1
    while node > 0:
        left, right = record_at(tree, 2 * node, NODE), record_at(tree, 2 * node + 1, NODE)
        least = right if right.value < left.value else left
        here = record_at(tree, node, NODE)
        here.value, here.leaf = least.value, least.leaf
        node >>= 1
