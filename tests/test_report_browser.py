"""The pages in a real browser: sort, filter, open a report, and nothing of a student's runs."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_up_class import TITLES, made_up_class
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from test_report_pages import hostile_exhibits, hostile_row

from grader.report.write import write_reports
from grader.score.verdict import Scores, SubmissionScore

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None,
    reason="needs a browser that can be driven: apt-get install chromium chromium-driver",
)

SIZE = 600  # more than the table shows at once


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = str(BROWSER)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('browser')}",
    ):
        options.add_argument(argument)
    driver = Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the reports of a large class, and of one submission in which everything is hostile."""
    scores, exhibits = made_up_class(SIZE)
    hostile = hostile_row()
    rows = (hostile, *scores.submissions)
    kept = {hostile.submission: hostile_exhibits(), **dict(list(exhibits.items())[:4])}
    out = tmp_path_factory.mktemp("reports")
    write_reports(Scores(provenance={}, submissions=rows), kept, out, titles=TITLES)
    return out


@pytest.fixture
def index(browser: Chrome, reports: Path) -> Chrome:
    log_of(browser)
    browser.get((reports / "index.html").as_uri())
    return browser


def log_of(browser: Chrome) -> list[dict[str, object]]:
    """Return what the browser complained of since it was asked last."""
    return list(browser.get_log("browser"))  # type: ignore[no-untyped-call]


def column(browser: Chrome, number: int) -> list[str]:
    """Return the texts of a column of the rows that can be seen."""
    script = """return Array.from(document.querySelectorAll('#class tbody tr'))
        .filter(row => row.getClientRects().length).map(row => row.cells[arguments[0]].innerText)"""
    return list(browser.execute_script(script, number))


def header(browser: Chrome, name: str) -> int:
    names = [one.text for one in browser.find_elements(By.CSS_SELECTOR, "#class thead th")]
    return names.index(name)


def sort_by(browser: Chrome, name: str) -> str | None:
    """Press the button in a column's header with the keyboard, and return what the header says then."""
    cell = browser.find_elements(By.CSS_SELECTOR, "#class thead th")[header(browser, name)]
    cell.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    return cell.get_attribute("aria-sort")


def shown(browser: Chrome) -> str:
    return browser.find_element(By.ID, "shown").text


def rows_of() -> tuple[SubmissionScore, ...]:
    return (hostile_row(), *made_up_class(SIZE)[0].submissions)


def test_it_sorts_by_number_and_by_name_and_back(index: Chrome) -> None:
    totals = sorted((f"{row.total:g}" for row in rows_of() if row.total is not None), key=float)
    assert sort_by(index, "Total") == "descending"
    assert column(index, 3) == totals[::-1][:150]
    assert sort_by(index, "Total") == "ascending"
    assert column(index, 3) == totals[:150]
    assert (
        shown(index)
        == f"{SIZE + 1} of {SIZE + 1} submissions, the first 150 shown, sorted by total, ascending"
    )
    assert sort_by(index, "Recipe") == "ascending"
    recipes = column(index, 1)
    assert recipes[1:] == sorted(recipes[1:])
    marks = [
        one.get_attribute("aria-sort") for one in index.find_elements(By.CSS_SELECTOR, "#class thead th")
    ]
    assert marks.count("ascending") == 1
    assert marks.count(None) == len(marks) - 1


def test_what_is_open_comes_last_in_both_directions(index: Chrome) -> None:
    Select(index.find_element(By.ID, "recipe")).select_by_value("steep")
    for _ in range(2):
        sort_by(index, "Total")
        totals = column(index, 3)
        first = totals.index("—")
        assert set(totals[first:]) == {"—"}
        assert first > 0


def test_it_filters_by_text_status_recipe_and_flag_and_says_how_many_are_left(index: Chrome) -> None:
    rows = rows_of()
    text = index.find_element(By.ID, "text")
    text.send_keys("ADA steep")
    wanted = [row for row in rows if "ada" in row.student and row.recipe == "steep"]
    assert column(index, 0) == [row.student for row in wanted]
    assert shown(index) == f"{len(wanted)} of {SIZE + 1} submissions"
    text.clear()
    text.send_keys(" ")
    Select(index.find_element(By.ID, "status")).select_by_visible_text("rejected")
    assert set(column(index, 2)) == {"rejected"}
    assert len(column(index, 2)) == sum(row.status == "rejected" for row in rows)
    Select(index.find_element(By.ID, "recipe")).select_by_value("mixed_up")
    assert set(column(index, 1)) == {"mixed_up"}
    Select(index.find_element(By.ID, "status")).select_by_visible_text("all")
    index.find_element(By.ID, "flagged").click()
    assert len(column(index, 1)) == sum(row.recipe == "mixed_up" and bool(row.flags) for row in rows)
    text.send_keys("nobody")
    assert column(index, 0) == []
    assert shown(index) == f"0 of {SIZE + 1} submissions"
    assert not index.find_element(By.ID, "more").is_displayed()


def test_all_rows_can_be_asked_for(index: Chrome) -> None:
    assert len(column(index, 0)) == 150
    more = index.find_element(By.ID, "more")
    assert more.text == f"Show all {SIZE + 1}"
    more.send_keys(Keys.ENTER)
    assert len(column(index, 0)) == SIZE + 1
    assert index.switch_to.active_element.text == rows_of()[150].student


def test_a_name_leads_to_the_report_and_back(index: Chrome) -> None:
    index.find_element(By.ID, "text").send_keys("alan mixed_up")
    index.find_element(By.LINK_TEXT, "alan").send_keys(Keys.ENTER)
    assert index.title.startswith("alan: Accuracy stays")
    assert index.find_element(By.TAG_NAME, "h1").text == "alan"
    assert len(index.find_elements(By.CSS_SELECTOR, "figure svg[role=img]")) == 3
    assert index.find_elements(By.TAG_NAME, "script") == []
    index.back()
    assert index.title.startswith("The class")


@pytest.mark.parametrize("page", ["index", "hostile"])
def test_nothing_of_a_student_runs_or_loads(index: Chrome, reports: Path, page: str) -> None:
    if page == "hostile":
        links = index.find_elements(By.CSS_SELECTOR, "#class tbody a")
        index.get(str(links[0].get_attribute("href")))
        assert "<script>" in index.find_element(By.TAG_NAME, "h1").text
    assert log_of(index) == []  # neither a script that was stopped nor a file that is missing
    loaded = index.execute_script("return performance.getEntriesByType('resource').length")
    assert loaded == 0
    width = index.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert width <= 0


@pytest.mark.parametrize("page", ["index", "ada_steep", "hostile"])
def test_a_phone_needs_no_scrolling_to_the_side(index: Chrome, reports: Path, page: str) -> None:
    index.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        if page == "hostile":
            index.get(str(index.find_elements(By.CSS_SELECTOR, "#class tbody a")[0].get_attribute("href")))
        else:
            index.get((reports / f"{page}.html").as_uri())
        size = index.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert size == [390, 390]
    finally:
        index.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_is_readable_without_scripts(index: Chrome, reports: Path) -> None:
    index.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        index.get((reports / "index.html").as_uri())
        assert not index.find_element(By.ID, "controls").is_displayed()
        assert index.find_elements(By.CSS_SELECTOR, "#class thead button") == []
        assert index.find_elements(By.CSS_SELECTOR, "#class tbody tr")[-1].is_displayed()
    finally:
        index.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.slow
def test_colours_have_enough_contrast_in_light_and_dark(browser: Chrome, reports: Path) -> None:
    """WCAG 2.2, success criterion 1.4.3: 4.5 to 1 for text."""
    for page in ("ada_steep", "index", "barbara_blind"):
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            browser.get((reports / f"{page}.html").as_uri())
            looked, poor = browser.execute_script(CONTRAST)
            assert looked > 100
            assert poor == [], (page, scheme)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


CONTRAST = """
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = (c) => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
const poor = new Set();
let looked = 0;
for (const e of document.querySelectorAll('body *')) {
  if (!Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
  const style = getComputedStyle(e);
  const colour = e instanceof SVGElement ? style.fill : style.color;
  const [a, b] = [light(numbers(colour)), light(behind(e))].sort((x, y) => y - x);
  looked += 1;
  if ((a + 0.05) / (b + 0.05) < 4.5) poor.add(`${e.tagName} ${e.className.baseVal ?? e.className} ${e.textContent}`);
}
return [looked, Array.from(poor)];
"""
