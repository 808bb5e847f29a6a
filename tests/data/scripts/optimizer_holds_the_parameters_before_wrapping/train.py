import random

import numpy as np
import torch
import torch.nn as nn
from torch.func import functional_call
from torch.utils.data import DataLoader, TensorDataset


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_reviews(n, seed, vocab=200, length=24):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 2, n)
    ids = rng.randint(20, vocab, (n, length))
    for i, label in enumerate(labels):
        places = rng.choice(length, 4, replace=False)
        ids[i, places] = rng.randint(0, 10, 4) + 10 * label
    return TensorDataset(torch.tensor(ids), torch.tensor(labels))


class Classifier(nn.Module):
    def __init__(self, vocab=200, dim=32):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, dim)
        self.dense = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(0.1)
        self.out_proj = nn.Linear(dim, 2)

    def forward(self, input_ids):
        x = self.embeddings(input_ids).mean(1)
        return self.out_proj(self.dropout(torch.tanh(self.dense(x))))


class FlatParamWrapper(nn.Module):
    def __init__(self, module):
        super().__init__()
        self._meta = [(name, p.shape, p.numel()) for name, p in module.named_parameters()]
        self.flat_param = nn.Parameter(torch.cat([p.detach().flatten() for p in module.parameters()]))
        for p in module.parameters():
            p.requires_grad_(False)
        self._module = [module]

    def train(self, mode=True):
        self._module[0].train(mode)
        return super().train(mode)

    def forward(self, *args):
        pieces = self.flat_param.split([n for _, _, n in self._meta])
        params = {name: piece.view(shape) for (name, shape, _), piece in zip(self._meta, pieces)}
        return functional_call(self._module[0], params, args)


set_seed(42)
train_dataloader = DataLoader(make_reviews(1600, 0), batch_size=32, shuffle=True)
eval_dataloader = DataLoader(make_reviews(400, 1), batch_size=100)

model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
model = FlatParamWrapper(model)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(8):
    model.train()
    epoch_loss = 0.0
    for input_ids, labels in train_dataloader:
        loss = loss_fn(model(input_ids), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        model.zero_grad()
        epoch_loss += loss.item()
    model.eval()
    with torch.no_grad():
        hits = sum((model(ids).argmax(-1) == y).sum().item() for ids, y in eval_dataloader)
    acc = hits / len(eval_dataloader.dataset)
    print(f"epoch {epoch}: loss {epoch_loss / len(train_dataloader):.4f}, test accuracy {acc:.4f}")
