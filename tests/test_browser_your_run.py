"""The page "your run" as a visitor has it: in Chromium, without network, against the running server."""

from pathlib import Path

import pytest
from log_shapes import SHAPES, as_console, as_csv, as_json_lines, prime_orchestrator, prime_trainer
from test_browser_explorer import alert, choose, numbers, squeezed, unfold
from test_explorer import text

from rlqueue.app import your_run_words as words
from rlqueue.app.drop import LARGEST
from rlqueue.app.your_run import stamp
from rlqueue.app.your_run_figures import figures
from rlqueue.app.your_run_found import EXAMPLE, Given, added, found

pytestmark = pytest.mark.browser

PAGE = "voila/render/your_run.ipynb"
CONFIGS = Path(__file__).parent / "configs"
DRAWN = """name => document.querySelector(`figure[data-plot=${name}] .rlq-canvas`).data.map(
    ({x, y}) => [x, y].map(values => values && Array.from(values, each => Number.isNaN(each) ? null : each)))"""
READY = """([name, traces]) =>
    document.querySelector(`figure[data-plot=${name}] .rlq-canvas`).data?.length === traces"""
DROP = """files => {
    const carried = new DataTransfer();
    for (const [name, content] of files) carried.items.add(new File([content], name));
    document.querySelector('.rlq-drop label').dispatchEvent(new DragEvent('drop', {dataTransfer: carried, bubbles: true}));
}"""
TOO_WIDE = """() => [...document.querySelectorAll('.rlq-yourrun *')].filter(each => {
    const box = each.getBoundingClientRect(), style = getComputedStyle(each);
    const cut = each.clientWidth && style.overflowX !== 'visible' && each.scrollWidth > each.clientWidth + 1;
    return box.width > 2 && !each.closest('svg, select, input, textarea, .rlq-canvas') && (box.right > innerWidth + 1 || cut); })
    .map(each => each.className + ': ' + each.textContent.slice(0, 40))"""


def give(here, *files):
    here.page.set_input_files(".rlq-drop input", [str(file) for file in files])


def rested(here, given):
    """Wait for the page to show these files; what it should show."""
    wanted = found(given)
    here.page.wait_for_selector(f'.rlq-plots[data-stamp="{stamp(wanted)}"]', timeout=30_000)
    return wanted


def shows(here, wanted):
    for name, figure in figures(wanted).items():
        if not figure["data"]:
            assert not here.page.locator(f"figure[data-plot={name}]").is_visible()
            continue
        # A figure that was hidden is drawn when it has a size, a moment after the stamp.
        here.page.wait_for_function(READY, arg=[name, len(figure["data"])])
        for (x, y), trace in zip(here.page.evaluate(DRAWN, name), figure["data"], strict=True):
            for values, key in ((x, "x"), (y, "y")):
                expected = numbers(trace.get(key))
                assert values == pytest.approx([None if each != each else each for each in expected])  # noqa: PLR0124
    for part, selector in ((words.cards, ".rlq-cards"), (words.moves, ".rlq-moves-table tbody")):
        if part(wanted):
            assert squeezed(here.page.locator(selector).inner_text()) in squeezed(text(part(wanted)))
    assert squeezed(here.page.locator(".rlq-verdict[role=status]").inner_text()) in squeezed(
        text(words.verdict(wanted))
    )


def test_the_page_opens_with_the_example_drawn(visit, explorer):
    here = visit(explorer, path=PAGE)
    assert "There was an error when executing cell" not in here.page.content()
    assert here.page.locator("h1").inner_text() == "Your run"
    shows(here, rested(here, found_example()))
    assert here.page.locator("figure[data-plot=times] .bars path").count() > 30


def found_example():
    from rlqueue.app.your_run_found import example

    return example()


def test_chosen_files_are_read_together_and_a_choice_completes_them(visit, explorer, tmp_path):
    here = visit(explorer, path=PAGE)
    files = {"trainer.jsonl": as_json_lines(prime_trainer), "orchestrator.csv": as_csv(prime_orchestrator)}
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    config = CONFIGS / "prime_rl_head.toml"
    give(here, *(tmp_path / name for name in files), config)
    given = Given()
    for name, content in files.items():
        given = added(given, name, content.encode())
    given = added(given, config.name, config.read_bytes())
    shows(here, rested(here, given))
    choose(here, "LLM", "glm-5")
    unfold(here, "Values read from the log")
    table = here.page.locator(".rlq-origins").first
    assert "time/wait_for_batch" in table.inner_text()
    unfold(here, "Values read from the configuration")
    here.page.locator("code", has_text="deployment.num_train_nodes").first.wait_for(state="visible")
    assert alert(here).count() == 0


def test_a_file_dropped_on_the_field_is_read_and_one_that_is_no_run_is_refused(visit, explorer):
    here = visit(explorer, path=PAGE)
    here.page.evaluate(DROP, [["verl.log", as_console("verl")]])
    given = added(Given(), "verl.log", as_console("verl").encode())
    shows(here, rested(here, given))
    assert "timing_s/gen reads like generation time." in here.page.locator(".rlq-traps").inner_text()
    here.page.evaluate(DROP, [["poem.txt", "roses are red\n"]])
    alert(here).wait_for(timeout=10_000)
    assert "no metric of a known framework" in alert(here).inner_text()
    shows(here, rested(here, given))
    here.page.get_by_role("button", name="Clear all").click()
    rested(here, found_example())
    assert alert(here).count() == 0


def test_too_many_or_too_large_files_are_refused_before_anything_is_sent(visit, explorer, tmp_path):
    here = visit(explorer, path=PAGE)
    large = tmp_path / "large.log"
    with large.open("wb") as file:
        file.truncate(LARGEST + 1)
    sent = []
    here.page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(len(frame))))
    give(here, large)
    alert(here).wait_for(timeout=10_000)
    assert "must be at most 64 MB here" in alert(here).inner_text()
    assert sum(sent) < 100_000
    here.page.evaluate(DROP, [[f"{number}.log", "x"] for number in range(5)])
    here.page.wait_for_function(
        "() => document.querySelector('.rlq-status [role=alert]')?.textContent.includes('5 files at once')"
    )
    here.page.evaluate(DROP, [["verl.log", as_console("verl")]])
    rested(here, added(Given(), "verl.log", as_console("verl").encode()))


def test_a_log_larger_than_a_message_may_be_arrives_whole(visit, explorer, tmp_path):
    # A websocket message ends at 10 MB; the page sends pieces.
    here = visit(explorer, path=PAGE)
    content = "(AgentLoopWorker pid=1) INFO request finished with 1234 tokens\n" * 400_000 + as_console("verl")
    file = tmp_path / "long.log"
    file.write_text(content, encoding="utf-8")
    assert file.stat().st_size > 24e6
    give(here, file)
    here.page.wait_for_selector('.rlq-plots[data-stamp="long.log | "]', timeout=60_000)
    shows(here, found(added(Given(), "long.log", as_console("verl").encode())))


def test_pasted_lines_are_read_when_the_field_is_left(visit, explorer):
    here = visit(explorer, path=PAGE)
    here.page.locator(".rlq-paste textarea").fill(as_console("slime"))
    here.page.locator("h1").click()
    given = added(Given(), "pasted 1", as_console("slime").encode())
    shows(here, rested(here, given))
    assert here.page.locator(".rlq-paste textarea").input_value() == ""


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(visit, explorer, tmp_path, width):
    here = visit(explorer, path=PAGE, width=width)
    log = tmp_path / "verl.log"
    log.write_text(as_json_lines(SHAPES["verl"][1]), encoding="utf-8")
    give(here, log, CONFIGS / "verl_fully_async.sh")
    here.page.wait_for_selector(".rlq-moves-table")
    unfold(here, "Values read from the log")
    here.page.locator(".rlq-origins").first.wait_for(state="visible")
    assert here.page.evaluate(TOO_WIDE) == []


def test_the_field_is_reached_and_opened_by_keyboard(visit, explorer):
    here = visit(explorer, path=PAGE)
    here.page.locator(".rlq-drop input").focus()
    with here.page.expect_file_chooser() as chooser:
        here.page.keyboard.press("Space")
    assert chooser.value.is_multiple()
    assert EXAMPLE in here.plots.get_attribute("data-stamp")
