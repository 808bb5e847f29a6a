import hashlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from harness.page.run_data import encode_png, number


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3]), st.integers(0, 2**32 - 1))
def test_another_reader_sees_the_same_pixels(height: int, width: int, channels: int, seed: int) -> None:
    planes = np.random.default_rng(seed).integers(0, 256, (channels, height, width), dtype=np.uint8)
    with Image.open(io.BytesIO(encode_png(planes.tobytes(), channels, height, width))) as image:
        assert image.mode == ("L" if channels == 1 else "RGB")
        assert np.array_equal(np.asarray(image).reshape(height, width, channels), planes.transpose(1, 2, 0))


def test_the_bytes_are_those_of_when_this_was_written() -> None:
    planes = np.arange(48, dtype=np.uint8).reshape(4, 4, 3).transpose(2, 0, 1).tobytes()
    digest = hashlib.sha256(encode_png(planes, 3, 4, 4)).hexdigest()
    assert digest == "bc174d682fa5422e2d86e5538f5a8ad4edf2b3c247ca829f078e66981657ecd7"


@pytest.mark.parametrize(
    ("value", "expected"), [(1, 1.0), ("Infinity", float("inf")), (True, None), ("1", None), ([1], None)]
)
def test_only_numbers_of_the_log_are_numbers(value: object, expected: float | None) -> None:
    assert number(value) == expected
