"""Write a report for other programs: JSON, SARIF 2.1.0, and annotations of GitHub Actions."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from trainwreck import __version__
from trainwreck.catalogue import OUTCOMES, outcome_of
from trainwreck.finding import Finding, Outcome, Report
from trainwreck.show import practise_command, report_lines

Format = Literal["text", "json", "sarif", "github"]

_SARIF = {"alarm": "error", "advice": "warning", "note": "note"}
_GITHUB = {"alarm": "error", "advice": "warning", "note": "notice"}


def render(report: Report, form: Format, folder: Path) -> str:
    """Return a report in a format, without a newline at the end. Paths are relative to `folder`."""
    if form == "json":
        return _to_json(report)
    if form == "sarif":
        return json.dumps(_to_sarif(report, folder), indent=2, allow_nan=False)
    return "\n".join(_github_lines(report, folder) if form == "github" else report_lines(report))


def _to_json(report: Report) -> str:
    found = {
        "version": __version__,
        "steps": report.steps,
        "findings": [finding.to_json() for finding in report.findings],
        "suppressed": report.suppressed,
        "known": report.known,
        "errors": dict(report.errors),
        "failure": report.failure,
    }
    return json.dumps(found, allow_nan=False)


def _to_sarif(report: Report, folder: Path) -> dict[str, Any]:
    """Return a log with one run: a rule for each outcome, a result for each finding, and what went wrong."""
    names = list(OUTCOMES)
    troubles = [f"The check {name} failed: {error}" for name, error in report.errors.items()]
    if report.failure:
        troubles.append(f"{report.script}: {report.failure}")
    driver = {
        "name": "trainwreck",
        "version": __version__,
        "rules": [_rule(name, outcome) for name, outcome in OUTCOMES.items()],
    }
    invocation = {
        "executionSuccessful": report.is_complete and not report.errors,
        "toolExecutionNotifications": [{"level": "error", "message": {"text": text}} for text in troubles],
    }
    results = [
        {
            "ruleId": finding.name,
            "ruleIndex": names.index(finding.name),
            "level": _SARIF[finding.level],
            "message": {"text": _message(finding)},
            "locations": [_location(finding, report.script, folder)],
        }
        for finding in report.findings
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "invocations": [invocation], "results": results}],
    }


def _rule(name: str, outcome: Outcome) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": outcome.meaning},
        "help": {"text": _help(outcome)},
        "defaultConfiguration": {"level": _SARIF[outcome.level]},
    }


def _location(finding: Finding, script: str, folder: Path) -> dict[str, Any]:
    """Return where a finding is; for a finding without a line, the script."""
    place = finding.place
    path = _path(place.file if place.line else script, folder)
    address = Path(path).as_uri() if Path(path).is_absolute() else quote(path)
    physical: dict[str, Any] = {"artifactLocation": {"uri": address}}
    if place.line:
        physical["region"] = {"startLine": place.line}
    return {"physicalLocation": physical}


def _github_lines(report: Report, folder: Path) -> Iterator[str]:
    """Yield a workflow command for each finding and for what went wrong, and a line that counts the findings."""
    for finding in report.findings:
        place = finding.place
        where = {"file": _path(place.file if place.line else report.script, folder)}
        if place.line:
            where["line"] = str(place.line)
        text = f"{_message(finding)}\n{_help(outcome_of(finding))}"
        yield _command(_GITHUB[finding.level], {**where, "title": finding.name}, text)
    for name, error in report.errors.items():
        yield _command("error", {"title": f"trainwreck: the check {name} failed"}, error)
    if report.failure:
        where = {"file": _path(report.script, folder), "title": "trainwreck: the script failed"}
        yield _command("error", where, report.failure)
    yield report.counts()


def _command(name: str, properties: dict[str, str], text: str) -> str:
    """Return a workflow command of GitHub Actions, with the escapes that its properties and its text need."""
    listed = (f"{key}={_escape(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items())
    return f"::{name} {','.join(listed)}::{_escape(text.strip())}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _message(finding: Finding) -> str:
    where = "" if finding.place.line else f" Where: {finding.place}."
    return f"{outcome_of(finding).meaning} Found: {finding.text}.{where}"


def _help(outcome: Outcome) -> str:
    practise = f"\nPractise: {command}" if (command := practise_command(outcome)) else ""
    return f"Fix: {outcome.cure}{practise}"


def _path(file: str, folder: Path) -> str:
    """Return the path of a file with forward slashes: relative if the file is inside the folder."""
    whole = Path(file).resolve()
    folder = folder.resolve()
    return Path(os.path.relpath(whole, folder) if whole.is_relative_to(folder) else whole).as_posix()
