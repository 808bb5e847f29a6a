import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(73)
looks = torch.randn(6, 30) * 1.2


def views(n):
    y = torch.randint(0, 6, (n,))
    return looks[y] * 2 + 6 + 2.0 * torch.randn(n, 30), y


class EMA:
    def __init__(self, beta):
        self.beta = beta

    def update_average(self, old, new):
        return old * self.beta + (1 - self.beta) * new


def update_moving_average(ema_updater, ma_model, current_model):
    for current_params, ma_params in zip(current_model.parameters(), ma_model.parameters()):
        ma_params.data = ema_updater.update_average(ma_params.data, current_params.data)


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


online = nn.Sequential(
    nn.Linear(30, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 6)
)
target = copy.deepcopy(online).eval().requires_grad_(False)
updater = EMA(0.95)
labeled_x, labeled_y = views(120)
unlabeled_x, _ = views(1200)
test_x, test_y = views(600)
opt = torch.optim.Adam(online.parameters(), lr=1e-3)
for epoch in range(10):
    for idx in torch.randperm(1200).split(40):
        online.train()
        pick = torch.randint(0, 120, (40,))
        noisy = unlabeled_x[idx] + 0.5 * torch.randn(40, 30)
        with torch.no_grad():
            wanted = target(unlabeled_x[idx]).softmax(1)
        logits = online(torch.cat([labeled_x[pick], noisy]))
        supervised = F.cross_entropy(logits[:40], labeled_y[pick])
        consistency = F.mse_loss(logits[40:].softmax(1), wanted)
        opt.zero_grad()
        (supervised + min(1.0, epoch / 5) * consistency).backward()
        opt.step()
        update_moving_average(updater, target, online)
    s, t = accuracy(online, test_x, test_y), accuracy(target, test_x, test_y)
    print(f"epoch {epoch} supervised {supervised.item():.4f} student {s:.4f} averaged model {t:.4f}")
