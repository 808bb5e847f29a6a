"""The page of `harness serve` in a real browser: from the queue to the explanation, by the keyboard, on a phone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe  # type: ignore[import-untyped]
from helpers.made_up_runs import FIXED, make_workspace
from helpers.page_reader import log_of
from helpers.serving import practising
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from harness.practice.server import PracticeServer
from harness.recipes.catalogue import SUITE
from harness.workspace.progress import progress_of

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
WIDE, PHONE = (1280, 900), (390, 844)


@pytest.fixture
def page(browser: Chrome, tmp_path: Path) -> Iterator[tuple[Chrome, PracticeServer]]:
    """Show the queue of a student who has begun huge_lr."""
    make_workspace(tmp_path / "work")
    with practising(tmp_path / "work") as server:
        show(browser)
        log_of(browser)
        browser.get(server.address)
        wait_for(browser, "#queue-items a")
        yield browser, server
        browser.execute_script("document.getElementById('source').value = ''; onbeforeunload = null")
        log_of(browser)
        browser.get("about:blank")


def show(browser: Chrome, size: tuple[int, int] = WIDE, *, dark: bool = False) -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def wait_for(browser: Chrome, selector: str, seconds: float = 30) -> None:
    """Wait until an element is visible."""
    WebDriverWait(browser, seconds).until(
        lambda b: any(one.is_displayed() for one in b.find_elements(By.CSS_SELECTOR, selector)), selector
    )


def open_case(browser: Chrome, name: str) -> None:
    browser.find_element(By.LINK_TEXT, name).send_keys(Keys.ENTER)
    WebDriverWait(browser, 30).until(lambda b: b.find_element(By.ID, "heading").text == name)
    wait_for(browser, "#verify, #start")


def text_of(browser: Chrome, identifier: str) -> str:
    return str(browser.find_element(By.ID, identifier).text)


def violations(browser: Chrome) -> list[str]:
    """Return the violations that axe finds on the page as it is, in light and in dark."""
    lines = []
    for dark in (False, True):
        show(browser, dark=dark)
        found: dict[str, Any] = Axe().run(browser, options=RULES)
        assert len(found["passes"]) > 5, "axe has looked at the page"
        lines += [f"{one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"][:3]]
    show(browser)
    return lines


def test_the_address_hides_its_secret_and_a_reload_needs_none(page: tuple[Chrome, PracticeServer]) -> None:
    browser, server = page
    assert server.token not in browser.current_url
    browser.refresh()
    wait_for(browser, "#queue-items a")
    assert log_of(browser) == []


def test_the_editor_works_by_the_keyboard_and_can_be_left(page: tuple[Chrome, PracticeServer]) -> None:
    browser, server = page
    open_case(browser, "huge_lr")
    source = browser.find_element(By.ID, "source")
    assert source.get_property("value") == FIXED
    browser.execute_script("arguments[0].focus(); arguments[0].setSelectionRange(0, 0)", source)
    source.send_keys("if x:", Keys.ENTER, "y", Keys.ENTER, Keys.TAB, "z", Keys.SHIFT, Keys.TAB)
    assert str(source.get_property("value")).startswith("if x:\n    y\n    zdef build_optimizer")
    assert browser.switch_to.active_element == source
    source.send_keys(Keys.CONTROL, "s")
    WebDriverWait(browser, 20).until(lambda b: text_of(b, "saved") == "Saved")
    assert (server.work / "huge_lr/experiment.py").read_text() == source.get_property("value")
    source.send_keys(Keys.ESCAPE, Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("id") == "save"
    ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    assert browser.switch_to.active_element == source
    assert log_of(browser) == []


def test_another_edit_on_the_disk_is_never_lost(page: tuple[Chrome, PracticeServer]) -> None:
    browser, server = page
    path = server.work / "huge_lr/experiment.py"
    open_case(browser, "huge_lr")
    source = browser.find_element(By.ID, "source")
    source.send_keys("# typed")
    path.write_text("# from another editor\n")
    browser.find_element(By.ID, "save").click()
    wait_for(browser, "#conflict")
    assert "has changed on the disk" in text_of(browser, "conflict-text")
    assert path.read_text() == "# from another editor\n"
    assert violations(browser) == []
    browser.find_element(By.ID, "keep").click()
    WebDriverWait(browser, 20).until(lambda b: not b.find_element(By.ID, "conflict").is_displayed())
    assert path.read_text() == source.get_property("value") == FIXED + "# typed"
    path.write_text("# again\n")
    source.send_keys("# more")
    browser.find_element(By.ID, "save").click()
    wait_for(browser, "#conflict")
    browser.find_element(By.ID, "load").click()
    WebDriverWait(browser, 20).until(lambda b: source.get_property("value") == "# again\n")
    assert path.read_text() == "# again\n"


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_no_screen_needs_scrolling_to_the_side(page: tuple[Chrome, PracticeServer], size: tuple[int, int]) -> None:
    browser, _ = page
    show(browser, size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    open_case(browser, "huge_lr")
    wait_for(browser, "#charts figure")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert browser.execute_script("return performance.getEntriesByType('resource').map(e => e.initiatorType)") == [
        "fetch"
    ] * len(browser.execute_script("return performance.getEntriesByType('resource')"))
    assert log_of(browser) == []


def test_queue_hints_and_question_have_no_violation(page: tuple[Chrome, PracticeServer]) -> None:
    browser, server = page
    assert violations(browser) == []
    open_case(browser, "huge_lr")
    browser.find_element(By.ID, "hint").send_keys(Keys.ENTER)
    wait_for(browser, "#hints li")
    assert " ".join(text_of(browser, "hints").split()).endswith(
        " ".join(SUITE.find("huge_lr").hints[0].replace("`", "").split())
    )
    assert progress_of(server.work / "huge_lr").hints == 1
    browser.find_element(By.ID, "reveal").send_keys(Keys.ENTER)
    wait_for(browser, "#ask")
    assert "Your submission will say that you saw it." in text_of(browser, "question")
    assert violations(browser) == []
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not progress_of(server.work / "huge_lr").revealed


@pytest.mark.slow
def test_a_case_goes_from_the_queue_to_the_explanation(page: tuple[Chrome, PracticeServer]) -> None:
    browser, server = page
    name = next(
        one.text for one in browser.find_elements(By.CSS_SELECTOR, "#queue-items a") if one.text.startswith("case-")
    )
    open_case(browser, name)
    assert violations(browser) == []
    browser.find_element(By.ID, "start").send_keys(Keys.ENTER)
    wait_for(browser, "#verify", 200)
    wait_for(browser, "#charts figure")
    source = browser.find_element(By.ID, "source")
    case = SUITE.find(name)
    assert source.get_property("value") == case.broken_source()
    source.send_keys(Keys.CONTROL, "a")
    browser.execute_cdp_cmd("Input.insertText", {"text": case.healthy_source()})
    source.send_keys(Keys.CONTROL, Keys.ENTER)
    wait_for(browser, "#stop")
    WebDriverWait(browser, 300).until(lambda b: text_of(b, "verdict-text").startswith("Attempt 1: Fixed"))
    assert text_of(browser, "history").count("fixed") == 1
    assert [one.text.split("\n")[0] for one in browser.find_elements(By.CSS_SELECTOR, "#charts figure")] == [
        "Training loss", "Gradient norm", "Validation loss", "Validation accuracy",
    ]  # fmt: skip
    wait_for(browser, "#solution h3")  # without a question: the case is solved
    assert text_of(browser, "solution").startswith(f"The cause: {case.causes[0]}, ")
    assert "How to find it" in text_of(browser, "solution")
    assert text_of(browser, "claim-says") == f"Solved: {', '.join(case.causes)}"
    assert not browser.find_element(By.ID, "claim").is_displayed()
    assert not progress_of(server.work / name).revealed
    for part in browser.find_elements(By.CSS_SELECTOR, "#desk summary"):
        if part.is_displayed():
            part.send_keys(Keys.ENTER)
    assert violations(browser) == []
    assert log_of(browser) == []
