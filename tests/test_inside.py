"""The page "inside one run" without a browser: its numbers from the tables of a run, its words, and its widgets."""

import asyncio
import contextlib
import dataclasses

import numpy as np
import pytest
from scipy.stats import t as student
from test_explorer import text

from rlqueue import Scenario, simulate, solve
from rlqueue.app import controls, inside, inside_panels, inside_shares
from rlqueue.app import page as parts
from rlqueue.app.banded import banded, of_inputs
from rlqueue.app.inside import Inside, stamp
from rlqueue.app.inside_figures import NAMES, figures
from rlqueue.app.inside_runs import Shown, short, short_steps, slices
from rlqueue.app.inside_shares import FATES, generator_shares, long_run, token_shares, trainer_shares
from rlqueue.app.inside_times import (
    MOST_POINTS,
    batch,
    durations,
    levels,
    publications,
    spans,
    staleness,
    survival,
    window,
)
from rlqueue.app.state import State, opened
from rlqueue.app.trust import reason
from rlqueue.presets import preset_names
from rlqueue.simulation import lumped
from rlqueue.uncertainty import QUANTITIES

EXACT = 1e-9


def shown(run, *, full=True):
    return Shown(scenario=run.scenario, run=run, closed=solve(run.scenario), full=full)


def made(name="verl-qwen3-235b-c96", *, steps=20, seed=1, **changes):
    scenario = dataclasses.replace(Scenario.from_data(name), **changes)
    return simulate(lumped(scenario), seed, steps, rollouts=True)


RUNS = {
    "partial rollout": made(),
    "published every fifth step": made("slime-qwen3-235b", steps=40),
    "surplus": made("prime-rl-qwen3-235b", steps=10),
    "filtered": made("prime-rl-glm-5", steps=10),
    "too stale": made(staleness_family="drop", max_staleness=1.0),
    "pruned": made(oversampling_factor=1.5, schedule="sync"),
    "failing sandboxes": made(sandbox_run_failure_ratio=0.2, sandbox_failure_ratio=0.1),
    "drained": made(schedule="async-drain", max_staleness=2.0),
    "colocated": made(schedule="colocated-sync"),
    "pauses": made(evaluate_every_steps=3, evaluation_s=200.0, checkpoint_every_steps=4, checkpoint_s=50.0),
    "one step off": made(schedule="one-step-off", weight_sync_s=0.0),
}


@pytest.fixture(params=RUNS.values(), ids=RUNS)
def run(request):
    return request.param


# Where it went


def test_shares_of_time_and_tokens_sum_to_all_of_it_and_none_is_negative(run):
    for shares in (trainer_shares(run), generator_shares(run), token_shares(run)):
        assert sum(shares.values()) == pytest.approx(1.0, abs=EXACT)
        assert min(shares.values()) >= 0.0


def test_the_trainer_s_waiting_share_is_its_wait_ratio_and_the_generator_s_idle_share_its_idle_ratio(run):
    assert trainer_shares(run)["wait"] == pytest.approx(run.operating_point.trainer_wait_ratio, abs=EXACT)
    assert generator_shares(run)["idle"] == pytest.approx(run.operating_point.rollout_idle_ratio, abs=EXACT)


def test_tokens_are_those_that_the_run_itself_accounts_for(run):
    own = run.tokens[run.tokens["kind"] == "sampled"].set_index("fate")["tokens"]
    shares, total = token_shares(run), own.sum()
    undecided = (own["in flight"] + own["queued"]) / total  # with the failed attempts of queued groups
    assert undecided - shares["failed"] - EXACT <= shares["open"] <= undecided + EXACT
    trained = run.groups[run.groups["fate"] == "trained"]
    prompts = len(trained) * run.scenario.group_size * run.scenario.mean_prompt_tokens
    assert shares["trained"] * total == pytest.approx(run.steps["trained_tokens"].sum() - prompts, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "fate"),
    {
        "surplus": "surplus",
        "filtered": "filtered",
        "too stale": "stale",
        "pruned": "pruned",
        "failing sandboxes": "failed",
    }.items(),
)
def test_what_is_thrown_away_is_called_by_its_fate(name, fate):
    run = RUNS[name]
    others = set(FATES) - {"trained", "open", fate}
    for shares in (generator_shares(run), token_shares(run)):
        assert shares[fate] > 0.01
        assert max(shares[other] for other in others) < (0.2 if name == "failing sandboxes" else EXACT)


def test_slot_time_of_all_rollouts_is_what_was_in_flight():
    """Nothing but a synchronous run is empty at its end: then each rollout's slot-time is known to the end."""
    run = made(schedule="sync")
    begin, end = long_run(run)
    inside_the_window = run.rollouts[(run.rollouts["dispatch_s"] >= begin) & (run.rollouts["end_s"] <= end)]
    held = (inside_the_window["end_s"] - inside_the_window["dispatch_s"]).sum()
    shares = generator_shares(run)
    assert held / (run.scenario.concurrency * (end - begin)) == pytest.approx(1.0 - shares["idle"], rel=1e-6)
    assert shares["open"] == pytest.approx(0.0, abs=1e-6)


# When it happened


def test_the_window_holds_the_last_steps_and_never_more_than_there_are(run):
    seen = window(run, 5)
    assert (seen.first, seen.last) == (len(run.steps) - 5, len(run.steps) - 1)
    assert seen.end_s == run.steps["end_s"].iloc[-1]
    assert window(run, 1000).start_s == 0.0


def test_the_trainer_s_spans_follow_each_other_and_add_up_to_wall_clock(run):
    seen = window(run, 8)
    found = spans(run, seen)
    assert found["start_s"].iloc[0] == pytest.approx(seen.start_s)
    assert np.allclose(found["start_s"].to_numpy()[1:], found["end_s"].to_numpy()[:-1], rtol=EXACT)
    assert (found["end_s"] - found["start_s"]).sum() == pytest.approx(seen.end_s - seen.start_s, rel=EXACT)


def test_spans_by_kind_are_the_steps_waits_and_trainings(run):
    seen = window(run, 8)
    found = spans(run, seen)
    total = (found["end_s"] - found["start_s"]).groupby(found["kind"].astype(str)).sum()
    kept = run.steps.iloc[seen.first :]
    assert total.get("train", 0.0) == pytest.approx(kept["train_s"].sum())
    assert sum(total.get(kind, 0.0) for kind in ("wait", "hold", "fetch")) == pytest.approx(kept["wait_s"].sum())


def test_levels_begin_and_end_with_the_window_in_order_and_within_what_there_is(run):
    seen = window(run, 6)
    found = levels(run, seen)
    assert found["time_s"].iloc[0] == pytest.approx(seen.start_s)
    assert found["time_s"].iloc[-1] == seen.end_s
    assert (found["time_s"].diff().dropna() >= 0).all()
    assert found["in_flight_rollouts"].max() <= run.scenario.concurrency
    assert (found["active_requests"] <= found["in_flight_rollouts"]).all()


@pytest.mark.parametrize("count", [3, 1000])
def test_levels_have_the_means_over_time_that_the_steps_have(run, count):
    seen = window(run, count)
    found, kept = levels(run, seen), run.steps.iloc[seen.first :]
    length, weights = np.diff(found["time_s"].to_numpy()), kept["end_s"] - kept["start_s"]
    exact = len(found) < MOST_POINTS
    for level in ("in_flight_rollouts", "queued_groups"):
        mean = (found[level].to_numpy()[:-1] * length).sum() / length.sum()
        expected = (kept[level] * weights).sum() / weights.sum()
        assert mean == pytest.approx(expected, rel=1e-6 if exact else 0.03, abs=EXACT)


def test_a_publication_ends_the_step_that_trained_for_it():
    run = RUNS["published every fifth step"]
    found = publications(run, window(run, 40))
    assert np.allclose(found, run.steps["end_s"].to_numpy()[4::5])
    assert publications(run, window(run, 4)).size == 1


def test_the_groups_of_a_step_are_those_trained_in_it_and_those_thrown_away_meanwhile(run):
    last = len(run.steps) - 1
    found = batch(run, last)
    fates = found["fate"].astype(str)
    if len(found) < 40:
        assert (fates == "trained").sum() == run.scenario.prompts_per_step
    assert not set(fates) & {"in flight", "queued"}
    assert (found["ended_s"] >= found["dispatch_s"]).all()
    assert (found.loc[fates == "trained", "trained_s"] >= found.loc[fates == "trained", "ended_s"]).all()
    assert found["dispatch_s"].is_monotonic_increasing


# Staleness


def test_the_histogram_sums_to_one_and_its_mean_is_the_operating_point_s(run):
    found = staleness(run)
    assert found.share.sum() == pytest.approx(1.0, abs=EXACT)
    assert found.mean == pytest.approx(run.operating_point.staleness_versions, abs=EXACT)


def test_its_two_parts_have_the_means_of_the_steps(run):
    found, kept = staleness(run), run.steps.iloc[run.warm_up_steps :]
    assert found.mean_in_flight == pytest.approx(kept["staleness_in_flight"].mean(), abs=EXACT)
    assert float(found.versions @ found.in_queue) == pytest.approx(kept["staleness_in_queue"].mean(), abs=EXACT)
    assert min(found.in_flight.min(), found.in_queue.min(), found.fresh.min()) >= -EXACT


def test_a_synchronous_run_is_fresh():
    found = staleness(made(schedule="sync"))
    assert found.versions.tolist() == [0]
    assert found.fresh.tolist() == [1.0]


def test_a_drop_rule_s_budget_is_kept():
    assert staleness(RUNS["too stale"]).versions[-1] <= 1


# Durations


def test_percentiles_rise_to_the_longest_and_the_mean_is_the_operating_point_s():
    run = RUNS["partial rollout"]
    found = durations(run)
    assert list(found.marks.values()) == sorted(found.marks.values())
    assert found.marks["max"] == found.rollouts_s[-1]
    assert found.rollouts_s.mean() == pytest.approx(run.operating_point.rollout_s, rel=EXACT)
    assert found.groups_s.mean() == pytest.approx(run.operating_point.group_s, rel=EXACT)


def test_the_share_cut_is_the_share_of_the_longest_responses():
    run = RUNS["surplus"]
    done = run.rollouts[(run.rollouts["end"] == "finished") & (run.rollouts["end_s"] > long_run(run)[0])]
    assert durations(run).cut == pytest.approx((done["response_tokens"] == run.scenario.max_response_tokens).mean())
    assert durations(run).cut > 0.02


def test_survival_falls_from_all_to_the_single_longest():
    ordered = np.arange(1.0, 1001.0)
    times, share = survival(ordered, 50)
    assert (times[0], share[0]) == (1.0, 1.0)
    assert (times[-1], share[-1]) == (1000.0, pytest.approx(0.001))
    assert (np.diff(times) > 0).all()
    assert (np.diff(share) < 0).all()
    for at, part in zip(times, share, strict=True):
        assert part == pytest.approx((ordered >= at).mean())
    assert survival(np.zeros(0))[0].size == 0


# Runs


def test_the_full_run_in_slices_is_the_run_that_simulate_makes_in_one_go():
    scenario = Scenario.from_data("verl-qwen3-235b-c96")
    *progress, last = slices(scenario, seed=3, steps=12)
    at_once = simulate(scenario, 3, 12, rollouts=True)
    assert len(progress) >= 2
    assert progress == sorted(progress)
    assert last.full
    assert not last.lumped
    assert last.run.events == at_once.events
    assert last.run.groups.equals(at_once.groups)
    assert last.run.rollouts.equals(at_once.rollouts)
    assert last.run.operating_point == at_once.operating_point


@pytest.mark.parametrize("name", preset_names())
def test_a_short_run_is_short_whole_and_near_the_closed_form(name):
    found = short(opened(name).scenario, 0)
    assert not found.run.stalled
    assert 10 <= found.done_steps == short_steps(found.scenario) <= 40
    assert found.run.operating_point.trainer_wait_ratio == pytest.approx(found.closed.trainer_wait_ratio, abs=0.08)


# Words


def test_what_was_simulated_is_said():
    found = short(opened().scenario, 4)
    said = text(inside_panels.simulated_words(found, 4))
    assert "A short run with the 15 tool calls of a rollout in one piece" in said
    assert f"{found.done_steps} steps" in said
    assert "seed 4" in said
    assert "100 steps, follows when the hand rests" in said
    assert "The full run: 20 steps" in text(inside_panels.simulated_words(shown(RUNS["partial rollout"]), 1))


def test_the_cards_hold_both_solvers_their_difference_and_how_far_they_may_be_off():
    state = opened("verl-qwen3-235b-c96")
    found, known = shown(RUNS["partial rollout"]), banded(state)
    said, run, closed = text(inside_panels.cards(found, known)), found.run.operating_point, found.closed
    for pair in inside_panels.PAIRS:
        a, b = getattr(run, pair.field), getattr(closed, pair.field)
        apart = inside_panels.difference(pair, a, b)
        assert f"{pair.name} {pair.shown(a)} simulated {pair.unit} {pair.shown(b)} closed form {apart} chance " in said
        if pair.field in QUANTITIES:
            assert of_inputs(known, pair.field, pair.shown).words in said
    assert "with a confidence of 90%, from 10 parts of this one run" in said


def test_a_short_run_says_that_its_chance_is_not_known():
    seen = text(inside_panels.cards(shown(RUNS["partial rollout"], full=False)))
    assert seen.count("chance unknown") == len(inside_panels.PAIRS)


@pytest.mark.parametrize("pair", inside_panels.PAIRS, ids=lambda pair: pair.field)
def test_what_a_mean_is_made_of_makes_the_run_s_own_mean(run, pair):
    above, below = inside_panels.batched(shown(run), pair.field)
    assert above.sum() / below.sum() == pytest.approx(getattr(run.operating_point, pair.field), rel=1e-9, abs=1e-9)


def test_the_chance_of_a_mean_holds_what_other_seeds_give():
    """About ninety of a hundred intervals hold the truth; of waits more, since a short one follows a long one."""
    runs = [shown(made(seed=seed, steps=100)) for seed in range(20)]
    held = {}
    for pair in inside_panels.PAIRS:
        means = [getattr(each.point, pair.field) for each in runs]
        half = [student.ppf(0.95, inside_panels.BATCHES - 1) * inside_panels.error(each, pair.field) for each in runs]
        held[pair.field] = np.mean(np.abs(means - np.mean(means)) <= np.array(half) + 1e-9)
    assert min(held.values()) > 0.75
    assert np.mean([held[field] for field in ("step_s", "rollout_s", "queued_groups")]) < 0.99


def test_a_difference_is_in_points_for_a_share_and_in_percent_for_the_rest():
    share, time = inside_panels.PAIRS[0], inside_panels.PAIRS[3]
    assert inside_panels.difference(share, 0.28, 0.30) == "−2.0 points"
    assert inside_panels.difference(time, 110.0, 100.0) == "+10.0%"
    assert inside_panels.difference(time, 100.0, 100.0) == "the same"
    assert inside_panels.difference(time, 3.0, 0.0) == "+3.0 s"
    assert inside_panels.difference(time, 0.0, 0.0) == "the same"


def test_which_solver_to_believe_depends_on_the_distance_chance_and_known_differences():
    near = shown(RUNS["surplus"])
    waits = near.run.operating_point.trainer_wait_ratio
    alike = dataclasses.replace(near, closed=dataclasses.replace(near.closed, trainer_wait_ratio=waits + 0.005))
    assert "agree to 0.5 points" in inside_panels.believe(alike)
    far = dataclasses.replace(near, closed=dataclasses.replace(near.closed, trainer_wait_ratio=waits + 0.9))
    far = dataclasses.replace(far, run=RUNS["partial rollout"])
    assert "believe the simulation" in inside_panels.believe(far)
    assert because("drained").startswith("a drain holds the trainer too")
    assert because("failing sandboxes").startswith("a failed start or a dead sandbox")
    assert because("one step off").startswith("the closed form has every replica evenly loaded")
    assert "judge neither" in inside_panels.believe(dataclasses.replace(near, full=False))


def because(name):
    found = shown(RUNS[name])
    return reason(found.scenario, found.point, found.closed)


def test_the_chance_error_is_about_the_spread_of_the_wait_over_seeds():
    runs = [made(seed=seed, steps=40) for seed in range(12)]
    spread = np.std([run.operating_point.trainer_wait_ratio for run in runs], ddof=1)
    errors = [inside_panels.error(shown(run), "trainer_wait_ratio") for run in runs]
    assert 0.4 * spread < np.mean(errors) < 2.5 * spread


# Figures


def test_every_figure_of_every_run_can_be_drawn_and_says_what_its_colours_mean(run):
    found = figures(shown(run), 6)
    assert tuple(found) == NAMES
    for figure in found.values():
        assert figure["layout"]["title"]["text"]
        assert figure["layout"]["meta"]["key"]
        for trace in figure["data"]:
            assert len(trace["x"]) == len(trace["y"])
    spent = [trace for trace in found["spent"]["data"] if trace["type"] == "bar"]
    for row in (0, 1, 2):
        total = sum(x for trace in spent for x, y in zip(trace["x"], trace["y"], strict=True) if y == row)
        assert total == pytest.approx(1.0, abs=1e-6)


def test_waiting_is_in_the_timeline_with_the_length_it_had():
    run = RUNS["partial rollout"]
    figure = figures(shown(run), 6)["timeline"]
    waits = next(trace for trace in figure["data"] if trace["name"] == "waits")
    assert figure["layout"]["xaxis"]["title"]["text"].startswith(("minutes", "hours"))
    factor = 60.0 if figure["layout"]["xaxis"]["title"]["text"].startswith("minutes") else 3600.0
    assert waits["x"].sum() * factor == pytest.approx(run.steps["wait_s"].iloc[-6:].sum())


# The page


@pytest.fixture
def page():
    return Inside()


def holder(page, knob):
    return next(held for control, held in page._board.holders.items() if control.knob == knob)


def said(page):
    return text(page._status.value)


def test_without_a_running_loop_the_page_shows_a_short_run(page):
    assert page._rest.task is None
    assert page._plots._stamp == "64:192 S=16 C=2808 async-in-flight seed=0 last=10 short"
    assert "A short run" in text(page._about_run.value)


@pytest.mark.parametrize("knob", [*(control.knob for control in controls.MAIN), "schedule"])
def test_each_control_moves_its_knob_and_reset_brings_it_back(page, knob):
    before = page._cards.value
    held = holder(page, knob)
    held.index -= 1
    assert said(page) == ""
    scenario = page.state.scenario
    assert page.shown.scenario == scenario != opened().scenario
    assert page._plots._stamp == stamp(scenario, 0, 10, full=False)
    if knob != "max_staleness":
        assert page._cards.value != before
    page._board.again.click()
    assert page.state == opened()
    assert held.value == controls.held(next(c for c in page._board.holders if c.knob == knob), opened().scenario)


def test_another_seed_is_another_run_and_more_steps_shown_the_same(page):
    before, cards = page.shown, page._cards.value
    page._window.index += 2
    assert page.shown is before
    assert page._plots._stamp.endswith("last=16 short")
    page._seed.index = 5
    assert page.shown.run.seed == 5
    assert page._cards.value != cards


@pytest.mark.parametrize("sent", [{"index": 10_000}, {"index": -1}, {"index": "4"}, {"_options_labels": ["x"]}])
@pytest.mark.parametrize("which", ["_seed", "_window", "preset"])
def test_what_no_control_can_send_is_refused_by_name_and_the_page_lives_on(page, which, sent):
    control = getattr(page, which, None) or page._board.preset
    control.set_state(sent)
    assert said(page).startswith(f"Refused: {control.description}")
    assert page.state == opened()
    page._seed.set_state({"index": 3})
    assert page.seed == 3
    assert said(page) == ""


def test_a_scenario_that_cannot_be_is_refused_by_name_and_changes_nothing(page):
    with pytest.raises(ValueError, match="concurrency=0 must be >= 1"):
        page._board._moved(controls.CONCURRENCY, {"new": 0})
    assert page.state == opened()


def test_a_run_that_stalls_shows_its_cause_instead_of_empty_figures_until_the_next_move(page):
    hopeless = dataclasses.replace(
        opened("verl-qwen3-235b-c96").scenario, solve_rate_mean=1.0, filtered_fraction=0.0, sandbox_start_s=0.0
    )
    page._go(State(preset="verl-qwen3-235b-c96", scenario=hopeless), 0)
    assert "stalled after 0 of 40 steps" in text(page._stall.value)
    assert "nearly every group is filtered" in text(page._stall.value)
    assert [widget.layout.display for widget in (page._plots, page._cards, page._believe)] == ["none"] * 3
    page._board.again.click()
    assert page._stall.value == ""
    assert page._plots.layout.display == ""


async def _until_full(page):
    await asyncio.wait_for(page._rest.task, 60)
    assert page.shown.full


def test_at_rest_the_full_run_follows_and_a_move_calls_it_off(monkeypatch):
    monkeypatch.setattr(parts, "REST_S", 0.01)

    async def visit():
        page = Inside()
        page._begin()
        page._board.preset.value = "slime-qwen3-235b"
        await _until_full(page)
        assert page._plots._stamp.endswith("full")
        assert page.shown.done_steps == 100
        assert "The full run: 100 steps" in text(page._about_run.value)
        page._board.preset.value = "verl-qwen3-235b-c96"
        old = page._rest.task
        await asyncio.sleep(0.05)
        holder(page, "concurrency").index -= 1
        with contextlib.suppress(asyncio.CancelledError):
            await old
        assert old.cancelled()
        assert not page.shown.full
        await _until_full(page)
        assert page.shown.scenario == page.state.scenario

    asyncio.run(visit())


def test_a_full_run_that_fails_says_so(monkeypatch, caplog):
    monkeypatch.setattr(parts, "REST_S", 0.0)
    monkeypatch.setattr(inside, "slices", lambda *_: 1 / 0)

    async def visit():
        page = Inside()
        page._begin()
        await asyncio.wait([page._rest.task])
        await asyncio.sleep(0)
        assert "The full run failed" in text(page._about_run.value)

    asyncio.run(visit())
    assert "what was begun when the hand rested failed" in caplog.text


def test_fates_and_kinds_all_have_colours_and_words():
    from rlqueue.app.inside_palette import COLOURS, SAID

    assert set(COLOURS) == set(SAID)
    assert {*inside_shares.TRAINER, *inside_shares.GENERATOR, "hold", "fetch"} == set(COLOURS)
