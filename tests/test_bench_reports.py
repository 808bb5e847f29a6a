from benchmarks.bench_reports import HEADINGS, PAGE, Result, load_reports, pointing, summary
from benchmarks.measure import PAGE as BENCHMARKS
from harness.run.experiment import load_experiment

REPORTS = load_reports()


def test_reports_are_many_and_of_every_area() -> None:
    assert len(REPORTS) >= 32
    per_area = {area: sum(report.area == area for report in REPORTS) for area in {report.area for report in REPORTS}}
    assert len(per_area) == 8
    assert min(per_area.values()) >= 4


def test_every_report_names_a_public_address_and_a_cause_of_its_own() -> None:
    assert all(address.startswith("https://") for report in REPORTS for address in report.addresses)
    addresses = [address for report in REPORTS for address in report.addresses]
    assert len(set(addresses)) == len(addresses)
    assert len({report.cause for report in REPORTS}) == len(REPORTS)


def test_both_programs_of_every_report_keep_the_contract() -> None:
    for report in REPORTS:
        assert report.source != report.corrected_source
        for source in (report.source, report.corrected_source):
            load_experiment(PAGE, source)


def test_an_outcome_that_names_no_place_is_vague_in_the_last_table() -> None:
    assert ["activations", "dead", "vague"] in pointing()
    assert ["data", "overlap", "data, pipeline"] in pointing()


def test_a_report_is_found_by_an_outcome_that_points_at_its_area() -> None:
    report = next(report for report in REPORTS if report.area == "data")
    assert Result(report, ["data overlap", "overfit stalls"], []).verdict == "area"
    assert Result(report, ["data overlap"], ["data overlap"]).verdict == "silent"
    broken, corrected = report.subjects()
    assert broken.areas == {"data"}
    assert broken.sound == corrected.name
    results = [Result(report, ["data overlap"], []), Result(report, ["modes crash"], ["overfit stalls"])]
    heading, *rows = summary(results)
    assert dict(zip(heading, rows[-1], strict=True)) == {
        "area of the cause": "all", "reports": "2", "area": "1", "elsewhere": "0", "vague": "0", "silent": "1",
        "crash": "1", "alarms": "1",
    }  # fmt: skip
    assert results[0].cells()[2:] == ("data", "area", "data overlap", "-")


def test_the_pages_have_the_tables_that_the_benchmark_writes() -> None:
    head, *_ = summary([])
    for page, headings in ((BENCHMARKS, head), (PAGE, HEADINGS)):
        section = page.read_text(encoding="utf-8").split("<!-- reports: measured -->")[1].split("<!-- end -->")[0]
        assert f"| {' | '.join(headings)} |" in section
    assert "<!-- pointing: measured -->" in PAGE.read_text(encoding="utf-8")
