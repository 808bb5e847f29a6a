"""Data sets with the shapes and the fields of the known ones, and made-up contents."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_up
import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

Transform = Callable[[Any], Any] | None


class VisionDataset(Dataset[Any]):
    """Pictures with labels, each changed by a function."""

    def __init__(self, root: Any = None, transform: Transform = None, target_transform: Transform = None) -> None:
        self.root = root
        self.transform = transform
        self.target_transform = target_transform

    def _example(self, index: int) -> tuple[Image.Image, int]:
        raise NotImplementedError

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture, label = self._example(index)
        return (
            self.transform(picture) if self.transform else picture,
            self.target_transform(label) if self.target_transform else label,
        )


class MNIST(VisionDataset):
    """Grey pictures of 28 × 28 pixels in ten classes."""

    name = "mnist"
    classes = [f"{digit}" for digit in range(10)]  # noqa: RUF012

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform, target_transform)
        self.train = train
        many = int(os.environ.get("MADE_UP_EXAMPLES", "1280"))  # some programs split a known number of examples
        part, count = ("train", many) if train else ("test", 320)
        pixels, labels = made_up.images(self.name, part, count, 28, 1, 10)
        self.data, self.targets = torch.from_numpy(pixels[..., 0].copy()), torch.from_numpy(labels)

    def _example(self, index: int) -> tuple[Image.Image, int]:
        return Image.fromarray(self.data[index].numpy()), int(self.targets[index])

    def __len__(self) -> int:
        return len(self.data)


class FashionMNIST(MNIST):
    """Other pictures of the same kind."""

    name = "fashion"
    classes = [f"clothes {label}" for label in range(10)]  # noqa: RUF012


class KMNIST(MNIST):
    """Other pictures of the same kind."""

    name = "kmnist"


class CIFAR10(VisionDataset):
    """Colour pictures of 32 × 32 pixels in ten classes."""

    count = 10
    sizes = (480, 120)

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Transform = None,
        target_transform: Transform = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform, target_transform)
        self.train = train
        part, size = ("train", self.sizes[0]) if train else ("test", self.sizes[1])
        self.data, labels = made_up.images(f"cifar{self.count}", part, size, 32, 3, self.count)
        self.targets = [int(label) for label in labels]
        self.classes = [f"class {label}" for label in range(self.count)]
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}

    @property
    def train_data(self) -> Any:
        """The pixels, under the name that they had in old releases."""
        return self.data

    def _example(self, index: int) -> tuple[Image.Image, int]:
        return Image.fromarray(self.data[index]), self.targets[index]

    def __len__(self) -> int:
        return len(self.data)


class CIFAR100(CIFAR10):
    """Colour pictures of 32 × 32 pixels in a hundred classes."""

    count = 100
    sizes = (2000, 400)


class ImageFolder(VisionDataset):
    """Pictures of a folder that has one folder for each class."""

    def __init__(
        self, root: Any, transform: Transform = None, target_transform: Transform = None, **unused: Any
    ) -> None:
        super().__init__(root, transform, target_transform)
        self.classes = sorted(folder.name for folder in Path(root).iterdir() if folder.is_dir())
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}
        self.samples = [
            (str(file), label)
            for name, label in self.class_to_idx.items()
            for file in sorted(Path(root, name).iterdir())
        ]
        self.imgs = self.samples
        self.targets = [label for _, label in self.samples]

    def _example(self, index: int) -> tuple[Image.Image, int]:
        file, label = self.samples[index]
        with Image.open(file) as picture:
            return picture.convert("RGB"), label

    def __len__(self) -> int:
        return len(self.samples)


class FakeData(VisionDataset):
    """Pictures of noise, as in the original."""

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Transform = None,
        target_transform: Transform = None,
    ) -> None:
        super().__init__(None, transform, target_transform)
        self.size, self.image_size, self.num_classes = size, image_size, num_classes

    def _example(self, index: int) -> tuple[Image.Image, int]:
        rng = made_up.random_numbers("noise", index)
        channels, height, width = self.image_size
        noise = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
        return Image.fromarray(noise), int(rng.integers(self.num_classes))

    def __len__(self) -> int:
        return self.size
