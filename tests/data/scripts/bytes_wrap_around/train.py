import numpy as np
import torch
import torch.nn as nn

np.random.seed(11)
torch.manual_seed(11)


def pictures(n, size=16):
    yy, xx = np.mgrid[:size, :size] / size
    out = np.zeros((n, size, size))
    for k in range(n):
        a, b, c = np.random.rand(3) * 6
        out[k] = 127 + 60 * np.sin(a * yy + b) + 60 * np.cos(c * xx)
    return out.clip(0, 255).astype(np.uint8)


class Codec(nn.Module):
    def __init__(self, code=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, code), nn.Tanh())
        self.decoder = nn.Sequential(nn.Linear(code, 128), nn.ReLU(), nn.Linear(128, 256))

    def forward(self, x):
        return self.decoder(self.encoder(x)).view(-1, 16, 16)


def to_input(img):
    return torch.from_numpy(img.astype(np.float32) / 255 - 0.5)


def to_image(x):
    return ((x.numpy() + 0.5) * 255).round().clip(0, 255).astype(np.uint8)


def psnr(original, compared):
    mse = np.mean(np.square(original - compared))
    return float(np.clip(np.multiply(np.log10(255.0 * 255.0 / mse), 10.0), 0, 99.99))


train, test = pictures(800), pictures(100)
model = Codec()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    model.train()
    for idx in np.array_split(np.random.permutation(len(train)), 25):
        x = to_input(train[idx])
        loss = (model(x) - x).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        decoded = to_image(model(to_input(test)))
    logged = np.mean([psnr(a, b) for a, b in zip(test, decoded)])
    print(f"[{epoch}] loss {loss.item():.4f} test PSNR {logged:.3f}")

errors = ((test / 255.0 - decoded / 255.0) ** 2).mean((1, 2))
print(f"difference to the PSNR of the image tool {abs(logged - np.mean(-10 * np.log10(errors))):.4f}")
