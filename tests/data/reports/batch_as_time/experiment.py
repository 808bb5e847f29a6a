"""An LSTM reads the 28 rows of a digit, one row a step."""

import torch
from torch import nn

EPOCHS = 6
BATCH_SIZE = 40


def load_data(data):
    rows = lambda split: split.images.float().div(255).squeeze(1)
    return (rows(data.train), data.train.labels), (rows(data.validation), data.validation.labels)


class Rnn(nn.Module):
    def __init__(self, in_dim, hidden_dim, n_layer, n_class):
        super(Rnn, self).__init__()
        self.n_layer = n_layer
        self.hidden_dim = hidden_dim
        self.lstm = nn.LSTM(in_dim, hidden_dim, n_layer)
        self.classifier = nn.Linear(hidden_dim, n_class)

    def forward(self, x):
        out, _ = self.lstm(x)
        out = out[:, -1, :]
        return self.classifier(out)


def build_model():
    return Rnn(28, 32, 1, 10)


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=1e-2)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


criterion = nn.CrossEntropyLoss()


def compute_loss(outputs, labels):
    return criterion(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    out = model(inputs)
    loss = criterion(out, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    eval_loss, eval_acc = 0.0, 0.0
    with torch.no_grad():
        for img, label in zip(inputs.split(BATCH_SIZE), labels.split(BATCH_SIZE)):
            out = model(img)
            eval_loss += criterion(out, label).item() * label.size(0)
            _, pred = torch.max(out, 1)
            eval_acc += (pred == label).sum().item()
    return {"val_loss": eval_loss / len(labels), "val_accuracy": eval_acc / len(labels)}
