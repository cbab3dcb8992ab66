"""One replica of section 4 of docs/semantics.md: a continuous batch, its KV memory, its prefill.

The batch is followed by its *depth*: the tokens that a request there from the start would have sampled. A request that
joins at depth d and has x tokens to go ends at depth d + x, whoever comes and goes meanwhile; only the time of that changes.
"""

import math
from collections import defaultdict, deque
from heapq import heappop, heappush

from rlqueue.decode_curve import token_s
from rlqueue.rates import rates

ALMOST_FULL = 0.99
ROOF = ("overhead_s", "shared_s", "experts_s", "miss", "kv_s_per_token", "compute_s", "accept_length")


class Replica:
    """``host`` gives the clock (``env.now``), timers (``after``) and takes back rollouts (``go``)."""

    def __init__(self, host, number, *, is_open):
        s, self.host, self.number, self.is_open = host.scenario, host, number, is_open
        self.roof = {name: float(rates(s)[name][0]) for name in ROOF}
        prefill_gpus = s.prefill_gpus_per_replica or s.gpus_per_replica
        peak = s.generator_gpu.peak_flops_per_s(s.generator_weights_precision)
        self.prefill_per_token = 2.0 * s.llm.active_params / (prefill_gpus * peak * s.prefill_mfu)
        self.apart = s.prefill_gpus_per_replica > 0
        self.room = s.kv_room_bytes / s.llm.kv_bytes_per_token(s.kv_precision)
        self.curve, self.curve_s = s.decode_curve, {}
        self.batch = {}  # rollout -> order of joining; a dict keeps that order
        self.joined = 0
        self.ends = []  # heap of (depth, order of joining, rollout), with entries of some that have left
        self.waiting = deque()
        self.bound = 0
        self.depth = 0.0
        self.version_depth = defaultdict(float)  # tenant -> the integral of its version over the depth
        self.context = 0.0
        self.pending_s = self.server_free_s = self.at = 0.0
        self.plan, self.due = 0, (math.inf, 0.0)  # of the next event of its own: the moment and the depth

    # How fast: with y tokens sampled by each from now, t = overhead + max(compute, reads + slope y), per accept_length tokens
    def _roofline(self):
        k, r = len(self.batch), self.roof
        reads = r["shared_s"] + r["experts_s"] * (1.0 - r["miss"] ** k) + r["kv_s_per_token"] * self.context
        return r["overhead_s"], k * r["compute_s"], reads, k * r["kv_s_per_token"]

    def _token_s(self):
        """By a measured curve, whatever the context."""
        k = len(self.batch)
        if k not in self.curve_s:
            self.curve_s[k] = float(token_s(self.curve, k))
        return self.curve_s[k]

    def seconds(self, tokens):
        """Decoding time in which each request of the batch samples so many tokens."""
        if self.curve:
            return tokens * self._token_s()
        overhead, compute, reads, slope = self._roofline()
        flat = min(tokens, max(0.0, (compute - reads) / slope))  # as long as compute is the slower of the two
        rest = tokens - flat
        reads += slope * flat
        return (flat * (overhead + compute) + rest * (overhead + reads) + slope * rest**2 / 2) / self.roof[
            "accept_length"
        ]

    def tokens(self, seconds):
        """The inverse of ``seconds``."""
        if self.curve:
            return seconds / self._token_s()
        overhead, compute, reads, slope = self._roofline()
        budget = seconds * self.roof["accept_length"]
        flat = min(budget / (overhead + max(compute, reads)), max(0.0, (compute - reads) / slope))
        budget = max(0.0, budget - flat * (overhead + compute))
        start = overhead + reads + slope * flat
        return flat + 2 * budget / (start + math.sqrt(start**2 + 2 * slope * budget))

    def advance(self):
        """Bring the state to now; at the planned moment to the planned depth exactly, whatever the rounding."""
        elapsed, self.at = self.host.env.now - self.at, self.host.env.now
        prefilling = min(self.pending_s, elapsed)
        due, depth = self.due
        if self.at < due:
            depth = self.depth
            if self.batch and elapsed > prefilling:
                depth = min(depth + self.tokens(elapsed - prefilling), self._next_end())
        elif depth > self.depth:
            prefilling = self.pending_s
        else:
            depth = self.depth
        self.pending_s -= prefilling
        for tenant in self.host.tenants:
            self.version_depth[tenant] += tenant.version * (depth - self.depth)
        self.context += len(self.batch) * (depth - self.depth)
        self.depth = depth

    def _next_end(self):
        while self.batch.get(self.ends[0][2]) != self.ends[0][1]:
            heappop(self.ends)
        return self.ends[0][0]

    def replan(self):
        """Set the timer to what comes next of itself: a segment's end, or the memory full."""
        self.plan, self.due = self.plan + 1, (math.inf, 0.0)
        if not self.batch:
            return
        plan, k, end = self.plan, len(self.batch), self._next_end()
        full = self.depth + (self.room - self.context) / k if k > 1 else math.inf
        target, act = (end, self._end_segment) if end <= full else (full, self._preempt)
        delay = self.pending_s + self.seconds(target - self.depth) if target > self.depth else 0.0
        self.due = self.host.env.now + delay, target
        self.host.after(delay, self.host.REPLICA + self.number, lambda: plan == self.plan and act())

    def _end_segment(self):
        self.advance()
        self._next_end()
        rollout = self.ends[0][2]
        self.leave(rollout)
        rollout.left = 0.0
        self.start_waiting()
        self.host.go(rollout)

    def _preempt(self):
        self.advance()
        last = next(reversed(self.batch))
        self.leave(last)
        last.to_prefill = last.context
        if self.apart:
            self.prefill(last)
        else:
            last.stage = "waiting"
            self.waiting.appendleft(last)
        self.replan()

    # Requests coming and going
    def request(self, rollout):
        """A bound rollout asks for ``left`` tokens, of which ``to_prefill`` context tokens come first."""
        if self.apart:
            self.prefill(rollout)
        else:
            self.arrive(rollout)

    def prefill(self, rollout):
        """Into the line of the prefill server; work once asked for is done, whatever becomes of the rollout."""
        self._stamp(rollout)
        rollout.stage, life, now = "prefill", rollout.life, self.host.env.now
        self.server_free_s = max(self.server_free_s, now) + rollout.to_prefill * self.prefill_per_token
        rollout.to_prefill = 0.0
        leaves = self.server_free_s - now
        self.host.after(
            leaves, self.host.PREFILL, lambda: rollout.life is life and rollout.tenant.prefilled(rollout, self)
        )

    def arrive(self, rollout):
        self.advance()
        if not self.waiting and self._fits(rollout):
            self._start(rollout)
            self.replan()
        else:
            rollout.stage = "waiting"
            self.waiting.append(rollout)

    def _fits(self, rollout):
        return not self.batch or self.context + rollout.context <= ALMOST_FULL * self.room

    def _stamp(self, rollout):
        if rollout.version is None:
            rollout.version = rollout.tenant.version
            rollout.solved = rollout.tenant.prompts.solves(rollout.group, rollout.number)

    def _start(self, rollout):
        self._stamp(rollout)
        rollout.stage = "batch"
        self.pending_s += rollout.to_prefill * self.prefill_per_token
        rollout.to_prefill = 0.0
        self.joined += 1
        self.batch[rollout] = self.joined
        self.context += rollout.context
        rollout.joined_at = self.depth, self.version_depth[rollout.tenant]
        heappush(self.ends, (self.depth + rollout.left, self.joined, rollout))

    def leave(self, rollout):
        """Out of the batch, with what was sampled so far; the replica is up to date, and is planned anew afterwards."""
        del self.batch[rollout]
        rollout.stage = ""
        depth, version_depth = rollout.joined_at
        rollout.sampled += self.depth - depth
        rollout.left -= self.depth - depth
        rollout.token_versions += self.version_depth[rollout.tenant] - version_depth
        self.context = self.context - rollout.context if self.batch else 0.0

    def start_waiting(self):
        while self.waiting and self._fits(self.waiting[0]):
            self._start(self.waiting.popleft())
        self.replan()

    def restart_batch(self, tenant):
        """Partial rollout at a tenant's new weights: each of its requests in the batch is prefilled again, its whole context."""
        self.advance()
        mine = [rollout for rollout in self.batch if rollout.tenant is tenant]
        if not self.apart:
            sampled = sum(self.depth - rollout.joined_at[0] for rollout in mine)
            self.pending_s += (sum(rollout.context for rollout in mine) + sampled) * self.prefill_per_token
            self.replan()
            return
        for rollout in mine:
            self.leave(rollout)
            rollout.to_prefill = rollout.context
            self.prefill(rollout)
        self.start_waiting()

    def evict(self):
        """A lent replica closes: all its requests, running then waiting, in order of joining."""
        self.advance()
        running, waiting = list(self.batch), list(self.waiting)
        for rollout in running:
            self.leave(rollout)
        self.waiting.clear()
        self.pending_s = 0.0
        self.replan()
        return running + waiting
