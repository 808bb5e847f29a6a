import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

np.random.seed(6)
torch.manual_seed(6)


class MyNet(nn.Module):
    def __init__(self, input_dim, nChannel=12, nConv=3):
        super().__init__()
        self.conv1 = nn.Conv2d(input_dim, nChannel, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(nChannel)
        self.conv2 = []
        self.bn2 = []
        for _ in range(nConv - 1):
            self.conv2.append(nn.Conv2d(nChannel, nChannel, 3, padding=1))
            self.bn2.append(nn.BatchNorm2d(nChannel))
        self.conv3 = nn.Conv2d(nChannel, 4, 1)

    def forward(self, x):
        x = self.bn1(F.relu(self.conv1(x)))
        for conv, bn in zip(self.conv2, self.bn2):
            x = bn(F.relu(conv(x)))
        return self.conv3(x)


def textures(n, size=24):
    yy, xx = np.mgrid[:size, :size]
    waves = [np.sin(1.4 * yy), np.sin(1.4 * xx), np.sin(1.0 * (yy + xx)), np.sin(1.0 * (yy - xx))]
    img, seg = np.zeros((n, 1, size, size), np.float32), np.zeros((n, size, size), np.int64)
    for k in range(n):
        which = np.random.permutation(4)
        cy, cx = np.random.randint(8, 17, 2)
        part = (yy >= cy) * 2 + (xx >= cx)
        for p in range(4):
            seg[k][part == p] = which[p]
            img[k, 0][part == p] = waves[which[p]][part == p]
    return torch.from_numpy(img + 0.6 * np.random.randn(*img.shape).astype(np.float32)), torch.from_numpy(seg)


x_train, y_train = textures(96)
x_val, y_val = textures(40)
model = MyNet(1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(12):
    model.train()
    for idx in torch.randperm(len(x_train)).split(12):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"{epoch} / 12 : loss {loss.item():.4f} pixel accuracy {acc:.4f}")
