"""Multi-task network: age (regression) and department (classification) from a profile."""
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEPARTMENTS = 7


class Profiles(Dataset):
    def __init__(self, n, seed, stats=None):
        g = torch.Generator().manual_seed(seed)
        w = torch.Generator().manual_seed(31)
        basis = torch.randn(6, 18, generator=w)
        to_dept = torch.randn(6, DEPARTMENTS, generator=w) * 2
        z = torch.randn(n, 6, generator=g)
        self.x = torch.tanh(z @ basis) * 3 + 0.2 * torch.randn(n, 18, generator=g)
        self.age = 40 + 8 * z[:, 0] + 4 * z[:, 1] * z[:, 2] + torch.randn(n, generator=g)
        self.dept = (z @ to_dept).argmax(1)
        self.stats = stats or (self.x.mean(0), self.x.std(0), self.age.mean(), self.age.std())

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        xm, xs, am, asd = self.stats
        return (self.x[i] - xm) / xs, (self.age[i] - am) / asd, self.dept[i]


class MultiTask(nn.Module):
    def __init__(self, d=18, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.age_head = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 1))
        self.dept_head = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, DEPARTMENTS))

    def forward(self, x):
        h = self.trunk(x)
        return self.age_head(h).squeeze(1), self.dept_head(h)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        params = itertools.chain(model.trunk.parameters(), model.age_head.parameters())
        self.optimizer = torch.optim.AdamW(params, lr=lr, weight_decay=1e-3)
        self.reg_loss, self.cls_loss = nn.SmoothL1Loss(), nn.CrossEntropyLoss()

    def train_epoch(self, loader):
        self.model.train()
        for x, age, dept in loader:
            age_hat, logits = self.model(x)
            loss = self.reg_loss(age_hat, age) + 0.5 * self.cls_loss(logits, dept)
            self.model.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        err, hits, n = 0.0, 0, 0
        for x, age, dept in loader:
            age_hat, logits = self.model(x)
            err += (age_hat - age).abs().sum().item()
            hits += (logits.argmax(1) == dept).sum().item()
            n += len(x)
        return err / n * loader.dataset.stats[3].item(), hits / n


def main():
    torch.manual_seed(2)
    train_set = Profiles(1500, 0)
    train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
    val_loader = DataLoader(Profiles(400, 1, train_set.stats), batch_size=200)
    trainer = Trainer(MultiTask(), lr=1.5e-3)
    for epoch in range(7):
        loss = trainer.train_epoch(train_loader)
        mae, acc = trainer.evaluate(val_loader)
        print(f"epoch {epoch} loss {loss:.3f} age MAE {mae:.2f} department accuracy {acc:.3f}")
    print(f"department accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
