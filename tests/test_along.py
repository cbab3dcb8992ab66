"""The two pages over a run's steps without a browser: the run along its way, what is simulated of it, and their widgets."""

import asyncio
import dataclasses

import numpy as np
import pytest
from test_explorer import text

from rlqueue.app import growth_words, strategies, teach_words, way_words
from rlqueue.app import page as parts
from rlqueue.app.controls import meant
from rlqueue.app.growth import Growth
from rlqueue.app.growth_figures import NAMES as GROWTH_NAMES
from rlqueue.app.moving_knobs import applies
from rlqueue.app.state import opened, value_of, with_value
from rlqueue.app.teach import Teach
from rlqueue.app.teach_figures import NAMES as TEACH_NAMES
from rlqueue.app.walk import Walked, lumpable, reach, run_as, walk, walked
from rlqueue.app.way import BINS, POINTS, steady, way
from rlqueue.app.way_figures import flips
from rlqueue.course import course, whole_run
from rlqueue.drift_presets import measured_drift
from rlqueue.simulation import simulate

SMALL = "slime-qwen3-235b"
MIDDLES = (np.arange(BINS) + 0.5) / BINS


def taught(steps=60, name=SMALL, **knobs):
    return moved(
        opened(name, "which_prompts_teach"), **{"training_steps": steps, "learning_logit_per_step": 0.05} | knobs
    )


def grown(steps=60, name=SMALL, **knobs):
    return moved(opened(name, "what_if_answers_grow"), training_steps=steps, drift_steps=steps - 1, **knobs)


def moved(state, **knobs):
    scenario = state.scenario
    for knob, value in knobs.items():
        scenario = with_value(scenario, knob, value)
    return dataclasses.replace(state, scenario=scenario)


def walk_of(state, seed=0):
    shown = []
    asyncio.run(walk(state.scenario, seed, shown.append))
    return shown[-1]


# Along the way, by closed form


def test_the_way_is_the_course_and_its_whole_the_whole_run_s():
    state = taught(steps=400)
    found = way(state)
    assert len(found.steps) == POINTS
    assert found.course.table.equals(course(state.scenario, POINTS).table)
    assert found.whole == whole_run(state.scenario, POINTS)


def test_a_run_that_does_not_move_is_its_own_comparison():
    state = opened(SMALL)
    found = way(state)
    assert not found.moves
    assert found.whole_still.usd == pytest.approx(found.whole.usd)
    assert found.whole_still.hours == pytest.approx(found.whole.hours)
    assert way(taught()).moves
    assert way(grown()).moves


@pytest.mark.parametrize(
    "knobs", [{}, {"solve_rate_law": "logit-normal"}, {"learning_transfer": 0.2}, {"sampler": "adaptive"}]
)
def test_the_counted_pool_is_whole_and_has_the_mean_of_the_course(knobs):
    found = way(taught(**knobs))
    assert found.shares.shape == (len(found.steps), BINS)
    assert found.shares.sum(axis=1) == pytest.approx(1.0)
    assert found.shares.min() >= 0.0
    assert found.shares @ MIDDLES == pytest.approx(found.at["solve_rate"], abs=0.5 / BINS)


def test_a_pool_of_measured_rates_is_counted_as_it_was_measured():
    found = way(taught(solve_rate_histogram="0: 0.25, 0.52: 0.5, 1: 0.25"))
    assert found.shares[0][[0, 10, -1]].tolist() == pytest.approx([0.25, 0.5, 0.25])
    assert found.shares[-1][0] == pytest.approx(0.25)  # what is never solved stays so
    assert found.shares[-1][10] == 0.0


def test_percentiles_rise_with_their_share_and_end_at_the_cut():
    found = way(grown(drift_length_factor=1.5))
    assert (found.percentile(0.5) <= found.percentile(0.9)).all()
    assert (np.diff(found.percentile(0.5)) > 0).all()
    assert found.percentile(1.0 - 1e-12).max() == found.scenario.max_response_tokens


def test_fewer_rollouts_fit_the_kv_cache_as_answers_grow():
    found = way(grown(drift_length_factor=2.0))
    assert (np.diff(found.slots) < 0).all()
    assert way(grown(kv_precision="fp8")).slots[0] != way(grown(kv_precision="bf16")).slots[0]


# Simulated


def test_blocks_add_up_to_the_simulated_run():
    state = taught(steps=40)
    found = walk_of(state)
    run = simulate(run_as(state.scenario), 0, 40)
    assert found.steps == 40
    assert len(found.blocks) == 40
    assert found.hours == pytest.approx(run.steps["end_s"].iloc[-1] / 3600)
    waits = run.steps["wait_s"] / (run.steps["end_s"] - run.steps["start_s"])
    assert found.blocks["trainer_wait_ratio"].to_numpy() == pytest.approx(waits.to_numpy())
    assert found.blocks["solve_rate"].to_numpy() == pytest.approx(run.steps["mean_solve_rate"].to_numpy())


@pytest.mark.parametrize("state", [taught(steps=200), grown(steps=200)], ids=["teach", "growth"])
def test_simulated_and_closed_form_tell_the_same_story(state):
    """Means over the whole run: what the two differ by at single steps is chance and the filling of the slots."""
    found, closed = walk_of(state), way(state)
    assert found.usd == pytest.approx(closed.whole.usd, rel=0.08)
    assert found.hours == pytest.approx(closed.whole.hours, rel=0.08)
    if state.scenario.has_solve_rates:
        assert found.blocks["solve_rate"].iloc[-1] == pytest.approx(closed.at["solve_rate"][-1], abs=0.03)
        assert found.shares[-1] @ MIDDLES == pytest.approx(found.blocks["solve_rate"].iloc[-1], abs=0.5 / BINS)
    else:
        assert found.blocks["mean_response_tokens"].iloc[-1] == pytest.approx(
            closed.at["mean_response_tokens"][-1], rel=0.05
        )


def test_turns_in_one_piece_cost_what_turns_one_by_one_cost():
    """The prompt of a lumped run is the mean over its turns: dollars per token must count the scenario's own."""
    state = grown(steps=20, name="prime-rl-qwen3-235b", drift_length_factor=1.2)
    turns = simulate(state.scenario, 0, 20)
    from rlqueue.simulation import lumped

    both = [walked(run, state.scenario) for run in (turns, simulate(lumped(state.scenario), 0, 20))]
    costs = [each.blocks["usd_per_mtok"].iloc[5:].mean() for each in both]
    assert costs[1] == pytest.approx(costs[0], rel=0.06)
    assert [each.turns for each in both] == [True, False]


def test_tool_calls_that_grow_are_simulated_one_by_one():
    scenario = grown(steps=5000, name="verl-qwen3-235b-c96").scenario
    assert lumpable(scenario)
    assert run_as(scenario).tool_calls == 0
    more = dataclasses.replace(scenario, drift_tool_calls_factor=2.0)
    assert run_as(more) is more


def test_a_long_run_is_simulated_as_far_as_it_is_affordable_and_says_so():
    state = taught(steps=400)
    shown = []
    asyncio.run(walk(state.scenario, 0, shown.append, most_events=300_000))
    last = shown[-1]
    assert last.done
    assert 0 < last.steps < 400
    assert f"{last.steps} of 400 steps" in last.words
    assert f"Only the first {last.steps} of 400 steps" in text(way_words.verdict(way(state), last))


def test_the_target_is_reached_at_the_step_at_which_the_run_has_it():
    state = taught(steps=80)
    found = asyncio.run(reach(state.scenario, 0, 0.5))
    means = simulate(run_as(state.scenario), 0, 80).solve_rate_means
    assert means[found.steps] >= 0.5 > means[found.steps - 1]
    assert asyncio.run(reach(state.scenario, 0, 0.05)).steps == 0
    far = asyncio.run(reach(state.scenario, 0, 0.999))
    assert far.steps is None
    assert far.why.startswith("ends at")


# Strategies


def test_every_sampler_comes_with_every_gate_and_closed_and_simulated_steps_agree():
    state = taught(steps=600, learning_logit_per_step=0.01)
    found = strategies.strategies(state.scenario, 0.5)
    assert len(found) == 8
    came = {}
    asyncio.run(strategies.simulated(found, 0.5, 0, came.update))
    assert set(came) == {(each.sampler, each.gate) for each in found}
    for each in found:
        # Weights are published every five steps, and what is trained was begun a little before: the mean field knows neither.
        assert came[each.sampler, each.gate].steps == pytest.approx(each.reached["steps"], rel=0.1, abs=5)
    said = text(strategies.table(found, came, state.scenario, 0.5))
    assert "to a mean solve rate of 50%" in said
    assert "uniform ◂ this run drop and refill" in said
    assert said.count("1.00×") >= 3


def test_without_a_pool_there_is_nothing_to_choose_from():
    assert {each.sampler for each in strategies.strategies(taught(pool_prompts=0).scenario, 0.5)} == {"uniform"}


def test_a_target_that_is_not_reached_is_said_to_be_so():
    state = taught(steps=20)
    found = strategies.strategies(state.scenario, 0.95)
    assert {each.reached for each in found} == {None}
    assert "–" in text(strategies.table(found, {}, state.scenario, 0.95))


# Words


def test_where_the_bottleneck_flips_is_said():
    found = way(taught(steps=400))
    flip = found.course.flips.iloc[0]
    assert f"from step {flip.step:,} on {flip.becomes} binds, before that {flip.was}" in flips(found)
    assert "binds from first step to last" in flips(way(opened(SMALL)))


def test_the_cards_are_the_course_s_numbers_at_the_step_and_the_walked_block_s():
    state = taught(steps=40)
    found, simulated = way(state), walk_of(state)
    place = 12
    step = int(found.steps[place])
    said = text(way_words.cards(way_words.TEACH, found, simulated, step))
    assert f"Mean solve rate {found.at['solve_rate'][place]:.1%}" in said
    assert f"{simulated.blocks['solve_rate'].iloc[step]:.1%} simulated" in said
    assert f"at the start {found.at['solve_rate'][0]:.1%}" in said


def test_the_whole_run_is_split_compared_with_the_host_and_with_a_run_that_stands_still():
    found = way(grown(steps=100))
    said = text(way_words.whole(found, None))
    assert f"this run closed form 100 {found.whole.hours:.1f} h" in said
    assert f"${found.whole.usd:,.0f}" in said
    assert f"({found.whole.usd / found.whole.hosted_usd:.2f}×)" in said
    assert f"if nothing moved closed form 100 {found.whole_still.hours:.1f} h" in said
    assert "if nothing moved" not in text(way_words.whole(way(opened(SMALL)), None))


# The pages


@pytest.fixture(params=[Teach, Growth])
def page(request):
    return request.param()


def said(page):
    return text(page.status.value)


def holder(page, knob):
    return next(held for control, held in page.board.holders.items() if control.knob == knob)


def test_every_control_moves_its_knob_and_reset_brings_it_back(page):
    start = page.state
    for control, held in page.board.holders.items():
        if control.shape == "text" or not applies(control, start.scenario):
            continue
        held.index += 1 if held.index + 1 < len(held.options) else -1
        assert said(page) == "", control.knob
        assert value_of(page.state.scenario, control.knob) == meant(control, held.value)
        assert page.state != start
        page.board.again.click()
        assert page.state == start


@pytest.mark.parametrize(("kind", "names"), [(Teach, TEACH_NAMES), (Growth, GROWTH_NAMES)])
def test_each_figure_has_a_title_and_a_key_and_all_scrub_together(kind, names):
    page = kind()
    for place in (0, POINTS // 2, POINTS - 1):
        page.scrub.index = place
        found = page.figures()
        assert tuple(found) == names
        for figure in found.values():
            assert figure["layout"]["title"]["text"]
            assert figure["layout"]["meta"]["key"]
            for trace in figure["data"]:
                assert len(trace["x"]) == len(trace["y"]) or trace["type"] == "heatmap"
        assert page.plots._stamp == page.stamp


def test_the_place_along_the_run_stays_when_the_run_gets_longer(page):
    page.scrub.index = POINTS - 1
    holder(page, "training_steps").index -= 10
    assert page.step == page.state.scenario.training_steps - 1
    assert said(page) == ""


@pytest.mark.parametrize("sent", [{"index": 10_000}, {"index": "4"}, {"_options_labels": ["x"]}])
def test_what_no_page_can_send_is_refused_by_name(page, sent):
    for control in (page.scrub, page.seeds):
        control.set_state(sent)
        assert said(page).startswith(f"Refused: {control.description}")
    assert page.state.untouched


def test_a_text_that_is_no_histogram_is_refused_with_the_reason():
    page = Teach()
    holder(page, "solve_rate_histogram").value = "half of them"
    assert "must be 'rate: share'" in said(page)
    assert page.state.untouched
    holder(page, "solve_rate_histogram").value = "0.1: 0.5, 0.9: 0.5"
    assert said(page) == ""
    assert page.state.scenario.solve_rate_law == "histogram"


@pytest.mark.parametrize("key", [key for _, key in growth_words.names() if key])
def test_a_published_growth_sets_its_law_and_steps_and_is_drawn_beside(key):
    page = Growth()
    page.drifts.value = key
    run = measured_drift(key.removeprefix(growth_words.IN_TOKENS))
    if said(page):
        assert "must be" in said(page)  # those tokens do not fit that run
        assert page.drifts.value == ""
        return
    assert page.state.scenario.training_steps == run.steps[-1] + 1
    drawn = next(trace for trace in page.figures()["tail"]["data"] if trace["name"] == growth_words.title(key))
    assert len(drawn["x"]) == len(run.steps)
    if key.startswith(growth_words.IN_TOKENS):
        assert page.way.at["mean_response_tokens"][0] == pytest.approx(run.response_tokens[0], rel=1e-6)
    else:
        assert drawn["y"][0] == pytest.approx(page.state.scenario.mean_response_tokens)


def test_the_published_share_of_solved_prompts_is_drawn():
    page = Teach()
    page.against.value = "dapo-all-solved"
    drawn = page.figures()["outcomes"]["data"][-1]
    assert drawn["y"].tolist() == [0.0, 0.25, 0.4, 0.5, 0.57]
    assert teach_words.published("") is None


def test_at_rest_the_run_is_simulated_and_the_strategies_listed_and_a_move_takes_them_away(monkeypatch):
    monkeypatch.setattr(parts, "REST_S", 0.01)

    async def visit():
        page = Teach(taught(steps=30))
        page._begin()
        await asyncio.wait_for(page.rest.task, 120)
        assert isinstance(page.walked, Walked)
        assert page.walked.done
        assert "all runs done" in page.how.value
        assert len(page._came) == 8
        first = page.rest.task
        holder(page, "solve_rate_mean").index += 1
        assert page.walked is None
        assert "rlq-old" in page.ways.value
        assert page.rest.task is not first
        page.rest.stop()

    asyncio.run(visit())


def test_the_run_that_stands_still_has_neither_drift_nor_learning():
    still = steady(grown().scenario)
    assert (still.drift_law, still.learning_logit_per_step) == ("constant", 0.0)


def test_a_run_that_learns_all_there_is_ends_where_nothing_is_left(page):
    over = moved(page.state, solve_rate_mean=0.9, solve_rate_concentration=100.0, learning_logit_per_step=0.1)
    page.go(over)
    at = page.way.course.stalled_at
    assert 0 < at < over.scenario.training_steps
    assert f"By step {at:,} nearly every group is filtered" in text(page.verdict.value)
    assert page.scrub.options[-1][1] < at
    page.go(moved(over, solve_rate_mean=1.0))
    assert "the run goes no further" in text(page.whole.value)
    assert said(page) == ""
