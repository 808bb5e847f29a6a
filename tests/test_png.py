import hashlib
import io
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from harness.page.png import encode_png, encode_png_bytes


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3]), st.integers(0, 2**32 - 1))
def test_another_reader_sees_the_same_pixels(height: int, width: int, channels: int, seed: int) -> None:
    shape = (height, width) if channels == 1 else (height, width, channels)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    with Image.open(io.BytesIO(encode_png(pixels))) as image:
        assert image.mode == ("L" if channels == 1 else "RGB")
        assert np.array_equal(np.asarray(image), pixels)


def test_an_image_larger_than_one_block_is_whole() -> None:
    pixels = np.arange(300 * 300, dtype=np.uint32).astype(np.uint8).reshape(300, 300)
    with Image.open(io.BytesIO(encode_png(pixels))) as image:
        assert np.array_equal(np.asarray(image), pixels)


def test_memory_layout_does_not_matter() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(4, 6)
    assert encode_png(np.asfortranarray(pixels)) == encode_png(pixels)
    assert encode_png(pixels[:, :, None]) == encode_png(pixels)
    assert encode_png(pixels[::2, ::2]) == encode_png(pixels[::2, ::2].copy())


def test_the_bytes_are_those_of_when_this_was_written() -> None:
    digest = hashlib.sha256(encode_png(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))).hexdigest()
    assert digest == "bc174d682fa5422e2d86e5538f5a8ad4edf2b3c247ca829f078e66981657ecd7"


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((4, 4)),
        np.zeros((4, 4, 2), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros(4, np.uint8),
        np.zeros((0, 4), np.uint8),
        np.zeros((4, 0, 3), np.uint8),
    ],
)
def test_what_is_no_image_is_refused(pixels: npt.NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="a PNG needs"):
        encode_png(pixels)


def test_too_few_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="not 3 for 2 x 2 x 1"):
        encode_png_bytes(b"abc", width=2, height=2, channels=1)
