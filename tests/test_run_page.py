import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.made_up_class import HOSTILE
from helpers.made_up_runs import CNN, make_run, write_json
from helpers.page_reader import Page

from harness.errors import UserError
from harness.page.run_page import render_run_page
from harness.run.metrics_log import format_record


def page_of(folder: Path, title: str = "A run", compare_with: Path | None = None) -> Page:
    return Page(render_run_page(folder, title=title, compare_with=compare_with))


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return make_run(tmp_path / "fixed", run="fixed")


@pytest.fixture
def exploded(tmp_path: Path) -> Path:
    return make_run(tmp_path / "broken", run="broken", explode_at=12)


@pytest.fixture(params=["exploded", "cnn", "regression", "both"])
def any_page(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    options: dict[str, dict[str, Any]] = {
        "exploded": {"explode_at": 12},
        "cnn": {"parameters": CNN, "channels": 3, "class_names": list("abcdefghij")},
        "regression": {"regression": True},
        "both": {"run": "fixed"},
    }
    compare_with = make_run(tmp_path / "broken", explode_at=12) if request.param == "both" else None
    return render_run_page(
        make_run(tmp_path / "run", **options[request.param]), title="A run", compare_with=compare_with
    )


def test_the_page_loads_nothing_and_is_for_all_readers(any_page: str) -> None:
    page = Page(any_page)
    page.check()
    assert len(page.all("figure")) >= 9
    assert all((attributes["href"] or "").startswith("#") for attributes in page.all("a"))
    # uPlot contains its own address. No code requests that address.
    assert set(re.findall(r"https?:[^\s)]*", any_page)) == {"https://github.com/leeoniya/uPlot"}


def test_the_same_files_give_the_same_bytes_without_a_heavy_import(healthy: Path, exploded: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from harness.page.run_page import write_run_page as w;"
        "w(Path(sys.argv[1]), title='t', compare_with=Path(sys.argv[2]));"
        "print([m for m in ('torch', 'rich', 'numpy', 'youplot') if m in sys.modules])"
    )
    pages = set()
    for seed in ("0", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code, str(healthy), str(exploded)]
        done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        assert done.stdout.strip() == "[]"
        pages.add((healthy / "run.html").read_text(encoding="utf-8"))
    [page] = pages
    assert str(healthy.parent) not in page


def test_the_first_non_finite_step_is_marked_and_said(exploded: Path) -> None:
    words = page_of(exploded).words
    assert "first NaN: step 12" in words
    assert "the first loss that is not finite is at step 12" in words
    assert "error, step 12 the loss is not finite" in words


def test_every_layer_and_signal_has_its_chart(tmp_path: Path) -> None:
    words = page_of(make_run(tmp_path / "run", parameters=CNN)).words
    for layer in {name.rpartition(".")[0] for name in CNN}:
        assert f"Layer {layer}" in words
    for signal in ["loss", "val_loss", "val_accuracy", "lr", "grad_norm", "grad_zero_fraction", "stale_grad_ratio"]:
        assert signal in words
    assert "first layer: 200 values" in words
    for figure in ("loss", "accuracy"):
        for measured in ("by evaluate() in its own mode", "by evaluate() again", "measured again in eval mode"):
            assert f"Validation {figure}, {measured}" in words


def test_both_runs_are_drawn_together(healthy: Path, exploded: Path) -> None:
    page = page_of(healthy, compare_with=exploded)
    descriptions = [text for text in page.text if "values, from" in text or "not recorded" in text]
    assert len(descriptions) == len(page.all("figure"))
    assert all("broken" in text and "your run" in text for text in descriptions)
    assert "Metric broken your run" in page.words


def test_images_carry_the_labels_that_the_model_saw_and_equal_sheets_are_shown_once(tmp_path: Path) -> None:
    broken, fixed = make_run(tmp_path / "broken"), make_run(tmp_path / "fixed", run="fixed")
    sheet = json.loads((broken / "inputs.json").read_text(encoding="utf-8"))
    page = page_of(fixed, compare_with=broken)
    alts = [f"Input {number}, labelled {label}" for number, label in enumerate(sheet["labels"], start=1)]
    assert [a["alt"] for a in page.all("img")] == alts
    assert "broken and your run have the same inputs" in page.words
    sheet["labels"].reverse()
    write_json(broken / "inputs.json", sheet)
    assert len(page_of(fixed, compare_with=broken).all("img")) == 48


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    parameters = (f"{HOSTILE}.weight", "a\"b'.<i>", HOSTILE)
    folder = make_run(tmp_path / "run", parameters=parameters, class_names=[HOSTILE] * 10)
    for name in ("result.json", "checkpoint.pt.meta.json"):
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        content |= {"run": HOSTILE, "recipe": HOSTILE, "checkpoint_sha256": HOSTILE, HOSTILE: HOSTILE}
        content["guardrails"] = [{"step": HOSTILE, "level": HOSTILE, "message": HOSTILE}]
        write_json(folder / name, content)
    for compare_with in (None, folder):
        page = page_of(folder, title=HOSTILE, compare_with=compare_with)
        assert len(page.all("script")) == 2
        assert page.all("i") == []
        assert all((a["src"] or "").startswith("data:") for a in page.all("img"))
        assert page.words.count('<script>alert("1")</script>') > 10


def test_a_regression_has_no_accuracy(tmp_path: Path, exploded: Path) -> None:
    folder = make_run(tmp_path / "run", run="fixed", regression=True)
    page = page_of(folder)
    assert "ccuracy" not in page.words
    assert "The targets are not classes." in page.words
    assert [a["alt"] for a in page.all("img")][:2] == ["Input 1", "Input 2"]
    assert "Validation accuracy, by evaluate() in its own mode 0.1 —" in page_of(folder, compare_with=exploded).words


@pytest.mark.parametrize("name", ["result.json", "inputs.json", "checkpoint.pt.meta.json"])
@pytest.mark.parametrize("content", ["{", "[1]", "\ud800"])
def test_a_file_that_is_no_json_object_is_a_sentence(healthy: Path, name: str, content: str) -> None:
    (healthy / name).write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(UserError, match=f"{name} .*run the experiment again"):
        page_of(healthy)


def test_inputs_that_are_no_images_are_said_to_be_none(healthy: Path) -> None:
    write_json(healthy / "inputs.json", {"shape": [24, 784], "pixels": "", "labels": None})
    page = page_of(healthy)
    assert page.all("img") == []
    assert "The inputs are neither images nor rows of numbers." in page.words


def test_rows_of_a_table_are_shown_with_their_targets(healthy: Path) -> None:
    sheet = {"shape": [2, 3], "pixels": "", "rows": [["1.5", "-2", "0"], ["0", "7", "8"]], "labels": ["stays", "goes"]}
    write_json(healthy / "inputs.json", sheet)
    page = page_of(healthy)
    assert "0 1.5 -2 0 stays 1 0 7 8 goes" in page.words


def test_a_broken_run_that_somebody_edited_is_a_sentence(healthy: Path, exploded: Path) -> None:
    write_json(exploded / "result.json", {"confusion": 3})
    with pytest.raises(UserError, match=r"broken contains data that no run writes .*: make that run again"):
        page_of(healthy, compare_with=exploded)
    (exploded / "result.json").unlink()
    with pytest.raises(UserError, match=r"result.json is missing: run the experiment again"):
        page_of(healthy, compare_with=exploded)


def write_details(folder: Path, classes: list[str], *, clip: bool = True) -> None:
    """Write a made-up `details.log`: every other batch is clipped, and each class has one wrong example of four."""
    quantiles = {"1": -1.0, "10": -0.5, "50": 0.0, "90": 0.5, "99": math.nan}
    lines: list[dict[str, Any]] = [
        {
            "step": step,
            "grad_norm_before_clipping": 2.0 + step % 2 if clip else None,
            "grad_norm": 2.0,
            "clipped": bool(step % 2) if clip else None,
            "loss_scale": 2.0 ** (10 - step // 10),
            "skipped_steps": int(step % 10 == 9),
            **({"parameter_norm": 3.0, "gradient_quantiles": {HOSTILE: quantiles}} if step % 10 == 0 else {}),
        }
        for step in range(40)
    ]
    size = len(classes)
    counts = [
        [3 if row == column else int(column == (row + 1) % size) for column in range(size)] for row in range(size)
    ]
    lines.append({"epoch": 4, "confusion": counts, "classes": classes})
    (folder / "details.log").write_text("".join(map(format_record, lines)))


def test_details_are_shown_as_rates_charts_and_a_confusion_matrix(healthy: Path, exploded: Path) -> None:
    before = page_of(healthy)
    write_details(healthy, ["cat", HOSTILE, "dog"])
    text = render_run_page(healthy, title="A run")
    page = Page(text)
    page.check()
    assert "20 of 40 (50%)" in text and "4 of 40" in text
    assert "your run: 75.0% of the validation examples are correct in eval mode" in text
    assert len(page.all("figure")) == len(before.all("figure")) + 4
    both = page_of(healthy, compare_with=exploded)  # a run of an earlier version has no details
    both.check()
    assert len(both.all("figure")) == len(page_of(exploded).all("figure")) + 4


def test_details_that_no_run_writes_are_refused(healthy: Path) -> None:
    (healthy / "details.log").write_text("[1]\n")
    with pytest.raises(UserError, match=r"details\.log is not a log of JSON objects: run the experiment again"):
        render_run_page(healthy, title="A run")
