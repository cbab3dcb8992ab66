"""Cost of ownership: the report's table, to the cent it prints, and what must hold for any inputs."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlqueue import tco
from rlqueue.presets import reported
from rlqueue.tco import NodeTco, node_tco

H200 = node_tco("h200")


@pytest.mark.parametrize(
    ("field", "printed", "digits"),
    [
        ("capital_usd_per_server_month", 6738.18, 2),
        ("operating_usd_per_server_month", 2558.27, 2),
        ("capital_usd_per_gpu_hour", 1.1538, 4),
        ("operating_usd_per_gpu_hour", 0.4381, 4),
        ("total_usd_per_gpu_hour", 1.5919, 4),
        ("capital_share", 0.725, 3),
        ("capex_usd_per_gpu", 45157, 0),
        ("power_and_colocation_usd_per_gpu_month", 298.5, 1),
        ("operating_usd_per_gpu_month", 319.78, 2),
        ("electricity_usd_per_kw_month", 68.59, 2),
    ],
)
def test_the_h200_node_costs_what_the_report_prints(field, printed, digits):
    assert round(getattr(tco(), field), digits) == printed


def test_the_carried_over_results_of_the_report_are_reproduced():
    computed = dataclasses.asdict(tco())
    shared = [name for name in reported("h200-tco") if name in computed]
    assert len(shared) >= 8
    for name in shared:
        fact = reported("h200-tco")[name]
        digits = len(str(fact.value).partition(".")[2])
        assert round(computed[name], digits) == fact.value, name


def test_the_summary_s_299_per_gpu_month_leaves_out_hands_and_internet():
    month = tco()
    left_out = (H200.remote_hands_usd_per_month + H200.internet_usd_per_month) / H200.gpus_per_server
    assert month.operating_usd_per_gpu_month - month.power_and_colocation_usd_per_gpu_month == pytest.approx(left_out)


def test_the_annuity_pays_back_the_capital_at_the_interest_rate():
    debt = tco().capex_usd_per_server
    for _ in range(72):
        debt += debt * H200.wacc_per_year / 12 - tco().capital_usd_per_server_month
    assert debt == pytest.approx(0.0, abs=1e-6)  # rounding of 72 additions to 361,255


def test_without_interest_the_capital_is_spread_evenly():
    assert tco(dataclasses.replace(H200, wacc_per_year=0.0)).capital_usd_per_server_month == pytest.approx(361255 / 72)


CHANGEABLE = [field.name for field in dataclasses.fields(NodeTco) if field.name != "key"]


@pytest.mark.parametrize("name", CHANGEABLE)
def test_every_input_can_be_changed_and_moves_the_price(name):
    value = getattr(H200, name)
    changed = value + 1 if isinstance(value, int) else value * 1.1
    assert tco(dataclasses.replace(H200, **{name: changed})).total_usd_per_gpu_hour != tco().total_usd_per_gpu_hour


@given(st.floats(0.0, 1.0), st.floats(1.0, 3.0), st.floats(0.5, 20.0))
def test_a_server_month_converts_back_from_the_gpu_hour(usd_per_kwh, pue, years):
    node = dataclasses.replace(H200, usd_per_kwh=usd_per_kwh, pue_ratio=pue, useful_life_years=years)
    price = tco(node)
    month = price.total_usd_per_gpu_hour * node.gpus_per_server * node.hours_per_month
    assert month == pytest.approx(price.capital_usd_per_server_month + price.operating_usd_per_server_month)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("usd_per_kwh", -0.1),
        ("pue_ratio", 0.9),
        ("utilisation_ratio", 1.2),
        ("gpus_per_server", 0),
        ("wacc_per_year", "x"),
    ],
)
def test_an_impossible_input_is_refused_by_name_and_value(name, value):
    with pytest.raises(ValueError, match=f"{name}={value!r} must be"):
        dataclasses.replace(H200, **{name: value})
