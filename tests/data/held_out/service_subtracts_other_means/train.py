import numpy as np
import torch
import torch.nn as nn

np.random.seed(61)
torch.manual_seed(61)
NAMES = ["sunset", "forest", "sea", "snow", "desert"]
TONES = np.array([[200, 110, 70], [60, 110, 50], [50, 110, 170], [215, 220, 230], [200, 170, 110]], float)
mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def photo(label, size=16):
    """Height x width x channel, bytes: sky in a random shade above, land of the class below."""
    img = np.empty((size, size, 3))
    horizon = np.random.randint(3, 9)
    img[:horizon] = np.random.uniform(60, 220, 3)
    img[horizon:] = TONES[label] + np.random.uniform(-25, 25, 3)
    return np.clip(img + 25 * np.random.randn(size, size, 3), 0, 255).astype(np.uint8)


def album(n):
    y = np.random.randint(0, len(NAMES), n)
    return [photo(k) for k in y], torch.from_numpy(y)


def to_tensor(img):
    return torch.from_numpy(img.transpose(2, 0, 1).astype(np.float32)) / 255


def training_transform(img):
    if np.random.rand() < 0.5:
        img = img[:, ::-1].copy()
    return (to_tensor(img) - mean) / std


class ZNet(nn.Module):
    def __init__(self, w=16):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, w, 3, 2, 1), nn.ReLU(), nn.Conv2d(w, 2 * w, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.output = nn.Linear(8 * w, len(NAMES))

    def forward(self, x):
        return self.output(self.features(x).flatten(1))


# ---- training
net = ZNet()
imgs, labels = album(600)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(10):
    hits = 0
    for idx in torch.randperm(len(imgs)).split(30):
        x, y = torch.stack([training_transform(imgs[i]) for i in idx]), labels[idx]
        out = net(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += (out.argmax(1) == y).sum().item()
    print("epoch %d: loss %.3f, training accuracy %.3f" % (epoch, loss.item(), hits / len(imgs)))

# ---- service
net.eval()
imagenet_mean = np.array([104.0, 117.0, 124.0], dtype=np.float32)


def preprocess(img):
    img = img.astype(np.float32) - imagenet_mean
    return torch.from_numpy(img.transpose(2, 0, 1))


@torch.no_grad()
def classify(img):
    probs = nn.Softmax(dim=-1)(net(preprocess(img)[None]))
    return int(probs.argmax()), float(probs.max())


requests, truth = album(300)
answers = [classify(img) for img in requests]
for (k, p), t in list(zip(answers, truth.tolist()))[:4]:
    print(f"  {NAMES[k]:7s} {p:.2f}   (is {NAMES[t]})")
print("accuracy of the service %.4f" % np.mean([k == t for (k, _), t in zip(answers, truth.tolist())]))
