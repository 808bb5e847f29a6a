"""Changes as objects."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from torchvision.transforms import functional as F
from torchvision.transforms.functional import InterpolationMode

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "GaussianBlur",
    "Grayscale",
    "Lambda",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomOrder",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "ToPILImage",
    "ToTensor",
]


def _chance() -> float:
    return float(torch.rand(1))


class Compose:
    """One change after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for change in self.transforms:
            img = change(img)
        return img


class Lambda:
    """Any function."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)


class ToTensor:
    """A picture as a tensor of numbers from 0 to 1."""

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)


class PILToTensor:
    """A picture as a tensor of bytes."""

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)


class ToPILImage:
    """A tensor as a picture."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)


class ConvertImageDtype(nn.Module):
    """A tensor in another type."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, img: Tensor) -> Tensor:
        return img.to(self.dtype) / (1 if img.is_floating_point() else 255)


class Normalize(nn.Module):
    """Each channel minus its mean, divided by its deviation."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self.inplace)


class Resize(nn.Module):
    """A picture in another size."""

    def __init__(
        self,
        size: Any,
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool = True,
    ) -> None:
        super().__init__()
        self.size, self.interpolation = size, interpolation

    def forward(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation)


class CenterCrop(nn.Module):
    """The middle of a picture."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = size

    def forward(self, img: Any) -> Any:
        return F.center_crop(img, self.size)


class Pad(nn.Module):
    """A picture with a border."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class RandomCrop(nn.Module):
    """A random part of a picture."""

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        _, rows, columns = F.get_dimensions(img)
        top = int(torch.randint(max(rows - self.size[0], 0) + 1, (1,)))
        left = int(torch.randint(max(columns - self.size[1], 0) + 1, (1,)))
        return F.crop(img, top, left, *self.size)


class RandomResizedCrop(nn.Module):
    """A random part of a picture in another size."""

    def __init__(
        self,
        size: Any,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool = True,
    ) -> None:
        super().__init__()
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.scale, self.ratio, self.interpolation = scale, ratio, interpolation

    @staticmethod
    def get_params(img: Any, scale: Any, ratio: Any) -> tuple[int, int, int, int]:
        """Return top, left, height and width of a random part."""
        _, rows, columns = F.get_dimensions(img)
        area = rows * columns * (scale[0] + (scale[1] - scale[0]) * _chance())
        shape = math.exp(math.log(ratio[0]) + (math.log(ratio[1]) - math.log(ratio[0])) * _chance())
        height = min(max(round(math.sqrt(area / shape)), 1), rows)
        width = min(max(round(math.sqrt(area * shape)), 1), columns)
        top, left = (int(torch.randint(free + 1, (1,))) for free in (rows - height, columns - width))
        return top, left, height, width

    def forward(self, img: Any) -> Any:
        return F.resized_crop(img, *self.get_params(img, self.scale, self.ratio), self.size, self.interpolation)


class RandomHorizontalFlip(nn.Module):
    """Left and right change places, sometimes."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return F.hflip(img) if _chance() < self.p else img


class RandomVerticalFlip(nn.Module):
    """Top and bottom change places, sometimes."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return F.vflip(img) if _chance() < self.p else img


class RandomRotation(nn.Module):
    """A picture turned by a random angle."""

    def __init__(self, degrees: Any, **unused: Any) -> None:
        super().__init__()
        self.degrees = (-degrees, degrees) if isinstance(degrees, int | float) else tuple(degrees)

    def forward(self, img: Any) -> Any:
        low, high = self.degrees
        return F.rotate(img, low + (high - low) * _chance())


class Grayscale(nn.Module):
    """A picture without colours."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, self.num_output_channels)


class RandomGrayscale(nn.Module):
    """A picture that loses its colours, sometimes."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, F.get_dimensions(img)[0]) if _chance() < self.p else img


class ColorJitter(nn.Module):
    """Random brightness, contrast, saturation and hue."""

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0) -> None:
        super().__init__()
        given = zip((brightness, contrast, saturation, hue), (1, 1, 1, 0), strict=True)
        self.ranges = [
            (middle - one, middle + one) if isinstance(one, int | float) else tuple(one) for one, middle in given
        ]

    def forward(self, img: Any) -> Any:
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for change, (low, high) in zip(changes, self.ranges, strict=True):
            if low < high:
                img = change(img, max(low + (high - low) * _chance(), 0 if change is not F.adjust_hue else -0.5))
        return img


class GaussianBlur(nn.Module):
    """A picture that is not sharp."""

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size, self.sigma = kernel_size, sigma

    def forward(self, img: Any) -> Any:
        _, height, width = F.get_dimensions(img)
        return F.resize(F.resize(img, (max(height // 2, 1), max(width // 2, 1))), (height, width))


class RandomApply(nn.Module):
    """Some changes, sometimes."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, img: Any) -> Any:
        return Compose(self.transforms)(img) if _chance() < self.p else img


class RandomChoice:
    """One of some changes."""

    def __init__(self, transforms: Any, p: Any = None) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        return random.choice(self.transforms)(img)


class RandomOrder:
    """Some changes in a random order."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        return Compose(random.sample(self.transforms, len(self.transforms)))(img)
