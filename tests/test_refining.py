"""What the explorer simulates: the short runs while dragging, the longer ones at rest, and what is said about both."""

import asyncio
import dataclasses
import time

import numpy as np
import pytest

from rlqueue import solve
from rlqueue.app import panels, trust, way_words
from rlqueue.app.answers import answer
from rlqueue.app.banded import known
from rlqueue.app.banded_way import known_way
from rlqueue.app.bending import bent
from rlqueue.app.explorer import Explorer
from rlqueue.app.figures import figures
from rlqueue.app.refining import SEEDS, Refinement, known_map, point_fidelity, refine, run
from rlqueue.app.runs import Fidelity, outcome
from rlqueue.app.simulated import GIVEN_UP, QUICK_EVENTS, quick_fidelity
from rlqueue.app.state import State, frame, opened, with_value
from rlqueue.presets import preset_names
from rlqueue.simulation import simulate

SMALL = "slime-qwen3-235b"


def moved(state, **knobs):
    scenario = state.scenario
    for knob, value in knobs.items():
        scenario = with_value(scenario, knob, value)
    return State(preset=state.preset, scenario=scenario)


def changed(name, **knobs):
    return State(preset=name, scenario=dataclasses.replace(opened(name).scenario, cluster_gpus=0, **knobs))


def stuck():
    """All prompts are solved always, so every group is filtered."""
    return changed(SMALL, solve_rate_mean=1.0, filtered_fraction=0.0)


def refined(state):
    shown = []
    asyncio.run(refine(answer(state), lambda found, progress: shown.append((found, progress))))
    return shown


# While dragging


@pytest.mark.parametrize("name", preset_names())
def test_a_short_run_is_short_and_the_same_one_for_all_that_the_sliders_reach(name):
    state = opened(name)
    fidelity = quick_fidelity(state)
    last = int(frame(state.scenario).splits[-1])
    assert quick_fidelity(moved(state, generator_gpus=last, concurrency=state.scenario.concurrency * 2)) == fidelity
    assert quick_fidelity(moved(state, max_staleness=0.0)) == fidelity
    assert answer(state).simulated.point == outcome(state.scenario, fidelity, 0, GIVEN_UP * QUICK_EVENTS).point


def test_a_run_too_long_for_a_slider_is_given_up_and_the_page_says_so():
    state = changed(SMALL, prompts_per_step=1024, group_size=64)
    begin = time.process_time()
    found = answer(state)
    assert time.process_time() - begin < 5.0  # millions of events otherwise
    assert found.simulated.point is None
    assert found.simulated.cut
    assert found.shown_point == found.point
    assert "take too many events" in trust.sentence(found)
    assert "it takes too long while dragging" in panels.how(found)
    assert "simulated" not in panels.cards(found)


def test_a_bent_curve_keeps_the_closed_form_s_shape_and_meets_what_was_simulated():
    state = opened()
    found = answer(state)
    splits = found.frame.splits
    points = {
        int(split): [dataclasses.replace(found.point, trainer_wait_ratio=w, step_s=s)]
        for split, w, s in zip(splits[[4, 20]], (0.9, 0.4), (500.0, 300.0), strict=True)
    }
    curve = bent(state, found.by_split, points)
    wait, closed = curve.by_split["trainer_wait_ratio"], found.by_split["trainer_wait_ratio"]
    assert wait[[4, 20]].tolist() == [0.9, 0.4]
    assert wait[12] - closed[12] == pytest.approx(0.5 * (0.9 - closed[4] + 0.4 - closed[20]))
    assert curve.by_split["step_s"][[4, 20]].tolist() == [500.0, 300.0]
    assert curve.by_split["step_s"][30] / found.by_split["step_s"][30] == pytest.approx(
        300 / found.by_split["step_s"][20]
    )
    assert wait.min() >= 0.0
    assert wait.max() <= 1.0


# When the hand rests


def test_at_rest_the_point_is_the_mean_of_its_seeds_with_full_turns():
    state = opened(SMALL)
    shown = refined(state)
    found, progress = shown[-1]
    assert progress == 1.0
    fidelity = point_fidelity(state.scenario)
    assert (found.simulated.fidelity.seeds, fidelity.lumped) == (SEEDS, False)
    waits = [simulate(state.scenario, seed, fidelity.steps).operating_point.trainer_wait_ratio for seed in range(SEEDS)]
    assert len(set(waits)) == SEEDS
    assert found.simulated.point.trainer_wait_ratio == pytest.approx(np.mean(waits))
    assert found.simulated.spread("trainer_wait_ratio") == (min(waits), max(waits))
    here = list(found.frame.splits).index(state.scenario.generator_gpus)
    curve = found.simulated.curve
    assert (curve.low["trainer_wait_ratio"][here], curve.high["trainer_wait_ratio"][here]) == (min(waits), max(waits))
    assert f"±{50 * (max(waits) - min(waits)):.1f}" in panels.cards(found)
    assert f"Cards: {SEEDS} seeds, {fidelity.steps} steps." in panels.how(found, 1.0)
    assert "all runs done" in panels.how(found, 1.0)


def test_at_rest_bands_are_drawn_and_the_map_is_simulated_and_kept():
    state = opened(SMALL)
    found = refined(state)[-1][0]
    figure = figures(found)
    assert [trace["visible"] for trace in figure["wait"]["data"][:2]] == [True, True]
    assert not np.isnan(found.map_so_far.cells).any()
    assert figure["map"]["layout"]["title"]["subtitle"]["text"].startswith("simulated, seed 0, ")
    row, column = 9, 5
    cell = with_value(state.scenario, "generator_gpus", int(found.wait_map.generator_gpus[column]))
    cell = with_value(cell, "concurrency", int(found.wait_map.concurrency[row].round()))
    fidelity = found.map_so_far.fidelity
    assert figure["map"]["data"][0]["z"][row, column] == outcome(cell, fidelity, 0).point.trainer_wait_ratio
    after = answer(moved(state, generator_gpus=40))
    assert np.array_equal(known_map(after).cells, found.map_so_far.cells)
    assert known_map(answer(moved(state, max_staleness=3.0))) is None


def test_a_move_cancels_the_longer_runs_at_their_next_slice():
    state = moved(opened("prime-rl-glm-5"), max_staleness=11.5)  # nothing of it is in memory
    shown = []

    async def cancelled():
        task = asyncio.create_task(refine(answer(state), lambda *each: shown.append(each)))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert [progress for _, progress in shown if progress == 1.0] == []
    job = dataclasses.replace(Refinement(answer(state)).jobs[0], seed=99)  # one that nobody has run
    assert run(job, lambda: False) is None


def test_a_page_cancels_what_it_had_begun_and_begins_anew():
    async def dragged():
        page = Explorer(opened(SMALL))
        page._begin()
        first = page._rest.task
        slider = next(held for control, held in page._board.holders.items() if control.knob == "generator_gpus")
        slider.index -= 1
        second = page._rest.task
        await asyncio.sleep(0)
        assert first.cancelled() or first.cancelling()
        assert second is not first
        await second
        return page

    page = asyncio.run(dragged())
    assert page._found.simulated.fidelity.seeds == SEEDS
    assert "all runs done" in page._how.value
    whole = way_words.card(page._way, known_way(page.state))
    assert page._cards.value == panels.cards(page._found, whole, known(page._found.state))
    assert "&nbsp;" not in page._cards.value  # every band is there


# Which of the two to believe


def test_a_stalled_run_shows_its_cause_and_the_page_lives_on():
    shown = refined(stuck())
    found, progress = shown[-1]
    assert progress == 1.0
    assert "nearly every group is filtered" in found.simulated.stalled
    assert "nearly every group is filtered" in panels.verdict_html(found)
    assert "nearly every group is filtered" in panels.how(found, 1.0)
    assert found.shown_point.kind == "closed form"
    figures(found)


@pytest.mark.parametrize("name", preset_names())
def test_at_the_published_runs_both_agree_within_the_stated_error(name):
    """And at neighbouring splits and concurrencies; where they don't, the page has a sentence for it."""
    state = opened(name)
    for scale in (0.5, 1.0):
        near = moved(state, concurrency=max(8, int(scale * state.scenario.concurrency)))
        seeds = [outcome(near.scenario, Fidelity(steps=60, lumped=True), seed).point for seed in range(3)]
        wait = float(np.mean([point.trainer_wait_ratio for point in seeds]))
        assert wait == pytest.approx(solve(near.scenario).trainer_wait_ratio, abs=trust.STATED_ERROR + 0.01)  # lumping


def test_where_they_differ_a_sentence_says_which_to_believe_and_why():
    found = answer(opened(SMALL))
    assert trust.sentence(found) == ""
    away = dataclasses.replace(found.simulated.point, trainer_wait_ratio=0.9)
    near = dataclasses.replace(found.simulated.point, trainer_wait_ratio=0.91)
    one = dataclasses.replace(found, simulated=dataclasses.replace(found.simulated, point=away, points=[away]))
    assert "Wait for the longer runs" in trust.sentence(one)
    fidelity = Fidelity(steps=60, lumped=False, seeds=8)
    many = dataclasses.replace(
        found, simulated=dataclasses.replace(found.simulated, point=away, points=[away, near], fidelity=fidelity)
    )
    assert "Believe the simulation, since " in trust.sentence(many)
    drained = dataclasses.replace(many, state=changed(SMALL, schedule="async-drain"))
    assert "a drain holds the trainer too" in trust.sentence(drained)
    assert trust.sentence(many) in panels.verdict_html(many)
