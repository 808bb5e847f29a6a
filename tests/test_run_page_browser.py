"""A run's page in a real browser: hover, zoom, change the axis, and copy a value, also without a mouse."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.made_up_class import HOSTILE
from helpers.made_up_runs import make_run, write_log
from helpers.page_reader import log_of
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from harness.page.run_page import write_run_page
from harness.run.metrics_log import read_metrics_log
from harness.run.signals import number_text
from harness.submission.log_values import LogValues

EXPLODES = 12
LAST = 49  # the last step; a step is some pixels wide
WIDE, PHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of a run that explodes and of a run that learns. The page of the second shows both."""
    work = tmp_path_factory.mktemp("runs")
    found = {
        "broken": make_run(work / "broken", explode_at=EXPLODES, steps_per_epoch=10),
        "fixed": make_run(work / "fixed", run="fixed", steps_per_epoch=10),
    }
    write_run_page(found["fixed"], title="Two runs", compare_with=found["broken"])
    return found


@pytest.fixture(scope="module")
def logs(runs: dict[str, Path]) -> dict[str, LogValues]:
    return {name: LogValues(read_metrics_log(folder / "metrics.log")) for name, folder in runs.items()}


@pytest.fixture
def page(browser: Chrome, runs: dict[str, Path]) -> Iterator[Chrome]:
    log_of(browser)
    show(browser)
    browser.get((runs["fixed"] / "run.html").as_uri())
    yield browser
    assert log_of(browser) == []  # no blocked content and no script error


def show(browser: Chrome, size: tuple[int, int] = WIDE, *, dark: bool = False, media: str = "screen") -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": scheme})


def find(page: Chrome, chart: str, part: str) -> WebElement:
    return page.find_element(By.CSS_SELECTOR, f"#{chart} {part}")


def move(page: Chrome, chart: str, across: float, down: float) -> ActionChains:
    """Move the mouse to a share of the width and the height of a chart's plot, and return the mouse."""
    plot = find(page, chart, ".u-over")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    width, height = plot.size["width"], plot.size["height"]
    mouse = ActionChains(page, duration=0)
    mouse.move_to_element_with_offset(plot, round((across - 0.5) * (width - 1)), round((down - 0.5) * (height - 1)))
    mouse.perform()
    return mouse


def drawn(page: Chrome) -> None:
    """Wait until the page has finished drawing."""
    page.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")


def hovered(page: Chrome, chart: str) -> list[str]:
    """Return the lines of the box that shows the values under the mouse."""
    return find(page, chart, ".tip").text.split("\n")


def dots(page: Chrome, chart: str) -> list[float]:
    """Return the distance of each line from the upper edge of the plot at the mouse, as a share of its height."""
    script = """const plot = document.querySelector(`#${arguments[0]} .u-over`).getBoundingClientRect();
        return Array.from(document.querySelectorAll(`#${arguments[0]} .u-cursor-pt:not(.u-off)`), point => {
            const at = point.getBoundingClientRect();
            return ((at.top + at.bottom) / 2 - plot.top) / plot.height; })"""
    return [float(share) for share in page.execute_script(script, chart)]


def click_dot(page: Chrome, chart: str, across: float, dot: int) -> None:
    """Click a point of a line at this share of the width. dot: the index of the line, from the lowest layer."""
    move(page, chart, across, 0.5)
    move(page, chart, across, dots(page, chart)[dot]).click().perform()


def copied(page: Chrome) -> tuple[str, str]:
    """Return the text of the note, and the line in it."""
    drawn(page)
    note = page.find_element(By.CLASS_NAME, "copied")
    return note.text, str(note.find_element(By.TAG_NAME, "input").get_property("value"))


def clipboard(page: Chrome) -> str:
    page.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    return str(page.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])"))


def step(number: int) -> float:
    """Return the position of a step as a share of the width."""
    return number / LAST


@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_every_chart_is_live_on_any_screen(page: Chrome, size: tuple[int, int], dark: bool) -> None:
    show(page, size, dark=dark)
    page.refresh()
    assert len(page.find_elements(By.CLASS_NAME, "is-live")) == len(page.find_elements(By.TAG_NAME, "figure")) > 8
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert page.execute_script("return document.documentElement.scrollWidth") <= size[0]
    for plot in page.find_elements(By.CLASS_NAME, "host"):
        assert 190 <= plot.size["height"] <= 400 and plot.size["width"] <= size[0]


def test_hovering_shows_the_values_of_all_lines_there(page: Chrome, logs: dict[str, LogValues]) -> None:
    for place, broken in ((5, number_text(logs["broken"].value("loss", 5, None))), (20, "NaN")):
        move(page, "chart-loss", step(place), 0.9)
        fixed = number_text(logs["fixed"].value("loss", place, None))
        assert hovered(page, "chart-loss") == [f"step {place}", "broken", broken, "your run", fixed]
    move(page, "activation-mean", step(5), 0.9)
    values = [
        number_text(logs[run].value(f"activations.{layer}.mean", 5, None))
        for layer in ("first", "last")
        for run in ("broken", "fixed")
    ]
    assert hovered(page, "activation-mean")[2::2] == values
    assert not find(page, "chart-loss", ".tip").is_displayed()


@pytest.mark.parametrize(
    ("chart", "across", "dot", "run", "signal", "place"),
    [
        ("chart-loss", step(7), 0, "fixed", "loss", 7),
        ("chart-loss", step(7), 1, "broken", "loss", 7),
        ("chart-val-accuracy", 0.5, 1, "broken", "val_accuracy", 2),
        ("activation-var", step(40), 1, "fixed", "activations.last.var", 40),
    ],
)
def test_a_click_at_a_point_copies_the_line_that_harness_show_prints(
    page: Chrome, logs: dict[str, LogValues], chart: str, across: float, dot: int, run: str, signal: str, place: int
) -> None:
    epoch = signal.startswith("val_")
    [line] = logs[run].evidence(run, None if epoch else place, place if epoch else None, [signal])
    click_dot(page, chart, across, dot)
    assert copied(page) == ("Copied:", line)
    assert clipboard(page) == line


def test_a_value_that_is_not_finite_is_copied_at_the_upper_edge(page: Chrome) -> None:
    move(page, "chart-loss", step(20), 0.02).click().perform()
    assert copied(page) == ("Copied:", "  - {run: broken, signal: loss, step: 20, value: NaN}")
    move(page, "chart-val-loss", 0.25, 0.02).click().perform()
    assert copied(page)[1] == "  - {run: broken, signal: val_loss, epoch: 1, value: NaN}"


def test_a_click_away_from_all_points_copies_nothing(page: Chrome) -> None:
    move(page, "chart-val-accuracy", 0.62, 0.5).click().perform()
    drawn(page)
    assert not page.find_element(By.CLASS_NAME, "copied").is_displayed()


def test_where_lines_coincide_each_further_click_takes_the_next_one(page: Chrome) -> None:
    taken = []
    for _ in range(3):
        click_dot(page, "chart-grad-zero-fraction", 0.5, 0)
        taken.append(copied(page)[1].partition(",")[0])
        page.execute_script("document.activeElement.blur()")
        move(page, "chart-loss", 0.5, 0.5)
    assert taken[0] == taken[2] != taken[1]
    assert set(taken) == {"  - {run: broken", "  - {run: fixed"}


@pytest.mark.parametrize("command_works", [True, False])
def test_without_a_clipboard_the_line_is_copied_or_selected(page: Chrome, command_works: bool) -> None:
    page.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    if not command_works:
        page.execute_script("document.execCommand = () => false")
    click_dot(page, "chart-loss", step(7), 0)
    said, line = copied(page)
    assert said == ("Copied:" if command_works else "Press Ctrl-C to copy:")
    assert line.startswith("  - {run: fixed, signal: loss, step: 7, value: ")
    focused = page.switch_to.active_element
    if command_works:
        assert focused.get_attribute("class") == "host"
    else:
        chosen = page.execute_script("const f = arguments[0]; return [f.selectionStart, f.selectionEnd]", focused)
        assert (focused.get_property("value"), chosen) == (line, [0, len(line)])


def test_the_axis_is_linear_or_log(page: Chrome, logs: dict[str, LogValues]) -> None:
    toggle = find(page, "chart-loss", "button")

    def shares() -> tuple[str | None, list[float]]:
        move(page, "chart-loss", step(11), 0.5)
        return toggle.get_attribute("aria-pressed"), dots(page, "chart-loss")

    pressed, (fixed, broken) = shares()
    assert pressed == "true"
    assert broken < 0.2 < 0.8 < fixed
    toggle.send_keys(Keys.SPACE)
    pressed, (fixed, broken) = shares()
    greatest = logs["broken"].value("loss", 11, None)
    top = next(n for power in (1e17, 1e18) for n in (power, 2 * power, 5 * power) if n >= greatest)
    assert pressed == "false"
    assert fixed == pytest.approx(1, abs=0.02)
    assert broken == pytest.approx(1 - greatest / top, abs=0.25)
    toggle.send_keys(Keys.SPACE)
    assert shares()[0] == "true"


def test_dragging_zooms_and_a_double_click_shows_all_again(page: Chrome) -> None:
    def ends() -> list[str]:
        found = []
        for across in (step(2), step(47)):
            move(page, "chart-loss", across, 0.5)
            found.append(hovered(page, "chart-loss")[0])
        return found

    assert ends() == ["step 2", "step 47"]
    move(page, "chart-loss", step(10), 0.5).click_and_hold().perform()
    move(page, "chart-loss", step(30), 0.5).release().perform()
    drawn(page)
    assert ends() == ["step 11", "step 29"]
    assert not page.find_element(By.CLASS_NAME, "copied").is_displayed()
    find(page, "chart-loss", "button").click()  # a change of the axis keeps the zoom
    drawn(page)
    assert ends() == ["step 11", "step 29"]
    move(page, "chart-loss", 0.5, 0.9).double_click().perform()
    drawn(page)
    assert ends() == ["step 2", "step 47"]


def test_the_keyboard_does_all_that_the_mouse_does(page: Chrome, logs: dict[str, LogValues]) -> None:
    plot = find(page, "chart-loss", ".host")
    plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert page.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert hovered(page, "chart-loss")[0] == "step 1"
    plot.send_keys(Keys.ENTER)
    [line] = logs["fixed"].evidence("fixed", 1, None, signals=["loss"])
    assert copied(page) == ("Copied:", line)
    plot.send_keys(Keys.TAB)
    assert page.switch_to.active_element == find(page, "chart-lr", "button")
    assert not find(page, "chart-loss", ".tip").is_displayed()
    find(page, "layer-1", ".host").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ENTER)
    [line] = logs["fixed"].evidence("fixed", 0, None, signals=["grad_norm_by_parameter.3.weight"])
    assert copied(page) == ("Copied:", line)


def test_paper_and_readers_without_script_get_the_static_picture(page: Chrome, runs: dict[str, Path]) -> None:
    picture, live = find(page, "chart-loss", ".plot"), find(page, "chart-loss", ".live")
    assert picture.size["width"] == 1 and live.is_displayed()
    width = live.size["width"]
    show(page, media="print")
    assert picture.size["width"] > 300 and not live.is_displayed()
    show(page)
    drawn(page)
    assert find(page, "chart-loss", "canvas").size["width"] == width
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.get((runs["fixed"] / "run.html").as_uri())
        assert find(page, "chart-loss", ".plot").size["width"] > 300
        assert page.find_elements(By.CLASS_NAME, "live") == []
    finally:
        page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_colours_follow_the_theme_and_the_width_follows_the_window(page: Chrome) -> None:
    script = "const c = document.querySelector('#chart-loss canvas'); return [c.toDataURL(), c.width]"
    bright, _ = page.execute_script(script)
    show(page, dark=True)
    drawn(page)
    assert page.execute_script(script)[0] != bright
    show(page, PHONE)
    drawn(page)
    drawn(page)
    assert page.execute_script(script)[1] < PHONE[0]


def strange_records() -> list[dict[str, Any]]:
    """Return a log with zeros, huge and tiny values, gaps, one epoch, and a signal without finite values."""
    losses = [1e-300, 1e300, 0.0, math.nan, 5.0, None, -1.0, math.inf]
    batches = [
        {
            "step": index, "epoch": 0, "loss": loss, "lr": 0.0, "grad_norm": math.nan, "grad_mean": {},
            "grad_norm_by_parameter": {"1.weight": 0.0}, "grad_zero_fraction": 1.0, "stale_grad_ratio": None,
            "activations": {"first": None, "last": {"mean": 1.0, "var": 1.0 + index * 1e-15}},
        }
        for index, loss in enumerate(losses)
    ]  # fmt: skip
    return [*batches, {"epoch": 0, "val_loss": math.inf, "val_accuracy": 0.5, "eval_buffer_change": 0.0}]


def test_strange_values_are_drawn_on_both_axes(page: Chrome, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    write_log(folder, strange_records())
    page.get(write_run_page(folder, title="Strange").as_uri())
    figures = page.find_elements(By.TAG_NAME, "figure")
    assert len(page.find_elements(By.CLASS_NAME, "is-live")) == len(figures) > 5
    for _ in range(2):
        for chart in (str(figure.get_attribute("id")) for figure in figures):
            move(page, chart, 0.5, 0.5)
            assert len(hovered(page, chart)) > 1
            move(page, chart, 0.1, 0.5).click_and_hold().perform()
            move(page, chart, 0.4, 0.5).release().perform()
            find(page, chart, ".host").send_keys(Keys.ESCAPE, Keys.ARROW_LEFT, Keys.ENTER)
        for toggle in page.find_elements(By.CSS_SELECTOR, ".tools button"):
            toggle.click()
        drawn(page)


def test_hostile_names_are_text(page: Chrome, tmp_path: Path) -> None:
    broken = make_run(tmp_path / "broken", parameters=(f"{HOSTILE}.weight", "a\"b'.<i>"))
    page.get(write_run_page(make_run(tmp_path / "run", run="fixed"), title=HOSTILE, compare_with=broken).as_uri())
    assert len(page.find_elements(By.CLASS_NAME, "is-live")) == len(page.find_elements(By.TAG_NAME, "figure"))
    click_dot(page, "layer-0", 0.5, 0)
    assert f"grad_norm_by_parameter.{HOSTILE}.weight, step: " in copied(page)[1]
    strangers = "img:not([src^='data:']), main i:not(.tip i), main script"
    assert page.find_elements(By.CSS_SELECTOR, strangers) == []
