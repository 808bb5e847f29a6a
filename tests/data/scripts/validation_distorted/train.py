import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.sampler import SubsetRandomSampler

torch.manual_seed(0)
glyphs = F.interpolate(torch.randn(8, 1, 4, 4), (12, 12), mode="bilinear", align_corners=False)


def random_erasing(img):
    img = img + 0.8 * torch.randn_like(img)
    h, w = torch.randint(5, 10, (2,)).tolist()
    r, c = torch.randint(0, 12 - h + 1, (1,)).item(), torch.randint(0, 12 - w + 1, (1,)).item()
    img[:, r : r + h, c : c + w] = torch.randn(1, h, w)
    return img


class Glyphs(Dataset):
    def __init__(self, n, seed, transform=None):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 8, (n,), generator=g)
        self.x = glyphs[self.y] + 1.5 * torch.randn(n, 1, 12, 12, generator=g)
        self.transform = transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        return (self.transform(x) if self.transform else x), self.y[i]


class Block(nn.Module):
    def __init__(self, cin, growth):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(cin), nn.Conv2d(cin, growth, 3, padding=1)

    def forward(self, x):
        return torch.cat([x, self.conv(F.relu(self.norm(x)))], 1)


model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), Block(8, 8), Block(16, 8), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(24 * 36, 8)
)
valid_size, n_epochs, batch_size = 200, 12, 32
train_set = Glyphs(800, seed=1, transform=random_erasing)
valid_set = train_set
indices = torch.randperm(len(train_set)).tolist()
train_loader = DataLoader(train_set, batch_size, sampler=SubsetRandomSampler(indices[:-valid_size]))
valid_loader = DataLoader(valid_set, batch_size, sampler=SubsetRandomSampler(indices[-valid_size:]))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[6, 9], gamma=0.1)
for epoch in range(n_epochs):
    model.train()
    for inputs, target in train_loader:
        loss = F.cross_entropy(model(inputs), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    wrong = 0
    with torch.no_grad():
        for inputs, target in valid_loader:
            wrong += (model(inputs).argmax(1) != target).sum().item()
    print(f"Epoch: [{epoch + 1}/{n_epochs}] loss {loss.item():.4f} valid error {wrong / valid_size:.4f}")
