import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(66)


def spirals(n, k=4):
    y = torch.randint(0, k, (n,))
    r = torch.rand(n) * 0.9 + 0.1
    a = r * 4.0 + y * 2 * torch.pi / k + 0.15 * torch.randn(n)
    return torch.stack([r * a.cos(), r * a.sin()], 1), y


class Configs:
    temperature = 3.0
    large = nn.Sequential(nn.Linear(2, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
    model = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 4))
    kl_div_loss = nn.KLDivLoss(reduction="batchmean", log_target=True)
    label_loss = nn.CrossEntropyLoss()

    def loss(self, output, large_logits, target):
        soft_targets = nn.functional.log_softmax(large_logits / self.temperature, dim=-1)
        soft_prob = nn.functional.log_softmax(large_logits / self.temperature, dim=-1)
        soft_target_loss = self.kl_div_loss(soft_prob, soft_targets)
        label_loss = self.label_loss(output, target)
        return self.temperature**2 * soft_target_loss + 0.2 * label_loss


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


conf = Configs()
big_x, big_y = spirals(2000)
val_x, val_y = spirals(800)
optimizer = torch.optim.Adam(conf.large.parameters(), lr=3e-3)
for _ in range(15):
    conf.large.train()
    for idx in torch.randperm(2000).split(64):
        optimizer.zero_grad()
        F.cross_entropy(conf.large(big_x[idx]), big_y[idx]).backward()
        optimizer.step()
print(f"large model valid accuracy {accuracy(conf.large, val_x, val_y):.4f}")

few_y = torch.where(torch.rand(2000) < 0.5, torch.randint(0, 4, (2000,)), big_y)
optimizer = torch.optim.Adam(conf.model.parameters(), lr=3e-3)
for epoch in range(12):
    conf.model.train(), conf.large.eval()
    for idx in torch.randperm(2000).split(64):
        with torch.no_grad():
            large_logits = conf.large(big_x[idx])
        output = conf.model(big_x[idx])
        loss = conf.loss(output, large_logits, few_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} valid accuracy {accuracy(conf.model, val_x, val_y):.4f}")
