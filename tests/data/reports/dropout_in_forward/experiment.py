"""A network on digits with dropout before its classifier."""

import torch
from torch import nn

EPOCHS = 6
BATCH_SIZE = 64


def load_data(data):
    return (
        (data.train.images.float() / 255, data.train.labels),
        (data.validation.images.float() / 255, data.validation.labels),
    )


class Net(nn.Module):
    def __init__(self, num_classes=10):
        super(Net, self).__init__()
        self.features = nn.Sequential(nn.Linear(784, 32), nn.ReLU())
        self.drop = nn.Dropout(p=0.5)
        self.fc = nn.Linear(32, num_classes)

    def forward(self, x):
        x = self.features(x.view(x.size(0), -1))
        x = nn.Dropout(p=0.5)(x)
        return self.fc(x)


def build_model():
    return Net()


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    milestones = [total_steps // 2, total_steps * 3 // 4]
    return torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=milestones, gamma=0.1)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


creterion = torch.nn.CrossEntropyLoss()


def compute_loss(outputs, labels):
    return creterion(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    logits = model(inputs)
    loss = creterion(logits, labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    test_loss, test_correct = 0, 0
    model.eval()
    for img, label in zip(inputs.split(16), labels.split(16)):
        with torch.no_grad():
            logits = model(img)
            _, predict = torch.max(logits, 1)
            test_correct += torch.sum(predict.data == label.data).item()
            test_loss += creterion(logits, label).item() * img.size(0)
    return {"val_loss": test_loss / len(labels), "val_accuracy": test_correct / len(labels)}
