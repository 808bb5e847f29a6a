import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)


def crowd(n):
    """A pedestrian has an identity; a camera measures where it stands in millimetres."""
    ident = torch.randint(0, 12, (n,))
    place = torch.randn(n, 2)
    look = people[ident] + 0.5 * torch.randn(n, 16)
    x = torch.cat([look, place + 0.02 * torch.randn(n, 2)], 1)
    return x, ident, place * 40 + 10 * torch.randn(n, 2)


people = torch.randn(12, 16)


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(18, 64), nn.ReLU(), nn.Linear(64, 48), nn.ReLU())
        self.reid, self.det = nn.Linear(48, 12), nn.Linear(48, 2)

    def forward(self, x):
        h = self.trunk(x)
        return self.reid(h), self.det(h)


class MotLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.s_det = nn.Parameter(torch.zeros(1))
        self.s_id = nn.Parameter(torch.zeros(1))

    def forward(self, outputs, ident, place):
        id_loss, det_loss = F.cross_entropy(outputs[0], ident), F.mse_loss(outputs[1], place)
        loss = torch.exp(-self.s_det) * det_loss + torch.exp(-self.s_id) * id_loss + (self.s_det + self.s_id)
        return loss.sum() * 0.5, {"id": id_loss.item(), "det": det_loss.item()}


train, val = crowd(1500), crowd(500)
model, criterion = Tracker(), MotLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=5e-4, momentum=0.9)
for epoch in range(30):
    model.train()
    for idx in torch.randperm(1500).split(50):
        loss, stats = criterion(model(train[0][idx]), train[1][idx], train[2][idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 20.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        reid, det = model(val[0])
    right = (reid.argmax(1) == val[1]).float().mean().item()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} {stats} det error {F.l1_loss(det, val[2]).item():.2f} identities right {right:.4f}")
