"""A network on digits with an exponential schedule."""

import torch
from torch import nn, optim

EPOCHS = 6
BATCH_SIZE = 32
STEPS_PER_EPOCH = 40


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 48), nn.LeakyReLU(0.1), nn.Linear(48, 48), nn.LeakyReLU(0.1))
        self.final = nn.Linear(48, 10)

    def forward(self, x):
        return self.final(self.layers(x.flatten(start_dim=1)))


def build_model():
    return Net()


def build_optimizer(model):
    return optim.SGD(model.parameters(), lr=0.05)


def build_scheduler(optimizer, total_steps):
    return optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.85)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


loss_fct = nn.CrossEntropyLoss()


def compute_loss(outputs, labels):
    return loss_fct(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    preds = model(inputs)
    loss = loss_fct(preds, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    val_loss_total, num_correct = 0.0, 0
    with torch.no_grad():
        for batch_x, batch_y in zip(inputs.split(BATCH_SIZE), labels.split(BATCH_SIZE)):
            preds = model(batch_x)
            val_loss_total += loss_fct(preds, batch_y).item() * len(batch_y)
            num_correct += (preds.argmax(dim=1) == batch_y).sum().item()
    return {"val_loss": val_loss_total / len(labels), "val_accuracy": num_correct / len(labels)}
