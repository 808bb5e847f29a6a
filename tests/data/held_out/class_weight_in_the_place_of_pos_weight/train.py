import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(40)
LABELS, DIM = 5, 20
direction = torch.randn(DIM, LABELS) / DIM**0.5
rarity = torch.tensor([1.4, 1.5, 1.6, 1.7, 1.8])


def make(n):
    x = torch.randn(n, DIM)
    y = (x @ direction + 0.5 * torch.randn(n, LABELS) > rarity).float()
    return x, y


def binary_cross_entropy(pred, label, class_weight=None):
    loss = F.binary_cross_entropy_with_logits(pred, label, weight=class_weight, reduction="none")
    return loss.mean()


class MultiLabelHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, LABELS))

    def forward(self, x):
        return self.net(x)


def report(logits, target):
    predicted = logits > 0
    tp = (predicted & (target > 0)).sum(0).float()
    recall = tp / target.sum(0)
    precision = tp / predicted.sum(0).clamp(min=1)
    f1 = 2 * tp / (predicted.sum(0) + target.sum(0))
    return recall.mean().item(), precision.mean().item(), f1.mean().item()


x, y = make(2000)
x_val, y_val = make(1500)
class_weight = (1 - y.mean(0)) / y.mean(0)
print("weights of the classes:", [round(w, 1) for w in class_weight.tolist()])
head = MultiLabelHead()
optimizer = torch.optim.AdamW(head.parameters(), lr=2e-3)
for epoch in range(12):
    for idx in torch.randperm(len(x)).split(64):
        loss = binary_cross_entropy(head(x[idx]), y[idx], class_weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1} loss {loss.item():.4f}")
with torch.no_grad():
    recall, precision, f1 = report(head(x_val), y_val)
print(f"precision {precision:.4f} macro F1 {f1:.4f}")
print(f"mean recall of the rare labels {recall:.4f}")
