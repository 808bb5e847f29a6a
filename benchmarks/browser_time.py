"""How long a browser takes with a page of the reports: until it can be read, and to sort its table."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from benchmarks.timing import BenchmarkError, Row

# Two frames after an event, what it changed has been laid out and painted. Times are those of the page's own clock,
# which begins with the navigation.
_WHEN_READABLE = """
addEventListener("load", () => requestAnimationFrame(() => requestAnimationFrame(() => {
  window.readable = performance.now();
})));
"""
_READABLE = """
const done = arguments[0];
const wait = () => window.readable ? done(window.readable) : setTimeout(wait, 20);
wait();
"""
_SORT = """
const [name, done] = arguments;
const headers = Array.from(document.querySelectorAll("#class thead th"));
const button = headers.find((header) => header.textContent === name).querySelector("button");
const first = () => document.querySelector("#class tbody tr").textContent;
const before = first();
const start = performance.now();
button.click();
requestAnimationFrame(() => requestAnimationFrame(() => done([performance.now() - start, first() !== before])));
"""
# Each is pressed twice: once for each direction.
COLUMNS = ("Total", "Student", "Recipe")


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Give a browser without a window. Raises `BenchmarkError` where there is none that can be driven."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        raise BenchmarkError("There is no browser to drive: apt-get install chromium chromium-driver.")
    options = ChromeOptions()
    options.binary_location = browser
    with tempfile.TemporaryDirectory(prefix="trainwreck-bench-") as profile:
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={profile}",
        ):
            options.add_argument(argument)
        chrome = Chrome(options=options, service=Service(driver))
        try:
            chrome.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WHEN_READABLE})
            yield chrome
        finally:
            chrome.quit()


def seconds_until_readable(browser: Chrome, page: Path) -> float:
    """Open a page and return the seconds from the navigation until it stands there, laid out and painted."""
    browser.get("about:blank")
    browser.get(page.as_uri())
    return float(browser.execute_async_script(_READABLE)) / 1000


def seconds_to_sort(browser: Chrome, column: str) -> float:
    """Press a column's button and return the seconds until the rows stand in their new order, painted.

    Raises `BenchmarkError` where the first row is the same as before.
    """
    milliseconds, changed = browser.execute_async_script(_SORT, column)
    if not changed:
        raise BenchmarkError(f"The table was not sorted by {column}.")
    return float(milliseconds) / 1000


def page_rows(page: Path, submissions: int, rounds: int = 5) -> list[Row]:
    """Open the class page and sort its table, so many times."""
    opened: list[float] = []
    sorted_by: dict[str, list[float]] = {column: [] for column in COLUMNS}
    with chromium() as browser:
        for _ in range(rounds):
            opened.append(seconds_until_readable(browser, page))
            for column, took in sorted_by.items():
                took += [seconds_to_sort(browser, column) for _ in range(2)]
    size = page.stat().st_size / 1e6
    detail = f"{size:.1f} MB; fastest {min(opened):.2f} s, slowest {max(opened):.2f} s; {rounds} rounds"
    what = f"index.html of {submissions} rows in Chromium, until it can be read"
    readable = Row("page", what, median(opened), "s", 2.0, detail, {"readable": opened})
    medians = {column: 1000 * median(took) for column, took in sorted_by.items()}
    slowest = max(medians, key=lambda column: medians[column])
    detail = ", ".join(f"{column} {took:.0f} ms" for column, took in medians.items())
    detail += f"; slowest press {1000 * max(max(took) for took in sorted_by.values()):.0f} ms"
    what = f"sorting it by {slowest}, the slowest column"
    return [readable, Row("page-sort", what, medians[slowest], "ms", 200.0, detail, sorted_by)]
