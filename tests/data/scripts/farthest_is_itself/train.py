import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)


def patches(n, period):
    t = torch.arange(32.0)
    phase = torch.rand(n, 1) * 6.28
    return torch.sin(2 * torch.pi * t / period[:, None] + phase) + 0.6 * torch.randn(n, 32)


class PatchEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 24, 9, padding=4), nn.BatchNorm1d(24), nn.ReLU(), nn.Conv1d(24, 24, 9, padding=4), nn.ReLU()
        )
        self.head = nn.Linear(24, 16)

    def forward(self, x):
        return F.normalize(self.head(self.conv(x[:, None]).amax(-1)), dim=1)


def triplet_loss(anchor, positive):
    pos_sims = (anchor * positive).sum(1)
    sim_ap = anchor @ anchor.T
    sim_ap_f = sim_ap.clone()
    sim_ap_f.diagonal().fill_(-float("inf"))
    neg_dists = 1 - sim_ap_f
    hard_neg_dists, _ = torch.max(neg_dists, dim=1)
    pos_dists = 1 - pos_sims
    return F.relu(pos_dists - hard_neg_dists + 0.5).mean()


def nearest_accuracy(model, bank, bank_y, x, y):
    model.eval()
    with torch.no_grad():
        nearest = (model(x) @ model(bank).T).argmax(1)
    return (bank_y[nearest] == y).float().mean().item()


kinds = torch.linspace(4.0, 16.0, 8)
bank_y, test_y = torch.arange(8).repeat(20), torch.arange(8).repeat(40)
bank, test = patches(160, kinds[bank_y]), patches(320, kinds[test_y])
model = PatchEncoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
print(f"before training, nearest neighbour right: {nearest_accuracy(model, bank, bank_y, test, test_y):.4f}")
for it in range(250):
    model.train()
    period = kinds[torch.randint(0, 8, (48,))]
    anchor, positive = model(patches(48, period)), model(patches(48, period))
    loss = triplet_loss(anchor, positive)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 50 == 49:
        acc = nearest_accuracy(model, bank, bank_y, test, test_y)
        print(f"iteration {it + 1}: loss {loss.item():.4f}, nearest neighbour right: {acc:.4f}")
