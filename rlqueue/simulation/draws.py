"""Random numbers as functions of (seed, cause, group, rollout, try): no generator state, so no order to depend on.

Two scenarios with one seed meet the same numbers wherever they ask for the same thing (common random numbers).
"""

import math

import numpy as np
from numba import njit

CAUSES = (
    "group_length", "rollout_length", "tool_calls", "tool_time", "sandbox_start", "sandbox_failure", "sandbox_death",
    "death_turn", "solve_rate", "solve", "filtered", "surplus", "turn", "choice",
)  # fmt: skip
(
    GROUP_LENGTH, ROLLOUT_LENGTH, TOOL_CALLS, TOOL_TIME, SANDBOX_START, SANDBOX_FAILURE, SANDBOX_DEATH,
    DEATH_TURN, SOLVE_RATE, SOLVE, FILTERED, SURPLUS, TURN, CHOICE,
) = range(len(CAUSES))  # fmt: skip


def keys(seed: int, tenant: int = 0) -> np.ndarray:
    """One 64-bit key per cause, spawned from the seed; tenants after the first have keys of their own from the same seed."""
    spawned = np.random.SeedSequence(seed, spawn_key=(tenant,) if tenant else ()).spawn(len(CAUSES))
    return np.array([each.generate_state(1, np.uint64)[0] for each in spawned], np.uint64)


@njit(inline="always")
def _mixed(x):
    """The finalizer of splitmix64: every bit of the input moves every bit of the output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(error_model="numpy")
def uniform(key, group, rollout, turn):
    """A number in (0, 1), never its ends."""
    x = _mixed(key + np.uint64(group) * np.uint64(0x9E3779B97F4A7C15))
    x = _mixed(x + np.uint64(rollout) * np.uint64(0xD1B54A32D192ED03) + np.uint64(turn) * np.uint64(0xABC98388FB8FAC03))
    return (float(x >> np.uint64(11)) + 0.5) * 1.1102230246251565e-16


def uniforms(key, count):
    """The numbers of groups 0, 1, ..., ``count - 1``, of rollout and turn 0."""
    groups = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = _mixed.py_func(_mixed.py_func(key + groups))
    return ((x >> np.uint64(11)).astype(float) + 0.5) * 1.1102230246251565e-16


@njit(error_model="numpy")
def normal_quantile(u):
    """Inverse of the standard normal distribution function, to about 1e-16.

    Source: Wichura (1988), Algorithm AS 241, PPND16.
    """
    q = u - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        top = (((((((2.5090809287301226727e3 * r + 3.3430575583588128105e4) * r + 6.7265770927008700853e4) * r
              + 4.5921953931549871457e4) * r + 1.3731693765509461125e4) * r + 1.9715909503065514427e3) * r
              + 1.3314166789178437745e2) * r + 3.3871328727963666080e0)  # fmt: skip
        low = (((((((5.2264952788528545610e3 * r + 2.8729085735721942674e4) * r + 3.9307895800092710610e4) * r
              + 2.1213794301586595867e4) * r + 5.3941960214247511077e3) * r + 6.8718700749205790830e2) * r
              + 4.2313330701600911252e1) * r + 1.0)  # fmt: skip
        return q * top / low
    r = math.sqrt(-math.log(u if q < 0.0 else 1.0 - u))
    if r <= 5.0:
        r -= 1.6
        top = (((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r + 2.41780725177450611770e-1) * r
              + 1.27045825245236838258e0) * r + 3.64784832476320460504e0) * r + 5.76949722146069140550e0) * r
              + 4.63033784615654529590e0) * r + 1.42343711074968357734e0)  # fmt: skip
        low = (((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r + 1.51986665636164571966e-2) * r
              + 1.48103976427480074590e-1) * r + 6.89767334985100004550e-1) * r + 1.67638483018380384940e0) * r
              + 2.05319162663775882187e0) * r + 1.0)  # fmt: skip
    else:
        r -= 5.0
        top = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 1.24266094738807843860e-3) * r
              + 2.65321895265761230930e-2) * r + 2.96560571828504891230e-1) * r + 1.78482653991729133580e0) * r
              + 5.46378491116411436990e0) * r + 6.65790464350110377720e0)  # fmt: skip
        low = (((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r + 1.84631831751005468180e-5) * r
              + 7.86869131145613259100e-4) * r + 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1) * r
              + 5.99832206555887937690e-1) * r + 1.0)  # fmt: skip
    return math.copysign(top / low, q)


@njit(error_model="numpy")
def normal(key, group, rollout, turn):
    """A standard normal number."""
    return normal_quantile(uniform(key, group, rollout, turn))
