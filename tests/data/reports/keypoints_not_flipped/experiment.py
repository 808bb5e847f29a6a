"""Regresses the position of the one bright keypoint in a grey image."""

import torch
from torch import nn

EPOCHS = 10
BATCH_SIZE = 50
SIZE = 16


def draw(count, seed):
    """Return images (count, 1, 16, 16) and keypoints (count, 2), x and y in -1 to 1."""
    g = torch.Generator().manual_seed(seed)
    keypoints = torch.rand(count, 2, generator=g) * 1.6 - 0.8
    axis = torch.linspace(-1, 1, SIZE)
    x = (axis.view(1, 1, SIZE) - keypoints[:, 0].view(-1, 1, 1)) ** 2
    y = (axis.view(1, SIZE, 1) - keypoints[:, 1].view(-1, 1, 1)) ** 2
    images = torch.exp(-(x + y) / 0.05) + 0.1 * torch.randn(count, SIZE, SIZE, generator=g)
    return images.unsqueeze(1), keypoints


def load_data(data):
    return draw(1000, seed=1), draw(250, seed=2)


def flip_keypoints(keypoints):
    flipped = keypoints.clone()
    flipped[:, 0] = -flipped[:, 0]
    return keypoints


def prepare_batch(inputs, labels, rng):
    flip = torch.rand(len(inputs), generator=rng) < 0.5
    inputs, labels = inputs.clone(), labels.clone()
    inputs[flip] = inputs[flip].flip(-1)
    labels[flip] = flip_keypoints(labels[flip])
    return inputs, labels


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Flatten(), nn.Linear(SIZE * SIZE, 64), nn.ReLU())
        self.regressor = nn.Linear(64, 2)

    def forward(self, img):
        return self.regressor(self.backbone(img))


def build_model():
    return PoseNet()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=2e-3)


def build_scheduler(optimizer, total_steps):
    return None


def compute_loss(outputs, labels):
    return nn.functional.mse_loss(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    loss = compute_loss(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    return {"val_loss": compute_loss(model(inputs), labels).item()}
