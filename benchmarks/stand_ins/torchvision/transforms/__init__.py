"""Changes of pictures and tensors."""

from torchvision.transforms import functional as functional
from torchvision.transforms import transforms as transforms
from torchvision.transforms.functional import InterpolationMode as InterpolationMode
from torchvision.transforms.transforms import *  # noqa: F403
