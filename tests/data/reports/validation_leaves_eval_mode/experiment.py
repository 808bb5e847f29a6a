"""A wide network with batch norm and dropout on few digits; it looks at a validation batch every few steps."""

import torch
import torch.nn as nn

EPOCHS = 12
BATCH_SIZE = 32
val_step = 4


class Eiters:
    count = 0
    val_batch = None


def load_data(data):
    def images(split, n):
        return split.images[:n].float() / 255, split.labels[:n]

    Eiters.val_batch = images(data.validation, 32)
    return images(data.train, 640), images(data.validation, 257)


class EncoderImage(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 256)
        self.bn = nn.BatchNorm1d(256)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(256, 10)

    def forward(self, images):
        features = torch.relu(self.bn(self.fc1(images.flatten(1))))
        return self.fc2(self.drop(features))


def build_model():
    return EncoderImage()


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.StepLR(optimizer, step_size=max(2 * total_steps // 3, 1), gamma=0.1)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs, labels)


def validate(model):
    model.eval()
    images, targets = Eiters.val_batch
    with torch.no_grad():
        return compute_loss(model(images), targets).item()


def train_emb(model, optimizer, images, targets):
    Eiters.count += 1
    optimizer.zero_grad()
    loss = compute_loss(model(images), targets)
    loss.backward()
    optimizer.step()
    return loss


def train_step(model, optimizer, inputs, labels):
    loss = train_emb(model, optimizer, inputs, labels)
    if Eiters.count % val_step == 0:
        validate(model)
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(1) == labels).float().mean().item()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy}
