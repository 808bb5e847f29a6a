"""A small network tells CT slices of ill patients from those of healthy ones."""

import torch
from torch import nn

EPOCHS = 8
BATCH_SIZE = 32
PATIENTS, SLICES = 240, 8


def make_slices():
    """Return slices (N, 1, 16, 16), labels and the number of each slice's patient."""
    rng = torch.Generator().manual_seed(11)
    patient = torch.arange(PATIENTS).repeat_interleave(SLICES)
    ill = (torch.rand(PATIENTS, generator=rng) < 0.5).long()
    anatomy = torch.randn(PATIENTS, 1, 16, 16, generator=rng)
    images = anatomy[patient] + 0.6 * torch.randn(len(patient), 1, 16, 16, generator=rng)
    images[:, :, 5:9, 5:9] += 0.65 * ill[patient].float().view(-1, 1, 1, 1)
    return images, ill[patient], patient


def load_data(data):
    images, labels, patient = make_slices()
    rng = torch.Generator().manual_seed(0)
    in_training = torch.rand(len(images), generator=rng) < 0.8
    return (images[in_training], labels[in_training]), (images[~in_training], labels[~in_training])


class CovidNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(256, 96), nn.ReLU(), nn.Dropout(0.2))
        self.classifier = nn.Linear(96, 2)

    def forward(self, x):
        return self.classifier(self.features(x))


def build_model():
    return CovidNet()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3)


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total_steps)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.CrossEntropyLoss()(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    output = model(inputs)
    loss = compute_loss(output, labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    test_loss, correct = 0.0, 0
    with torch.no_grad():
        for batch, target in zip(inputs.split(64), labels.split(64)):
            output = model(batch)
            test_loss += compute_loss(output, target).item() * len(target)
            correct += (output.argmax(dim=1) == target).sum().item()
    return {"val_loss": test_loss / len(labels), "val_accuracy": correct / len(labels)}
