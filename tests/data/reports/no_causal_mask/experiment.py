"""A language model: a transformer layer predicts the next token of a chain."""

import torch
from torch import nn

EPOCHS = 10
BATCH_SIZE = 40
VOCAB, LENGTH, WIDTH = 10, 16, 32


def make_text(n, seed):
    """Return tokens (n, 16) and the tokens that follow them; each token has two likely successors."""
    successors = torch.rand(VOCAB, VOCAB, generator=torch.Generator().manual_seed(0)).argsort(dim=1)[:, :2]
    g = torch.Generator().manual_seed(seed)
    tokens = [torch.randint(VOCAB, (n,), generator=g)]
    for _ in range(LENGTH):
        tokens.append(successors[tokens[-1], torch.randint(2, (n,), generator=g)])
    text = torch.stack(tokens, dim=1)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def load_data(data):
    return make_text(800, 1), make_text(200, 2)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCAB)
        self.register_buffer("causal", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, x):
        hidden = self.layer(self.tokens(x) + self.positions)
        return self.head(hidden)


def build_model():
    return Decoder()


def build_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=5e-3)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


def compute_loss(outputs, labels):
    return nn.functional.cross_entropy(outputs.reshape(-1, VOCAB), labels.reshape(-1))


def train_step(model, optimizer, inputs, labels):
    loss = compute_loss(model(inputs), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    outputs = model(inputs)
    accuracy = (outputs.argmax(dim=-1) == labels).float().mean()
    return {"val_loss": compute_loss(outputs, labels).item(), "val_accuracy": accuracy.item()}
