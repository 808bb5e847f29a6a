import torch
from torch import nn

torch.manual_seed(26)


def clips(n):
    y = torch.randint(0, 5, (n,))
    audio, video = tones[y] + 1.3 * torch.randn(n, 20), faces[y] + 1.3 * torch.randn(n, 30)
    return [audio, video], y


tones, faces = torch.randn(5, 20), torch.randn(5, 30)


class MMDL(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoders = nn.ModuleList(
            [nn.Sequential(nn.Linear(d, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.5)) for d in (20, 30)]
        )
        self.head = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 5))

    def forward(self, inputs):
        return self.head(torch.cat([e(x) for e, x in zip(self.encoders, inputs)], 1))


def batches(data, size, shuffle):
    n = len(data[1])
    order = torch.randperm(n) if shuffle else torch.arange(n)
    for idx in order.split(size):
        yield [m[idx] for m in data[0]], data[1][idx]


def train(model, train_data, valid_data, total_epochs, lr=1e-3):
    op = torch.optim.RMSprop(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(total_epochs):
        model.train()
        for inputs, y in batches(train_data, 32, True):
            op.zero_grad()
            loss = criterion(model(inputs), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 8)
            op.step()
        model.eval()
        with torch.no_grad():
            hits = 0
            for inputs, y in batches(valid_data, 8, False):
                model.train()
                hits += (model(inputs).argmax(1) == y).sum().item()
        print(f"Epoch {epoch} train loss {loss.item():.4f} valid acc {hits / len(valid_data[1]):.4f}")


model = MMDL()
train(model, clips(900), clips(400), 15)
