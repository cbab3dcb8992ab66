"""Small runs whose prompts have solve rates and come again, and random ones, for the tests of the closed loop."""

import math

from hypothesis import strategies as st
from test_simulation_laws import small

from rlqueue.choices import GATES, SAMPLERS, SCHEDULES, STALENESS_FAMILIES

Z = 4.0  # standard errors that a mean may be off: one in 16,000 by chance


def schooled(**knobs):
    """A small run whose prompts have solve rates and come again."""
    values = {"filtered_fraction": 0.0, "solve_rate_mean": 0.4, "solve_rate_concentration": 2.0, "pool_prompts": 40}
    return small(**(values | knobs))


some_schooled = st.builds(
    schooled,
    schedule=st.sampled_from(sorted(SCHEDULES)),
    staleness_family=st.sampled_from(sorted(STALENESS_FAMILIES)),
    max_staleness=st.sampled_from([0.0, 1.0, 3.0]),
    oversampling_factor=st.sampled_from([1.0, 2.0]),
    concurrency=st.integers(1, 80),
    solve_rate_mean=st.floats(0.2, 0.8),
    solve_rate_concentration=st.sampled_from([0.5, 2.0, 10.0, math.inf]),
    pool_prompts=st.sampled_from([4, 5, 17, 100]),
    gate=st.sampled_from(sorted(GATES)),
    sampler=st.sampled_from(sorted(SAMPLERS)),
    band_low=st.floats(0.0, 0.4),
    band_high=st.floats(0.5, 1.0),
    retire_above=st.floats(0.3, 1.0),
    learning_logit_per_step=st.sampled_from([0.0, 0.1, 1.0]),
    learning_transfer=st.sampled_from([0.0, 0.5, 1.0]),
    learning_staleness_half=st.sampled_from([0.5, 2.0, math.inf]),
    drift_law=st.just("linear"),
    drift_steps=st.integers(1, 6),
    drift_length_factor=st.floats(0.5, 1.5),
)  # fmt: skip
