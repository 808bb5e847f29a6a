from benchmarks.bench_reports import PAGE, Report, Result, areas_of, load_reports, pointing, summary
from benchmarks.measure import PAGE as BENCHMARKS
from harness.checks import load_check
from harness.run.experiment import load_experiment

REPORTS = load_reports()


def result(report: Report, **broken: str) -> Result:
    return Result(report, broken, {})


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


def test_an_outcome_points_at_the_places_that_it_names() -> None:
    assert areas_of(load_check("data").outcome("overlap")) == {"data", "pipeline"}
    assert areas_of(load_check("audit").outcome("some-rest")) == {"optimizer", "model"}
    assert areas_of(load_check("modes").outcome("other-mode")) == {"evaluation", "deployment"}
    assert areas_of(load_check("overfit").outcome("stalls")) == set()
    assert areas_of(load_check("modes").outcome("agree")) == set()
    assert ["activations", "dead", "vague"] in pointing()


def test_a_report_is_found_by_an_outcome_that_points_at_its_area() -> None:
    report = next(report for report in REPORTS if report.area == "data")
    assert result(report, data="overlap", overfit="stalls").verdict == "area"
    assert result(report, modes="other-mode", overfit="stalls").verdict == "elsewhere"
    assert result(report, overfit="stalls").verdict == "vague"
    assert result(report, modes="crash").verdict == "silent"
    assert not Result(report, {"data": "overlap"}, {"data": "overlap"}).told_apart
    heading, *rows = summary([result(report, data="overlap"), result(report, modes="crash")])
    assert dict(zip(heading, rows[-1], strict=True)) | {"area of the cause": "all"} == {
        "area of the cause": "all", "reports": "2", "area": "1", "elsewhere": "0", "vague": "0", "silent": "1",
        "area, and not on the corrected": "1", "crash": "1", "alarms": "0",
    }  # fmt: skip


def test_the_pages_have_the_sections_that_the_benchmark_writes() -> None:
    assert "<!-- reports: measured -->" in BENCHMARKS.read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    assert "<!-- reports: measured -->" in page
    assert "<!-- pointing: measured -->" in page
