"""A residual convolutional network with gates reads 28x28 grey digits that are moved and partly erased in training.

1. `load_data` standardizes the images by mean and standard deviation of the training split.
2. `prepare_batch` moves each image by a few pixels and erases a patch of some images, at random in each epoch.
3. `ResNet` halves the image twice early on. Its blocks are residual, and gates weight their channels.
4. Training smooths the labels. Validation reports the plain cross-entropy, so that you can compare its loss with
   other runs.
"""

import torch
import torch.nn.functional as F
from torch import nn

from harness.run.schedules import warmup_cosine

EPOCHS = 6
BATCH_SIZE = 64

CLASSES = 10
SIDE = 28  # width and height of an image in pixels

MAX_SHIFT = 2  # an image moves by at most this many pixels in each direction
ERASE_SIZE = 7  # width and height of an erased patch in pixels
ERASE_PROB = 0.5  # share of the images that lose a patch

WIDTH = 16  # channels of the first block; the second one has twice as many
REDUCTION = 4  # a gate divides the number of channels by this factor
KEPT = 0.9  # share of batch norm's running statistics that is kept after a batch
DROPOUT = 0.2

PEAK_LR = 0.1
WARMUP = 0.1  # share of the steps in which the rate rises
MOMENTUM = 0.9
WEIGHT_DECAY = 0.001
MAX_GRAD_NORM = 3.0
SMOOTHING = 0.1

EVAL_BATCH = 64


# --- the images -----------------------------------------------------------------------------------------------


def in_unit_range(images):
    """Return images of bytes as floating-point numbers from 0 to 1."""
    return images.float() / 255


def load_data(data):
    """Return both splits as (images (N, 1, 28, 28), labels (N,)), standardized by the training images."""
    training = in_unit_range(data.train.images)
    validation = in_unit_range(data.validation.images)
    # One mean and one deviation for all pixels, because pixels near the border are always black.
    mean, deviation = training.mean(), training.std()
    return (
        ((training - mean) / deviation, data.train.labels),
        ((validation - mean) / deviation, data.validation.labels),
    )


# --- augmentation ---------------------------------------------------------------------------------------------


def shift(images, down, right):
    """Return images (B, 1, H, W), each moved down and to the right by its own number of pixels (B,).

    New pixels at the edge repeat the pixels of the border.
    """
    place = torch.arange(SIDE, device=images.device)
    rows = (place - down[:, None]).clamp(0, SIDE - 1)
    columns = (place - right[:, None]).clamp(0, SIDE - 1)
    number = torch.arange(len(images), device=images.device)
    # This indexing leaves out the channel dimension.
    return images[:, 0][number[:, None, None], rows[:, :, None], columns[:, None, :]].unsqueeze(1)


def within_patch(top, left):
    """Return a mask, bool (B, 1, H, W), of the pixels in a patch with its upper left corner at (top, left), (B,)."""
    place = torch.arange(SIDE, device=top.device)
    rows = (place >= top[:, None]) & (place < top[:, None] + ERASE_SIZE)
    columns = (place >= left[:, None]) & (place < left[:, None] + ERASE_SIZE)
    return (rows[:, :, None] & columns[:, None, :]).unsqueeze(1)


def erase(images, top, left, chosen):
    """Return the images. In the chosen ones (B,) the patch is filled with 0, the mean of the training images."""
    hidden = within_patch(top, left) & chosen[:, None, None, None]
    return images.masked_fill(hidden, 0.0)


def prepare_batch(inputs, labels, rng):
    """Return a training batch as the network is to see it: each image is moved, and some lose a patch."""
    count, device = len(inputs), inputs.device
    down, right = torch.randint(-MAX_SHIFT, MAX_SHIFT + 1, (2, count), generator=rng).to(device)
    top, left = torch.randint(SIDE - ERASE_SIZE + 1, (2, count), generator=rng).to(device)
    chosen = (torch.rand(count, generator=rng) < ERASE_PROB).to(device)
    return erase(shift(inputs, down, right), top, left, chosen), labels


# --- the network ----------------------------------------------------------------------------------------------


def conv(channels_in, channels_out, size=3, stride=1):
    """Return a convolution that keeps or halves the image size. It has no bias, because the norm after it has one."""
    return nn.Conv2d(channels_in, channels_out, size, stride, padding=size // 2, bias=False)


def batch_norm(channels):
    """Return a batch norm. PyTorch's momentum is the share of the new batch, not of the old statistics."""
    return nn.BatchNorm2d(channels, momentum=1 - KEPT)


class SqueezeExcite(nn.Module):
    """Weights the channels of an image by their means over the whole image (Hu et al., arXiv:1709.01507)."""

    def __init__(self, channels):
        super().__init__()
        self.squeeze = nn.Conv2d(channels, channels // REDUCTION, kernel_size=1)
        self.excite = nn.Conv2d(channels // REDUCTION, channels, kernel_size=1)

    def forward(self, x):
        """Return x (B, C, H, W) with each channel multiplied by a number from 0 to 1."""
        shown = x.mean(dim=(2, 3), keepdim=True)
        weights = torch.sigmoid(self.excite(F.relu(self.squeeze(shown))))
        return x * weights


class ResidualBlock(nn.Module):
    """Halves the image: adds the output of two convolutions and a gate to a shortcut."""

    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.first = conv(channels_in, channels_out, stride=2)
        self.first_norm = batch_norm(channels_out)
        self.second = conv(channels_out, channels_out)
        self.second_norm = batch_norm(channels_out)
        self.gate = SqueezeExcite(channels_out)
        self.shortcut = nn.Sequential(
            nn.AvgPool2d(2, ceil_mode=True),
            conv(channels_in, channels_out, size=1),
            batch_norm(channels_out),
        )

    def forward(self, x):
        """Return (B, C_out, H / 2, W / 2) for x (B, C_in, H, W)."""
        change = F.relu(self.first_norm(self.first(x)))
        change = self.gate(self.second_norm(self.second(change)))
        return F.relu(self.shortcut(x) + change)


class ResNet(nn.Module):
    """Images (B, 1, 28, 28) to logits (B, 10)."""

    def __init__(self):
        super().__init__()
        self.stem = conv(1, WIDTH, stride=2)
        self.stem_norm = batch_norm(WIDTH)
        self.blocks = nn.Sequential(ResidualBlock(WIDTH, WIDTH), ResidualBlock(WIDTH, 2 * WIDTH))
        self.head = nn.Linear(2 * WIDTH * 2 * 2, CLASSES)

    def features(self, images):
        """Return the features that the head reads: (B, F)."""
        x = F.relu(self.stem_norm(self.stem(images)))
        # Keep four quarters of the image, because the place of a stroke depends on the digit.
        return F.avg_pool2d(self.blocks(x), 2).flatten(1)

    def forward(self, images):
        """Return the logits of a batch."""
        x = F.dropout(self.features(images), DROPOUT, self.training)
        return self.head(x)


def initialize(model):
    """Draw the weights of convolutions as in He et al. (arXiv:1502.01852), and set the biases to zero."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if isinstance(module, nn.Conv2d | nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def build_model():
    """Return the network: images (B, 1, 28, 28) to logits (B, 10)."""
    model = ResNet()
    initialize(model)
    return model


# --- training -------------------------------------------------------------------------------------------------


def parameter_groups(model):
    """Return the optimizer's groups: weight decay for kernels and matrices, none for biases and norms."""
    kernels = [parameter for name, parameter in model.named_parameters() if parameter.dim() > 1]
    others = [parameter for name, parameter in model.named_parameters() if parameter.dim() == 1]
    return [
        {"params": kernels, "weight_decay": WEIGHT_DECAY},
        {"params": others, "weight_decay": 0.0},
    ]


def build_optimizer(model):
    """Return the optimizer over all parameters of the model: SGD with Nesterov momentum."""
    return torch.optim.SGD(parameter_groups(model), lr=PEAK_LR, momentum=MOMENTUM, nesterov=True)


def build_scheduler(optimizer, total_steps):
    """Return the schedule, stepped once a batch: a linear warm-up, then a cosine to zero."""
    return warmup_cosine(optimizer, warmup_steps=int(WARMUP * total_steps), total_steps=total_steps)


def compute_loss(outputs, labels):
    """Return the training loss, a scalar: cross-entropy of logits (B, 10) against smoothed labels (B,)."""
    return F.cross_entropy(outputs, labels, label_smoothing=SMOOTHING)


def train_step(model, optimizer, inputs, labels):
    """Make one step of the optimizer on one batch, with the gradient clipped, and return the loss."""
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=MAX_GRAD_NORM)
    optimizer.step()
    return loss


# --- validation -----------------------------------------------------------------------------------------------


def confusion(predicted, labels):
    """Return the confusion table (10, 10): true classes are rows, predicted classes are columns."""
    pairs = labels * CLASSES + predicted
    return torch.bincount(pairs, minlength=CLASSES * CLASSES).view(CLASSES, CLASSES)


def recall_by_class(table):
    """Return the recall of each class, given a confusion table."""
    return table.diagonal() / table.sum(dim=1).clamp(min=1)


def likeliest_mistake(table):
    """Return the number of images in the most frequent confusion of one class with another."""
    mistakes = table - table.diagonal().diag()
    return mistakes.max()


@torch.no_grad()
def evaluate(model, inputs, labels):
    """Return loss and accuracy on the whole validation split, the worst class, and the most frequent confusion.

    The images go through the network in batches. Sums over examples give a smaller last batch its proper weight.
    """
    model.eval()
    total = 0.0
    table = torch.zeros(CLASSES, CLASSES, dtype=torch.long, device=labels.device)
    for images, targets in zip(inputs.split(EVAL_BATCH), labels.split(EVAL_BATCH), strict=True):
        outputs = model(images)
        total += F.cross_entropy(outputs, targets, reduction="sum").item()
        table += confusion(outputs.argmax(dim=1), targets)
    return {
        "val_loss": total / len(labels),
        "val_accuracy": table.diagonal().sum().item() / len(labels),
        "worst_class": recall_by_class(table).min().item(),
        "likeliest_mistake": float(likeliest_mistake(table).item()),
    }
