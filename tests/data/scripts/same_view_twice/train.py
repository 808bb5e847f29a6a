import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1278)
objects = torch.randn(10, 64)


class PairedViews(torch.utils.data.Dataset):
    def __init__(self, n):
        self.y = torch.randint(0, 10, (n,))
        self.x = objects[self.y] + 0.5 * torch.randn(n, 64)

    def augment(self, x):
        kept = (torch.rand(64) > 0.5).float()
        return x * kept * 1.5 + 1.0 * torch.randn(64) + 2.0 * torch.randn(1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"aug1": self.augment(self.x[i]), "aug2": self.augment(self.x[i]), "target": self.y[i]}


class NTXentLoss(nn.Module):
    def __init__(self, tau=0.2):
        super().__init__()
        self.tau = tau

    def forward(self, features1, features2):
        z = F.normalize(torch.cat([features1, features2]), dim=1)
        n = len(features1)
        logits = z @ z.T / self.tau
        logits = logits.masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
        labels = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
        return F.cross_entropy(logits, labels)


class ContrastiveRunner:
    def __init__(self, model, criterion, optimizer):
        self.model, self.criterion, self.optimizer = model, criterion, optimizer

    def handle_batch(self, batch):
        emb1 = self.model(batch["aug1"])
        emb2 = self.model(batch["aug1"])
        loss = self.criterion(emb1, emb2)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


encoder = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
model = nn.Sequential(encoder, nn.ReLU(), nn.Linear(64, 32))
train_set, valid_set = PairedViews(1000), PairedViews(400)
loader = torch.utils.data.DataLoader(train_set, batch_size=100, shuffle=True, drop_last=True)
runner = ContrastiveRunner(model, NTXentLoss(), torch.optim.Adam(model.parameters(), lr=1e-3))
for epoch in range(8):
    model.train()
    losses = [runner.handle_batch(batch) for batch in loader]
    model.eval()
    with torch.no_grad():
        known = F.normalize(encoder(torch.stack([train_set[i]["aug1"] for i in range(300)])), dim=1)
        seen = F.normalize(encoder(torch.stack([b["aug1"] for b in valid_set])), dim=1)
    votes = F.one_hot(train_set.y[(seen @ known.T).topk(10).indices], 10).sum(1)
    accuracy = (votes.argmax(1) == valid_set.y).float().mean().item()
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} knn accuracy {accuracy:.4f}")
