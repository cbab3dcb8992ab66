"""Published series that move during training, beside what the closed form says of them.

Each table has one row per published point: series, step, published, predicted, unit, error, calibrated (whether the point was
used to fit), source. Errors of the calibrated rows are no test; ``blind_error`` looks at the others only.
"""

from rlqueue.published.rollout_times import (
    glm_alignment,
    glm_rollout_time,
    prime_as_concurrency_grew,
    prime_rollout_time,
)
from rlqueue.published.series import MISSES, blind_error
from rlqueue.published.solved_shares import dapo_all_solved, dapo_shares, glm_solved_groups

__all__ = [
    "MISSES", "blind_error", "dapo_all_solved", "dapo_shares", "glm_alignment", "glm_rollout_time", "glm_solved_groups",
    "prime_as_concurrency_grew", "prime_rollout_time",
]  # fmt: skip
