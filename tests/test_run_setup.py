import base64
import json
import math

import pytest
import torch
from torch import Tensor

from harness.run.setup import MOST_IMAGES, input_sheet

NAMES = ("zero", "one", "two")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.5, 1.0, 0.25], [0, 128, 255, 64]),
        ([-1.0, 0.0, 1.0, 3.0], [0, 64, 128, 255]),
        ([0, 1, 2, 4], [0, 64, 128, 255]),
        ([5.0, 5.0, 5.0, 5.0], [0, 0, 0, 0]),  # a constant image is black, without a division by 0
        ([0.0, math.inf, 2.0, -math.inf], [0, 0, 255, 0]),
        ([math.nan] * 4, [0, 0, 0, 0]),
    ],
)
def test_pixels_are_scaled_over_the_whole_sheet(values: list[float], expected: list[int]) -> None:
    inputs = torch.tensor(values).view(2, 1, 1, 2)
    sheet = input_sheet(inputs, torch.tensor([2, 0]), NAMES)
    assert list(base64.b64decode(sheet["pixels"])) == expected
    assert json.loads(json.dumps(sheet, allow_nan=False)) == sheet
    assert (sheet["shape"], sheet["labels"]) == ([2, 1, 1, 2], ["two", "zero"])


def test_only_the_first_images_are_kept_and_set_the_scale() -> None:
    inputs = torch.rand(64, 1, 2, 2)
    inputs[MOST_IMAGES:] = 1000.0
    sheet = input_sheet(inputs, torch.arange(64) % 3, NAMES)
    assert (sheet["shape"], len(sheet["labels"])) == ([MOST_IMAGES, 1, 2, 2], MOST_IMAGES)
    assert max(base64.b64decode(sheet["pixels"])) == 255


@pytest.mark.parametrize(
    ("shape", "labels", "names"),
    [
        ((3, 1, 2, 2), torch.tensor([0, 3, -1]), ["zero", "3", "-1"]),
        ((2, 1, 2, 2), torch.rand(2), None),
        ((2, 784), torch.tensor([0, 1]), ["zero", "one"]),
        ((2, 3), torch.tensor([[0.5], [2.0]]), ["0.5", "2"]),
        ((2, 3), torch.tensor([[1, 2, 0], [2, 0, 0]]), ["1 2 0", "2 0 0"]),
        ((2, 2, 4, 4), torch.zeros(2, 3, dtype=torch.long), None),
    ],
)
def test_labels_without_names_and_inputs_that_are_no_images(
    shape: tuple[int, ...], labels: Tensor, names: list[str] | None
) -> None:
    sheet = input_sheet(torch.rand(shape), labels, NAMES)
    assert sheet["labels"] == names
    assert bool(sheet["pixels"]) is (len(shape) == 4 and shape[1] == 1)
    assert len(sheet.get("rows", ())) == (shape[0] if len(shape) == 2 else 0)


def test_symbols_are_shown_as_they_are() -> None:
    assert input_sheet(torch.tensor([[3, 12, 0]]), torch.tensor([1]), NAMES)["rows"] == [["3", "12", "0"]]
