"""A scenario fitted to what was measured: from three seconds, a decode curve, a wait ratio, or any other measures.

Knobs are fitted in their logarithm by ``scipy.optimize.least_squares``. What the measurements say nothing about keeps its start
value and an infinite uncertainty.
"""

from collections.abc import Mapping, Sequence

from rlqueue.calibration.found import Calibration, FittedKnob, Measured, Measurements, Prior, Residual
from rlqueue.calibration.problem import Problem, by_simulation
from rlqueue.calibration.targets import targets_of
from rlqueue.measures import MEASURES, SOLVERS, knob_fields
from rlqueue.refusal import require_known
from rlqueue.scenario import Scenario

__all__ = [
    "MEASURED_TO_KNOB",
    "Calibration",
    "FittedKnob",
    "Measured",
    "Prior",
    "Residual",
    "calibrate",
    "calibrate_rows",
]

MEASURED_TO_KNOB: dict[str, tuple[str, ...]] = {
    "generate_s": ("decode_efficiency",),
    "rollout_s": ("decode_efficiency",),
    "train_s": ("mfu",),
    "update_s": ("mfu",),
    "consumption_per_s": ("mfu",),
    "sync_s": ("weight_sync_s",),
    "decode_curve": ("decode_efficiency", "decode_overhead_s"),
    "trainer_wait_ratio": ("concurrency",),
    "production_per_s": ("concurrency",),
}
"""What is fitted when nobody says: the knob that sets each measure most directly."""


def calibrate(
    scenario: Scenario,
    measurements: Measurements,
    *,
    fit: Sequence[str] | None = None,
    solver: str = "closed form",
    priors: Mapping[str, Prior] | None = None,
) -> Calibration:
    """Fit knobs of a scenario to what was measured of it.

    Args:
        scenario: the run; its knobs are where the fit begins.
        measurements: by name of ``measures.MEASURES``, numbers or ``Measured``; ``decode_curve`` is text like
            ``"16: 910, 100: 2400"`` (requests of a replica: tokens/s of it); one point fixes neither of its knobs.
        fit: knobs to fit; by default those of ``MEASURED_TO_KNOB``.
        solver: "closed form" or "simulated". priors: what is known of fitted knobs beforehand.

    Returns:
        Calibration: the fitted scenario, each knob's 68 % range, and what is left of each measurement. The range comes from
        the Jacobian, ``(J'J)^-1``, in units of the measurements' spreads; where those are exceeded it is widened to
        match, never narrowed. It ends at the knob's limits. ``missed`` names what the fitted knobs cannot meet.

    Raises:
        ValueError: an unknown name, a value outside its limits, or nothing to fit.
    """
    return calibrate_rows([(scenario, measurements)], fit=fit, solver=solver, priors=priors)


def calibrate_rows(
    rows: Sequence[tuple[Scenario, Measurements]],
    *,
    fit: Sequence[str] | None = None,
    solver: str = "closed form",
    priors: Mapping[str, Prior] | None = None,
) -> Calibration:
    """The same for several scenarios that share the fitted knobs, such as one cluster at two sizes; see ``calibrate``."""
    require_known("solver", solver, SOLVERS)
    targets = [targets_of(number, scenario, wanted) for number, (scenario, wanted) in enumerate(rows)]
    if not any(targets):
        raise ValueError(f"measurements={{}} must hold at least one of {', '.join([*MEASURES][:6])}, ...")
    names = list(dict.fromkeys(fit if fit is not None else _default_knobs(rows)))
    if not names:
        raise ValueError("fit=[] must name a knob: none belongs to these measurements by itself")
    known = knob_fields()
    for name in [*names, *(priors or {})]:
        require_known("fit", name, known)
    problem = Problem(
        scenarios=[scenario for scenario, _ in rows], targets=targets, names=names, solver=solver, priors=priors or {}
    )
    return problem.solved() if solver == "closed form" else by_simulation(problem)


def _default_knobs(rows: Sequence[tuple[Scenario, Measurements]]) -> list[str]:
    return [knob for _, wanted in rows for name in wanted for knob in MEASURED_TO_KNOB.get(name, ())]
