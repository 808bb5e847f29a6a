"""Networks with the layers of the known ones, at a quarter of their width, so that a CPU can train them.

Layers that programs replace or measure have their known names: `conv1` and `fc`, `features` and `classifier`.
Weights are always random.
"""

import enum
from typing import Any

import torch
from torch import Tensor, nn


class VGG16_Weights(enum.Enum):  # noqa: N801
    """Names of weights."""

    IMAGENET1K_V1 = "random"
    DEFAULT = "random"


class ResNet18_Weights(enum.Enum):  # noqa: N801
    """Names of weights."""

    IMAGENET1K_V1 = "random"
    DEFAULT = "random"


class _Residual(nn.Module):
    def __init__(self, before: int, inner: int, after: int, stride: int, wide: bool) -> None:
        super().__init__()
        sizes = [(before, inner, 1, 1), (inner, inner, 3, stride), (inner, after, 1, 1)]
        sizes = sizes if wide else [(before, inner, 3, stride), (inner, after, 3, 1)]
        layers: list[nn.Module] = []
        for one, other, kernel, step in sizes:
            layers += [nn.Conv2d(one, other, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(other), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        self.relu = nn.ReLU(inplace=True)
        self.downsample = (
            nn.Identity()
            if before == after and stride == 1
            else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.downsample(x))


class ResNet(nn.Module):
    """A residual network."""

    def __init__(self, blocks: tuple[int, ...], wide: bool, num_classes: int = 1000) -> None:
        super().__init__()
        # The first convolution has its known width: programs replace it by one of 64 channels.
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        before = 64
        for stage, count in enumerate(blocks):
            inner = 16 * 2**stage
            after = inner * (4 if wide else 1)
            layers = []
            for at in range(count):
                stride = 2 if stage and not at else 1
                layers.append(_Residual(before, inner, after, stride, wide))
                before = after
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(before, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return a score for each class."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            x = self.get_submodule(f"layer{stage}")(x)
        return self.fc(self.avgpool(x).flatten(1))  # type: ignore[no-any-return]


def resnet18(*, num_classes: int = 1000, **unused: Any) -> ResNet:
    """Return a small residual network."""
    return ResNet((2, 2, 2, 2), False, num_classes)


def resnet50(*, num_classes: int = 1000, **unused: Any) -> ResNet:
    """Return a deeper residual network."""
    return ResNet((3, 4, 6, 3), True, num_classes)


class VGG(nn.Module):
    """Convolutions and pooling, then a classifier."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for width, count in ((16, 2), (32, 2), (64, 3), (128, 3), (128, 3)):
            for _ in range(count):
                layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU(inplace=True)]
                before = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(128 * 49, 256), nn.ReLU(True), nn.Dropout(), nn.Linear(256, num_classes)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return a score for each class."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))  # type: ignore[no-any-return]


def vgg16(*, num_classes: int = 1000, **unused: Any) -> VGG:
    """Return a network of convolutions."""
    return VGG(num_classes)


class _Inverted(nn.Module):
    def __init__(self, before: int, inner: int, after: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.same = before == after and stride == 1
        self.expand = nn.Sequential(nn.Conv2d(before, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.Hardswish())
        self.depth = nn.Sequential(
            nn.Conv2d(inner, inner, kernel, stride, kernel // 2, groups=inner, bias=False),
            nn.BatchNorm2d(inner),
            nn.Hardswish(),
        )
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(inner, 8, 1), nn.ReLU(), nn.Conv2d(8, inner, 1), nn.Hardsigmoid()
        )
        self.project = nn.Sequential(nn.Conv2d(inner, after, 1, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.depth(self.expand(x))
        y = self.project(y * self.squeeze(y))
        return x + y if self.same else y


class MobileNetV3(nn.Module):
    """Inverted residual blocks with squeeze and excitation."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()]
        before = 16
        for inner, after, kernel, stride in ((16, 16, 3, 2), (72, 24, 3, 2), (96, 40, 5, 2), (120, 40, 5, 1)):
            layers.append(_Inverted(before, inner, after, kernel, stride))
            before = after
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(40, 128), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(128, num_classes)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return a score for each class."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))  # type: ignore[no-any-return]


def mobilenet_v3_small(*, num_classes: int = 1000, **unused: Any) -> MobileNetV3:
    """Return a small network for telephones."""
    return MobileNetV3(num_classes)
