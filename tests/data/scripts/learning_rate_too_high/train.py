"""Transformer encoder that classifies token sequences (protein-family style)."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

ALPHABET, LENGTH, FAMILIES = 20, 24, 5


def sequences(n, seed):
    g = torch.Generator().manual_seed(seed)
    motifs = torch.randint(0, ALPHABET, (FAMILIES, 5), generator=torch.Generator().manual_seed(9))
    x = torch.randint(0, ALPHABET, (n, LENGTH), generator=g)
    y = torch.randint(0, FAMILIES, (n,), generator=g)
    at = torch.randint(0, LENGTH - 5, (n,), generator=g)
    for k in range(5):
        x[torch.arange(n), at + k] = motifs[y, k]
    return TensorDataset(x, y)


class FamilyClassifier(nn.Module):
    def __init__(self, dim=32, heads=4, layers=2):
        super().__init__()
        self.token = nn.Embedding(ALPHABET, dim)
        self.position = nn.Parameter(torch.randn(LENGTH, dim) * 0.02)
        self.mix = nn.Conv1d(dim, dim, 3, padding=1)
        layer = nn.TransformerEncoderLayer(dim, heads, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, FAMILIES)

    def forward(self, x):
        h = self.token(x) + self.position
        h = h + self.mix(h.transpose(1, 2)).transpose(1, 2)
        return self.head(self.norm(self.encoder(h)).amax(dim=1))


def run_epoch(model, loader, criterion, optimizer=None):
    training = optimizer is not None
    model.train(training)
    loss_sum = hits = n = 0
    with torch.set_grad_enabled(training):
        for x, y in loader:
            logits = model(x)
            loss = criterion(logits, y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
            n += len(y)
    return loss_sum / n, hits / n


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(sequences(1000, 1), batch_size=32, shuffle=True)
    val_loader = DataLoader(sequences(300, 2), batch_size=150)
    model = FamilyClassifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for epoch in range(6):
        tl, ta = run_epoch(model, train_loader, criterion, optimizer)
        vl, va = run_epoch(model, val_loader, criterion)
        print(f"epoch {epoch} train {tl:.3f}/{ta:.3f} val {vl:.3f}/{va:.3f}")
    print(f"validation accuracy {va:.3f}")


if __name__ == "__main__":
    main()
