"""The review in a real browser: only with the keyboard, on a phone, in light and dark, with hostile reports."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.page_reader import log_of
from helpers.reviewing import reviewing
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.wait import WebDriverWait

from grader.course.decisions import load_decisions
from grader.course.review_page import ReviewServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReviewServer]:
    with reviewing(tmp_path / "reports") as server:
        yield server


def press(browser: Chrome, *keys: str) -> str:
    """Press keys at the focus. The last key leads to another page. Return the heading of that page."""
    with arriving(browser):
        for key in keys:
            browser.switch_to.active_element.send_keys(key)
    return browser.find_element(By.TAG_NAME, "h1").text


@contextmanager
def arriving(browser: Chrome) -> Iterator[None]:
    """Wait for the next page, to which the block leads."""
    before = browser.find_element(By.TAG_NAME, "html")
    yield
    WebDriverWait(browser, 20).until(staleness_of(before))


def test_a_queue_is_decided_by_the_keyboard_alone(browser: Chrome, server: ReviewServer) -> None:
    browser.get(server.address)
    log_of(browser)
    ada = press(browser, "j")
    assert ada == "ada: huge_lr"
    bob = press(browser, Keys.ARROW_RIGHT)
    assert (bob, press(browser, "k")) == ("bob: huge_lr", ada)
    assert press(browser, "a") == bob
    assert browser.find_element(By.CLASS_NAME, "saved").text.splitlines()[0].endswith("ada: 12 of 12, decided.")
    assert press(browser, "u") == ada
    # While somebody writes, keys are letters, not commands.
    browser.switch_to.active_element.send_keys("p", "9.5", Keys.ESCAPE, "c", "a rjk")
    assert press(browser, Keys.CONTROL + Keys.ENTER) == bob
    assert press(browser, "p", "1", Keys.TAB, "Half.", Keys.ESCAPE, "p", Keys.ENTER) not in (ada, bob)
    # The last submission was not judged, so there is no item to accept or reject.
    assert not browser.find_elements(By.ID, "reject")
    assert press(browser, "p", "0", Keys.TAB, "No archive.", Keys.ESCAPE, "p", Keys.ENTER) == "Open items"
    decisions = load_decisions(server.out)
    assert [(one.points, one.total) for one in decisions] == [
        (12, None),
        (None, None),
        (9.5, None),
        (1, None),
        (None, 0),
    ]
    assert [one.comment for one in decisions[1:4]] == ["Undone.", "a rjk", "Half."]
    assert "There is no open item." in browser.find_element(By.TAG_NAME, "main").text
    assert log_of(browser) == []


def test_leaving_a_comment_unsaved_is_asked_about_and_a_refusal_keeps_it(browser: Chrome, server: ReviewServer) -> None:
    browser.get(server.address)
    press(browser, "j")
    assert not asks_before_leaving(browser)
    browser.switch_to.active_element.send_keys("c")
    browser.switch_to.active_element.send_keys("Not yet.", Keys.ESCAPE)
    assert asks_before_leaving(browser)
    assert press(browser, "p", "77", Keys.ENTER) == "ada: huge_lr"
    assert "from 0 to 12" in browser.find_element(By.CLASS_NAME, "hard").text
    assert browser.find_element(By.ID, "comment").get_attribute("value") == "Not yet."
    log_of(browser)


def asks_before_leaving(browser: Chrome) -> bool:
    """Return whether the page asks before it closes. The driver itself answers the question with yes."""
    script = "const e = new Event('beforeunload', {cancelable: true}); return !window.dispatchEvent(e)"
    return bool(browser.execute_script(script))


def test_nothing_runs_or_loads_and_a_phone_needs_no_scrolling_to_the_side(
    browser: Chrome, server: ReviewServer
) -> None:
    browser.get(server.address)
    addresses = [str(one.get_attribute("href")) for one in browser.find_elements(By.CSS_SELECTOR, "#rows a")]
    log_of(browser)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        for address in (server.address, f"{server.address}?all=1", *addresses):
            browser.get(address)
            assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
            assert browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]") == [390, 390]
            assert log_of(browser) == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_works_without_scripts(browser: Chrome, server: ReviewServer) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(server.address)
        for button in ("next", "accept"):
            with arriving(browser):
                browser.find_element(By.ID, button).click()
        assert "12 of 12" in browser.find_element(By.CLASS_NAME, "saved").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert [one.points for one in load_decisions(server.out)] == [12]
