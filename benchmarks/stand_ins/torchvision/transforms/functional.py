"""Changes as functions: each takes a Pillow picture or a tensor [..., height, width]."""

import enum
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor


class InterpolationMode(enum.Enum):
    """How a picture is resized."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def get_dimensions(img: Any) -> list[int]:
    """Return channels, height and width."""
    if isinstance(img, Tensor):
        return [img.shape[-3] if img.dim() > 2 else 1, img.shape[-2], img.shape[-1]]
    return [len(img.getbands()), img.height, img.width]


def get_image_size(img: Any) -> list[int]:
    """Return width and height."""
    _, height, width = get_dimensions(img)
    return [width, height]


def pil_to_tensor(pic: Any) -> Tensor:
    """Return the bytes of a picture as a tensor [channels, height, width]."""
    pixels = torch.from_numpy(np.array(pic))
    return (pixels.unsqueeze(-1) if pixels.dim() == 2 else pixels).permute(2, 0, 1).contiguous()


def to_tensor(pic: Any) -> Tensor:
    """Return a picture or an array [height, width, channels] as a tensor; bytes become numbers from 0 to 1."""
    pixels = pil_to_tensor(pic)
    return pixels.to(torch.get_default_dtype()) / 255 if pixels.dtype == torch.uint8 else pixels


def to_pil_image(pic: Any, mode: str | None = None) -> Image.Image:
    """Return a tensor or array as a picture."""
    if isinstance(pic, Tensor):
        pic = pic.mul(255).byte() if pic.is_floating_point() else pic
        pic = pic.permute(1, 2, 0).cpu().numpy() if pic.dim() == 3 else pic.cpu().numpy()
    return Image.fromarray(pic[..., 0] if pic.ndim == 3 and pic.shape[-1] == 1 else pic)


def normalize(tensor: Tensor, mean: Any, std: Any, inplace: bool = False) -> Tensor:
    """Subtract the mean of each channel, and divide by its deviation."""
    shifted, scale = (torch.as_tensor(one, dtype=tensor.dtype).reshape(-1, 1, 1) for one in (mean, std))
    return tensor.sub_(shifted).div_(scale) if inplace else (tensor - shifted) / scale


def _pair(size: Any) -> tuple[int, int]:
    sizes = [size] if isinstance(size, int) else list(size)
    return int(sizes[0]), int(sizes[-1])


def _filter(interpolation: Any) -> Image.Resampling:
    name = interpolation.name if isinstance(interpolation, enum.Enum) else ""
    if isinstance(interpolation, int):
        return Image.Resampling(interpolation)
    return Image.Resampling[name] if name in Image.Resampling.__members__ else Image.Resampling.BILINEAR


def resize(
    img: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resize to (height, width), or the shorter side to one number."""
    _, height, width = get_dimensions(img)
    if isinstance(size, int) or len(size) == 1:
        short = size if isinstance(size, int) else size[0]
        scale = short / min(height, width)
        new = (short, round(width * scale)) if height <= width else (round(height * scale), short)
    else:
        new = _pair(size)
    if isinstance(img, Tensor):
        batch = img.float().reshape(-1, 1, height, width)
        changed = torch.nn.functional.interpolate(batch, new, mode="bilinear", antialias=True)
        return changed.reshape(*img.shape[:-2], *new).to(img.dtype)
    return img.resize((new[1], new[0]), _filter(interpolation))


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Add a border of (left, top, right, bottom), (left and right, top and bottom) or one width."""
    sides = [padding] if isinstance(padding, int) else list(padding)
    left, top, right, bottom = (sides * 4)[:4]
    if isinstance(img, Tensor):
        mode = {"edge": "replicate"}.get(padding_mode, padding_mode)
        value = fill if mode == "constant" else None
        return torch.nn.functional.pad(img, [left, right, top, bottom], mode=mode, value=value)
    if padding_mode == "constant":
        return ImageOps.expand(img, (left, top, right, bottom), fill=fill)
    pixels = np.array(img)
    border = [(top, bottom), (left, right), *[(0, 0)] * (pixels.ndim - 2)]
    return Image.fromarray(np.pad(pixels, border, mode=padding_mode))  # type: ignore[call-overload]


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Cut out a part; what lies outside of the picture is 0."""
    if isinstance(img, Tensor):
        _, rows, columns = get_dimensions(img)
        border = [max(-left, 0), max(-top, 0), max(left + width - columns, 0), max(top + height - rows, 0)]
        img = pad(img, border)
        top, left = max(top, 0), max(left, 0)
        return img[..., top : top + height, left : left + width]
    return img.crop((left, top, left + width, top + height))


def center_crop(img: Any, output_size: Any) -> Any:
    """Cut out the middle."""
    height, width = _pair(output_size)
    _, rows, columns = get_dimensions(img)
    return crop(img, round((rows - height) / 2), round((columns - width) / 2), height, width)


def resized_crop(
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """Cut out a part, and resize it."""
    return resize(crop(img, top, left, height, width), _pair(size), interpolation)


def hflip(img: Any) -> Any:
    """Swap left and right."""
    return img.flip(-1) if isinstance(img, Tensor) else ImageOps.mirror(img)


def vflip(img: Any) -> Any:
    """Swap top and bottom."""
    return img.flip(-2) if isinstance(img, Tensor) else ImageOps.flip(img)


def rotate(img: Any, angle: float, **unused: Any) -> Any:
    """Turn a picture by an angle in degrees."""
    return img.rotate(angle) if not isinstance(img, Tensor) else to_tensor(to_pil_image(img).rotate(angle))


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Remove the colours."""
    if isinstance(img, Tensor):
        weights = torch.tensor([0.299, 0.587, 0.114], dtype=img.dtype).reshape(3, 1, 1)
        return (img * weights).sum(-3, keepdim=True).expand(*img.shape[:-3], num_output_channels, *img.shape[-2:])
    grey = img.convert("L")
    return Image.merge("RGB", [grey] * 3) if num_output_channels == 3 else grey


to_grayscale = rgb_to_grayscale


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Make a picture brighter."""
    if isinstance(img, Tensor):
        return (img * brightness_factor).clamp(0, 1)
    return ImageEnhance.Brightness(img).enhance(brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Change the contrast."""
    if isinstance(img, Tensor):
        return ((img - img.mean()) * contrast_factor + img.mean()).clamp(0, 1)
    return ImageEnhance.Contrast(img).enhance(contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Change how strong the colours are."""
    if isinstance(img, Tensor):
        grey = rgb_to_grayscale(img, 3)
        return ((img - grey) * saturation_factor + grey).clamp(0, 1)
    return ImageEnhance.Color(img).enhance(saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Turn the circle of colours."""
    if isinstance(img, Tensor):
        return to_tensor(adjust_hue(to_pil_image(img), hue_factor))
    if img.mode == "L":
        return img
    hue, saturation, value = img.convert("HSV").split()
    turned = Image.fromarray((np.array(hue, dtype=np.int16) + int(hue_factor * 255)).astype(np.uint8))
    return Image.merge("HSV", (turned, saturation, value)).convert(img.mode)
