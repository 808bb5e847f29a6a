"""The pages in a real browser: sort, filter, and open a report, without any content from a student's runs."""

from pathlib import Path

import pytest
from helpers.made_up_class import TITLES, made_up_class
from helpers.page_reader import log_of
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from test_report_pages import hostile_attachments, hostile_row

from grader.report.write import write_reports
from grader.score.verdict import Scores

SIZE = 600  # more than the table shows at first
HOSTILE = hostile_row()
ROWS = (HOSTILE, *made_up_class(SIZE)[0].submissions)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the reports of a large class, and of one submission with hostile content everywhere."""
    attachments = dict(list(made_up_class(SIZE)[1].items())[:4])
    attachments[HOSTILE.submission] = hostile_attachments()
    out = tmp_path_factory.mktemp("reports")
    write_reports(Scores(provenance={}, submissions=ROWS), attachments, out, titles=TITLES)
    return out


@pytest.fixture
def index(browser: Chrome, reports: Path) -> Chrome:
    log_of(browser)
    browser.get((reports / "index.html").as_uri())
    return browser


def column(browser: Chrome, number: int) -> list[str]:
    """Return the texts of a column in the visible rows."""
    script = """return Array.from(document.querySelectorAll('#class tbody tr'))
        .filter(row => row.getClientRects().length).map(row => row.cells[arguments[0]].innerText)"""
    return list(browser.execute_script(script, number))


def sort_by(browser: Chrome, number: int) -> str | None:
    """Press the button in a column's header with the keyboard, and return the header's new sort state."""
    cell = browser.find_elements(By.CSS_SELECTOR, "#class thead th")[number]
    cell.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    return cell.get_attribute("aria-sort")


def shown(browser: Chrome) -> str:
    return browser.find_element(By.ID, "shown").text


def test_it_sorts_by_number_and_by_name_with_open_ones_last(index: Chrome) -> None:
    totals = sorted((f"{row.total:g}" for row in ROWS if row.total is not None), key=float)
    assert sort_by(index, 3) == "descending"
    first = 50  # the rows that are visible before a click shows all rows
    assert column(index, 3) == totals[::-1][:first]
    assert sort_by(index, 3) == "ascending"
    assert column(index, 3) == totals[:first]
    assert shown(index).endswith("submissions, the first 50 shown, sorted by total, ascending")
    assert sort_by(index, 1) == "ascending"
    assert column(index, 1)[1:] == sorted(column(index, 1)[1:])
    Select(index.find_element(By.ID, "recipe")).select_by_value("steep")
    for _ in range(2):
        sort_by(index, 3)
        index.find_element(By.ID, "more").click()
        seen = column(index, 3)
        assert set(seen[seen.index("—") :]) == {"—"}
        assert seen[0] != "—"


def test_it_filters_by_text_status_recipe_and_flag_and_says_how_many_are_left(index: Chrome) -> None:
    text = index.find_element(By.ID, "text")
    text.send_keys("ADA steep")
    wanted = sorted(row.student for row in ROWS if "ada" in row.student and row.recipe == "steep")
    assert column(index, 0) == wanted
    assert shown(index) == f"{len(wanted)} of {SIZE + 1} submissions"
    text.clear()
    text.send_keys(" ")
    Select(index.find_element(By.ID, "status")).select_by_visible_text("rejected")
    index.find_element(By.ID, "more").click()
    assert column(index, 2) == ["rejected"] * sum(row.status == "rejected" for row in ROWS)
    Select(index.find_element(By.ID, "status")).select_by_visible_text("all")
    Select(index.find_element(By.ID, "recipe")).select_by_value("mixed_up")
    index.find_element(By.ID, "flagged").click()
    assert column(index, 1) == ["mixed_up"] * sum(row.recipe == "mixed_up" and bool(row.flags) for row in ROWS)
    text.send_keys("nobody")
    assert column(index, 0) == []


def test_all_rows_can_be_asked_for(index: Chrome) -> None:
    assert len(column(index, 0)) == 50
    index.find_element(By.ID, "more").send_keys(Keys.ENTER)
    students = column(index, 0)
    assert len(students) == SIZE + 1
    assert index.switch_to.active_element.text == students[50]


@pytest.mark.parametrize("page", ["index", "ada_steep", "hostile"])
def test_nothing_runs_or_loads_and_a_phone_needs_no_scrolling_to_the_side(
    index: Chrome, reports: Path, page: str
) -> None:
    index.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        link = index.find_elements(By.CSS_SELECTOR, "#class tbody a")[0].get_attribute("href")
        index.get(str(link) if page == "hostile" else (reports / f"{page}.html").as_uri())
        assert log_of(index) == []  # no blocked script and no missing file
        assert index.execute_script("return performance.getEntriesByType('resource').length") == 0
        assert index.execute_script("return [document.documentElement.scrollWidth, innerWidth]") == [390, 390]
    finally:
        index.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_is_readable_without_scripts(index: Chrome, reports: Path) -> None:
    index.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        index.get((reports / "index.html").as_uri())
        assert not index.find_element(By.ID, "controls").is_displayed()
        assert index.find_elements(By.CSS_SELECTOR, "#class tbody tr")[-1].is_displayed()
    finally:
        index.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
