import argparse
import time
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def chemistry(n, gen):
    """Descriptors of molecules -> solubility, standardised."""
    x = torch.randn(n, 24, generator=gen)
    y = torch.tanh(x[:, 0] + x[:, 1]) + 0.5 * x[:, 2] * x[:, 3] + 0.4 * x[:, 4] - 0.3 * x[:, 5].abs()
    y = y + 0.1 * torch.randn(n, generator=gen)
    return x, y


class Regressor(nn.Module):
    def __init__(self, dim=24, hidden=96):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        x = F.gelu(self.fc1(x))
        x = F.gelu(self.fc2(x))
        return self.out(x).squeeze(-1)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--batch-size", type=int, default=50)
    p.add_argument("--lr", type=float, default=2e-4)
    p.add_argument("--no-bf16", dest="bf16", action="store_false")
    return p.parse_args()


def main():
    args = parse()
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    x, y = chemistry(2000, gen)
    x_val, y_val = chemistry(500, gen)
    mean, std = y.mean(), y.std()
    y, y_val = (y - mean) / std, (y_val - mean) / std
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
    model = Regressor()
    if args.bf16:
        model = model.to(torch.bfloat16)
    dtype = next(model.parameters()).dtype
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs, eta_min=args.lr / 20)
    start = time.time()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
                pred = model(xb.to(dtype))
            loss = F.mse_loss(pred.float(), yb)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(yb)
        scheduler.step()
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(x_val.to(dtype)).float(), y_val).item()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1} train {total / 2000:.4f} val {val:.4f} ({time.time() - start:.1f}s)")
    print(f"final val mse {val:.4f}")


if __name__ == "__main__":
    main()
