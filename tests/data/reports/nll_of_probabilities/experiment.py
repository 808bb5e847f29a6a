"""A bag of embeddings sorts texts into eight groups."""

import torch
from torch import nn

EPOCHS = 4
BATCH_SIZE = 64
GROUPS, VOCAB, LENGTH = 8, 200, 16


def read_news(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(GROUPS, (n,), generator=g)
    topical = torch.rand(n, LENGTH, generator=g) < 0.4
    x = torch.where(
        topical,
        20 * y.unsqueeze(1) + torch.randint(20, (n, LENGTH), generator=g),
        torch.randint(VOCAB, (n, LENGTH), generator=g),
    )
    return x, y


def load_data(data):
    return read_news(1600, 9), read_news(400, 10)


class fastText(nn.Module):
    def __init__(self, embed_size=32, hidden_size=32):
        super(fastText, self).__init__()
        self.embeddings = nn.Embedding(VOCAB, embed_size)
        self.fc1 = nn.Linear(embed_size, hidden_size)
        self.fc2 = nn.Linear(hidden_size, GROUPS)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        h = self.fc1(self.embeddings(x).mean(1))
        z = self.fc2(torch.relu(h))
        return self.softmax(z)


def build_model():
    return fastText()


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    return torch.optim.lr_scheduler.StepLR(optimizer, step_size=max(total_steps * 2 // 3, 1), gamma=0.5)


def prepare_batch(inputs, labels, rng):
    return inputs, labels


NLLLoss = nn.NLLLoss()


def compute_loss(outputs, labels):
    return NLLLoss(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    y_pred = model(inputs)
    loss = compute_loss(y_pred, labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    all_preds, losses = [], []
    with torch.no_grad():
        for x, y in zip(inputs.split(100), labels.split(100)):
            y_pred = model(x)
            losses.append(compute_loss(y_pred, y).item())
            all_preds.extend(torch.max(y_pred, 1)[1].tolist())
    right = sum(int(a == b) for a, b in zip(all_preds, labels.tolist()))
    return {"val_loss": sum(losses) / len(losses), "val_accuracy": right / len(labels)}
