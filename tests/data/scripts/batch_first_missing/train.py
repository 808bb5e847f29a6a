import argparse
import torch
import torch.nn as nn
from torch.utils.data import TensorDataset, DataLoader


def make_logs(n, length, n_events, generator):
    """Event sequences; the label is the event that follows the alarm event 0."""
    x = torch.randint(1, n_events, (n, length), generator=generator)
    pos = torch.randint(0, length - 1, (n,), generator=generator)
    x[torch.arange(n), pos] = 0
    y = x[torch.arange(n), pos + 1] - 1
    return x, y


class EventTransformer(nn.Module):
    def __init__(self, n_events, length, d_model=32, nhead=4, layers=2):
        super().__init__()
        self.tok = nn.Embedding(n_events, d_model)
        self.pos = nn.Parameter(torch.randn(1, length, d_model) * 0.3)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward=64, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.fc = nn.Linear(d_model, n_events - 1)

    def forward(self, x):                       # x: (batch, length)
        h = self.encoder(self.tok(x) + self.pos)
        return self.fc(h.mean(dim=1))


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(-1) == y).sum().item()
            total += len(y)
    return right / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=14)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--length", type=int, default=8)
    p.add_argument("--events", type=int, default=6)
    args = p.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    train = TensorDataset(*make_logs(2500, args.length, args.events, g))
    val = TensorDataset(*make_logs(400, args.length, args.events, g))
    train_loader = DataLoader(train, batch_size=50, shuffle=True)
    val_loader = DataLoader(val, batch_size=64)

    model = EventTransformer(args.events, args.length)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, args.lr, total_steps=args.epochs * len(train_loader))
    ce = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            opt.zero_grad()
            loss = ce(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
        print(f"epoch {epoch} last loss {loss.item():.3f} val acc {evaluate(model, val_loader):.3f}")
    print(f"final val acc {evaluate(model, val_loader):.4f}")


if __name__ == "__main__":
    main()
