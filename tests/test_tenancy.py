"""What sharing GPUs buys, against cases worked out by hand, the single run, and laws."""

import dataclasses

import numpy as np
import pytest
from simulation_toys import run_tenants, toy

from rlqueue import Scenario, simulate, solve
from rlqueue.cost import PARTS, cost, hosted_usd_per_mtok, usd_per_gpu_hour
from rlqueue.queueing import solve_grid
from rlqueue.simulation import lumped, unlumped
from rlqueue.tenancy import Pool, shared, simulate_pool, tenancy

SLIME = Scenario.from_data("slime-qwen3-235b")
ROUNDING = 1e-4  # the toy's memory and compute, which the hand leaves out, with up to 16 requests in a batch


# Alone a tenant generates for 1 s and trains for .2 s. Started evenly, six fill the trainer and none waits for another
@pytest.mark.parametrize("count", [1, 2, 3, 5, 6])
def test_tenants_in_step_fill_the_trainers_waiting_one_after_the_other(count):
    row = tenancy(toy(), [count], steps=10).iloc[0]
    assert row["tenant_step_s"] == pytest.approx(1.2, rel=ROUNDING)
    assert row["tenant_turn_ratio"] == pytest.approx(0.0, abs=ROUNDING)
    assert row["tenant_wait_ratio"] == pytest.approx(1 / 1.2, rel=ROUNDING)
    assert row["trainer_wait_ratio"] == pytest.approx(1 - count / 6, abs=0.01)  # a window of whole steps of one tenant
    assert row["trained_tokens_per_s"] == pytest.approx(count * 200 / 1.2, rel=ROUNDING)
    # Two GPUs for 1.2 s, which train 200 tokens of each tenant
    usd = 2 * usd_per_gpu_hour(toy()) / 3600 * 1.2 / (200 * count) * 1e6
    assert row["usd_per_mtok"] == pytest.approx(usd, rel=ROUNDING)
    assert row["slot_use_ratio"] == pytest.approx(1 / 1.2, rel=ROUNDING)


def test_beyond_those_that_fill_the_trainer_more_tenants_only_wait():
    row = tenancy(toy(), [8], steps=10).iloc[0]
    assert row["tenant_step_s"] == pytest.approx(8 * 0.2, rel=ROUNDING)
    assert row["trainer_wait_ratio"] == pytest.approx(0.0, abs=ROUNDING)
    assert row["trainer_busy_ratio"] == pytest.approx(1.0, rel=ROUNDING)
    # It generates for 1 s and trains for .2 of 1.6 s
    assert row["tenant_turn_ratio"] == pytest.approx(0.4 / 1.6, rel=ROUNDING)
    assert row["binding_constraint"] == "trainer compute"
    usd = 2 * usd_per_gpu_hour(toy()) / 3600 * 0.2 / 200 * 1e6
    assert row["usd_per_mtok"] == pytest.approx(usd, rel=ROUNDING)


def test_a_change_of_adapter_is_busy_time_of_the_trainer_and_no_trained_token():
    # Two tenants: .2 s of training and .4 s of changing each, while the other one generates for 1 s
    scenario = dataclasses.replace(toy(), adapter_switch_s=0.4)
    row = tenancy(scenario, [2], steps=60).iloc[0]
    assert row["tenant_step_s"] == pytest.approx(1.6, rel=ROUNDING)
    assert row["trainer_busy_ratio"] == pytest.approx(1.2 / 1.6, abs=0.01)
    assert row["trained_tokens_per_s"] == pytest.approx(2 * 200 / 1.6, rel=ROUNDING)


def test_a_pool_waits_only_while_all_its_tenants_wait():
    # Tenant 0 trains .2 from 1 and syncs .5 until 1.7; tenant 1 trains .3 from 1.5 and syncs until 2.3: busy from 1 to 2.3
    runs = run_tenants(toy(tenants=2, concurrency=4, weight_sync_s=0.5), 1, [(100, 100)], [(150, 150)])
    pool = Pool(runs=runs)
    assert pool.window == pytest.approx((0.0, 1.7), rel=ROUNDING)
    assert pool.trainer_wait_ratio == pytest.approx(1.0 / 1.7, rel=ROUNDING)
    assert pool.trainer_busy_ratio == pytest.approx((0.2 + 0.2) / 1.7, rel=ROUNDING)  # 1.2 to 1.5 only syncs


@pytest.mark.parametrize("lump", [False, True])
def test_one_tenant_costs_and_waits_what_the_single_run_does(lump):
    row = tenancy(SLIME, [1], seed=3, steps=20, lump=lump).iloc[0]
    point = simulate(lumped(SLIME) if lump else SLIME, 3, 20).operating_point
    point = unlumped(point, SLIME) if lump else point
    bill = cost(SLIME, point)
    assert row["usd_per_mtok"] == bill.usd_per_mtok
    assert row["trainer_wait_ratio"] == row["tenant_wait_ratio"] == point.trainer_wait_ratio
    assert row["trained_tokens_per_s"] == point.trained_tokens_per_s
    assert row["binding_constraint"] == point.binding_constraint
    assert row["hosted_usd_per_mtok"] == hosted_usd_per_mtok(
        SLIME.hosted_price, SLIME.mean_prompt_tokens, SLIME.mean_response_tokens
    )


@pytest.fixture(scope="module", params=["slime-qwen3-235b", "verl-qwen3-235b-c256", "prime-rl-glm-5"])
def table(request):
    return tenancy(Scenario.from_data(request.param), [1, 2, 3, 4, 6, 8], steps=24, lump=True)


def test_with_slots_of_their_own_more_tenants_never_train_fewer_tokens(table):
    tokens = table["trained_tokens_per_s"].to_numpy()
    assert (tokens[1:] >= 0.97 * tokens[:-1]).all()  # 24 steps leave chance in a mean
    assert tokens[-1] > 1.2 * tokens[0]


def test_shares_are_shares_and_the_bill_is_the_sum_of_its_parts(table):
    ratios = table[[name for name in table if name.endswith("_ratio")]].to_numpy(float)
    assert ((ratios >= 0) & (ratios <= 1 + 0.02)).all()  # decoding may find memory a little better filled than the mean
    parts = table[[f"{part}_usd_per_mtok" for part in PARTS]].sum(axis=1)
    assert parts.to_numpy() == pytest.approx(table["usd_per_mtok"].to_numpy(), rel=1e-12)
    assert (table["trainer_wait_ratio"] + table["trainer_busy_ratio"] <= 1 + 1e-9).all()
    assert (table["tenant_turn_ratio"] <= table["tenant_wait_ratio"] + 1e-9).all()


def test_the_tenants_tokens_are_the_pools_and_its_dollars_all_gpus():
    pool = simulate_pool(shared(lumped(SLIME), 3, 40.0), seed=1, steps=20)
    point = pool.operating_point
    assert point.trained_tokens_per_s == pytest.approx(sum(each.trained_tokens_per_s for each in pool.seen))
    bill = cost(lumped(SLIME), point)
    gpus = SLIME.trainer_gpus + SLIME.generator_gpus
    usd_per_s = gpus * usd_per_gpu_hour(SLIME) / 3600 + bill.sandbox_usd_per_mtok * point.trained_tokens_per_s / 1e6
    # A step is charged at its mean tokens, the run trained its own: they differ by chance
    assert bill.usd_per_mtok == pytest.approx(usd_per_s / point.trained_tokens_per_s * 1e6, rel=0.05)


def test_each_tenant_brings_its_slots_and_its_account():
    three = shared(dataclasses.replace(SLIME, sandbox_start_s=3.0, sandbox_cap=300.0, sandbox_creates_per_s=2.0), 3)
    assert (three.tenants, three.concurrency) == (3, 3 * SLIME.concurrency)
    assert (three.sandbox_cap, three.sandbox_creates_per_s) == (900.0, 6.0)


def test_what_moves_while_it_runs_has_no_long_run_cost_but_its_tenants_can_be_simulated():
    drifting = dataclasses.replace(toy(), drift_law="linear", drift_steps=10, drift_length_factor=2.0)
    with pytest.raises(ValueError, match="drift_law, learning_logit_per_step: must be off"):
        tenancy(drifting, [2], steps=2)
    assert len(simulate_pool(shared(drifting, 2), steps=10).seen) == 2


def test_who_cannot_share_is_refused():
    with pytest.raises(ValueError, match="tenants=2 must be 1 with schedule='lent-trainer'"):
        tenancy(dataclasses.replace(SLIME, schedule="lent-trainer"), [2], steps=2)
    for closed in (solve, lambda each: solve_grid(each, concurrency=np.array([64, 128]))):
        with pytest.raises(ValueError, match="tenants=2 must be 1 for the closed form"):
            closed(shared(SLIME, 2))
