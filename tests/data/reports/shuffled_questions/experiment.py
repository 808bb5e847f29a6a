"""A chatbot learns which of six intents a question has, from a bag of its words."""

import torch
import torch.nn as nn
import torch.nn.functional as F

EPOCHS = 6
BATCH_SIZE = 32
WORDS, INTENTS = 80, 6


def make_questions():
    g = torch.Generator().manual_seed(15)
    usual_words = (torch.rand(INTENTS, WORDS, generator=g) < 0.15).float()
    y = torch.randint(INTENTS, (1500,), generator=g)
    x = usual_words[y]
    other = (torch.rand(x.shape, generator=g) < 0.08).float()
    return (x - other).abs(), y, g


def load_data(data):
    x, y, g = make_questions()
    order = torch.randperm(len(x), generator=g)
    x = x[order]
    return (x[:1200], y[:1200]), (x[1200:], y[1200:])


class IntentNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = nn.Linear(WORDS, 32)
        self.hidden2 = nn.Linear(32, 32)
        self.out = nn.Linear(32, INTENTS)

    def forward(self, bag):
        bag = F.relu(self.hidden1(bag))
        bag = F.relu(self.hidden2(bag))
        return self.out(bag)


def build_model():
    return IntentNet()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=0.002)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return F.cross_entropy(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    output = model(inputs)
    loss = compute_loss(output, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    output = model(inputs)
    guess = output.argmax(1)
    return {"val_loss": compute_loss(output, labels).item(), "val_accuracy": (guess == labels).float().mean().item()}
