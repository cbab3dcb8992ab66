"""Small ordered stores for the compiled loop: heaps, lists of slots, trees of the least.

A replica's heap has its requests by token clock, then in order of joining; one more has the timers by time, kind and setting.
"""

from numba import njit

from rlqueue.simulation.memory import ENTRY, NODE, list_at, record_at, slot_at


@njit
def _comes_before(a, at, order):
    return a.at < at or (a.at == at and a.order < order)


@njit
def _write(entry, at, order, slot):
    entry.at, entry.order, entry.slot = at, order, slot


@njit
def heap_push(heap, place, at, order, slot):
    """Add an entry to the heap that begins at the address ``heap``, at or above ``place``: its size, for a new entry."""
    while place > 0:
        parent = (place - 1) >> 1
        above = record_at(heap, parent, ENTRY)
        if _comes_before(above, at, order):
            break
        _write(record_at(heap, place, ENTRY), above.at, above.order, above.slot)
        place = parent
    _write(record_at(heap, place, ENTRY), at, order, slot)


@njit
def heap_remove(heap, size, place):
    """Take out the entry at ``place``; the heap then has ``size - 1``."""
    last = size - 1
    if place == last:
        return
    moved = record_at(heap, last, ENTRY)
    at, order, slot = moved.at, moved.order, moved.slot
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        below = record_at(heap, child, ENTRY)
        if child + 1 < last:
            right = record_at(heap, child + 1, ENTRY)
            if _comes_before(right, below.at, below.order):
                child += 1
                below = right
        if not _comes_before(below, at, order):
            break
        _write(record_at(heap, place, ENTRY), below.at, below.order, below.slot)
        place = child
    heap_push(heap, place, at, order, slot)


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
def sum_set(tree, room, leaf, value):
    """Set the value of a leaf in a tree of sums, which lies in memory as a tree of the least does."""
    node = (room >> 1) + leaf
    record_at(tree, node, NODE).value = value
    node >>= 1
    while node > 0:
        total = record_at(tree, 2 * node, NODE).value + record_at(tree, 2 * node + 1, NODE).value
        record_at(tree, node, NODE).value = total
        node >>= 1


@njit
def sum_find(tree, room, share):
    """The leaf at which the sum of the values up to it first exceeds that share of the whole; never one of value 0."""
    left, node = share * record_at(tree, 1, NODE).value, 1
    while node < room >> 1:
        node *= 2
        below = record_at(tree, node, NODE).value
        if left >= below and record_at(tree, node + 1, NODE).value > 0.0:
            left -= below
            node += 1
    return node - (room >> 1)


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
