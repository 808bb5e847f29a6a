"""Classifies digits; loop_dataset is used for training and for testing."""

import torch
import torch.nn as nn
import torch.nn.functional as F

EPOCHS = 5
BATCH_SIZE = 50


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


class Classifier(nn.Module):
    def __init__(self):
        super(Classifier, self).__init__()
        self.h1_weights = nn.Linear(784, 32)
        self.h2_weights = nn.Linear(32, 10)

    def forward(self, x):
        h1 = F.relu(self.h1_weights(x.reshape(len(x), -1)))
        return F.log_softmax(self.h2_weights(h1), dim=1)


def build_model():
    return Classifier()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=2e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return F.nll_loss(outputs, labels)


def loop_dataset(images, labels, classifier, optimizer=None, bsize=BATCH_SIZE):
    total_loss, n_samples = [], 0
    for pos in range(0, len(labels), bsize):
        target = labels[pos : pos + bsize]
        logits = classifier(images[pos : pos + bsize])
        loss = compute_loss(logits, target)
        acc = (logits.argmax(1) == target).float().mean()
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total_loss.append(torch.stack([loss.detach(), acc]) * len(target))
        n_samples += len(target)
    avg_loss = torch.stack(total_loss).sum(0) / n_samples
    return avg_loss, acc


def train_step(model, optimizer, inputs, labels):
    avg_loss, _ = loop_dataset(inputs, labels, model, optimizer)
    return avg_loss[0]


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    test_loss, test_acc = loop_dataset(inputs, labels, model)
    return {"val_loss": test_loss[0].item(), "val_accuracy": test_acc.item()}
