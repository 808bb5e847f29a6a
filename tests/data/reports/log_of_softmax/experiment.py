"""Classifies vectors that are sums of embeddings; a few of them are sums of very many."""

import torch
import torch.nn.functional as F

EPOCHS = 5
BATCH_SIZE = 32
CLASSES = 5


def load_data(data):
    g = torch.Generator().manual_seed(2797)
    centers = torch.randn(CLASSES, 50, generator=g)
    labels = torch.randint(CLASSES, (1500,), generator=g)
    vectors = centers[labels] + 1.6 * torch.randn(1500, 50, generator=g)
    vectors = vectors * torch.where(torch.rand(1500, 1, generator=g) < 0.01, 60.0, 1.0)
    return (vectors[:1200], labels[:1200]), (vectors[1200:], labels[1200:])


class DecomposableModel(torch.nn.Module):
    def __init__(self, projection_dim=40):
        super().__init__()
        self._project = torch.nn.Linear(50, projection_dim)
        self._aggregate = torch.nn.Sequential(
            torch.nn.ReLU(), torch.nn.Linear(projection_dim, projection_dim), torch.nn.ReLU()
        )
        self._classify = torch.nn.Linear(projection_dim, CLASSES)

    def forward(self, vectors):
        return self._classify(self._aggregate(self._project(vectors)))


def build_model():
    return DecomposableModel()


def build_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    one_hot = F.one_hot(labels, CLASSES).float()
    log_label_probs = torch.log(F.softmax(outputs, dim=-1))
    return -torch.sum(log_label_probs * one_hot) / len(labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = compute_loss(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


def evaluate(model, inputs, labels):
    model.eval()
    with torch.no_grad():
        label_logits = model(inputs)
        accuracy = (label_logits.argmax(-1) == labels).float().mean().item()
    return {"val_loss": compute_loss(label_logits, labels).item(), "val_accuracy": accuracy}
