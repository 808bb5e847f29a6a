import base64
import json
import math

import pytest
import torch
from torch import Tensor

from harness.run.input_sheet import MOST_IMAGES, input_sheet

NAMES = ("zero", "one", "two")


def pixels(inputs: Tensor) -> list[int]:
    sheet = input_sheet(inputs, torch.zeros(len(inputs), dtype=torch.long), NAMES)
    return list(base64.b64decode(sheet["pixels"]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.5, 1.0, 0.25], [0, 128, 255, 64]),
        ([-1.0, 0.0, 1.0, 3.0], [0, 64, 128, 255]),
        ([100, 150, 200, 300], [0, 64, 128, 255]),
        ([5.0, 5.0, 5.0, 5.0], [0, 0, 0, 0]),  # a constant sheet is black, not a division by 0
        ([0.0, math.nan, 1.0, 1.0], [0, 0, 255, 255]),
        ([0.0, math.inf, 2.0, -math.inf], [0, 0, 255, 0]),
        ([math.nan] * 4, [0, 0, 0, 0]),
    ],
)
def test_pixels_are_scaled_over_the_whole_sheet(values: list[float], expected: list[int]) -> None:
    assert pixels(torch.tensor(values).view(2, 1, 1, 2)) == expected
    # Over the sheet and not over each image: two images side by side keep their contrast.


def test_the_shape_is_batch_channels_height_width_in_that_order() -> None:
    inputs = torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5)
    sheet = input_sheet(inputs, torch.tensor([2, 0]), NAMES)
    assert sheet["shape"] == [2, 3, 4, 5]
    assert sheet["labels"] == ["two", "zero"]
    decoded = base64.b64decode(sheet["pixels"])
    assert len(decoded) == 2 * 3 * 4 * 5
    assert list(decoded) == sorted(decoded)
    many = input_sheet(torch.rand(64, 1, 2, 2), torch.zeros(64, dtype=torch.long), NAMES)
    assert (many["shape"], len(many["labels"])) == ([MOST_IMAGES, 1, 2, 2], MOST_IMAGES)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (torch.tensor([0, 3, -1]), ["zero", "3", "-1"]),  # a label without a name is shown as a number
        (torch.rand(3), None),
        (torch.zeros(3, 3, dtype=torch.long), None),
    ],
)
def test_a_regression_has_no_labels(labels: Tensor, names: list[str] | None) -> None:
    assert input_sheet(torch.rand(3, 1, 2, 2), labels, NAMES)["labels"] == names


@pytest.mark.parametrize("shape", [(2, 784), (2, 28, 28), (2, 2, 4, 4), (2, 1, 2, 2, 2)])
def test_what_is_no_image_has_no_pixels(shape: tuple[int, ...]) -> None:
    sheet = input_sheet(torch.rand(shape), torch.tensor([0, 1]), NAMES)
    assert sheet == {"shape": list(shape), "pixels": "", "labels": ["zero", "one"]}


def test_the_batch_is_left_as_it_was_and_the_sheet_is_strict_json() -> None:
    inputs = torch.tensor([0.0, math.nan, 2.0, 3.0]).view(1, 1, 2, 2)
    before = inputs.clone()
    sheet = input_sheet(inputs.requires_grad_(), torch.tensor([1]), NAMES)
    assert torch.equal(inputs.nan_to_num(-9), before.nan_to_num(-9))
    assert json.loads(json.dumps(sheet, allow_nan=False)) == sheet
