import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(50)


def picture(size=32):
    """Some overlapping shaded rectangles."""
    img = torch.full((1, size, size), 0.5)
    for _ in range(6):
        y, x = torch.randint(0, size - 8, (2,)).tolist()
        h, w = torch.randint(4, 14, (2,)).tolist()
        img[:, y : y + h, x : x + w] = torch.rand(1) * torch.linspace(0.6, 1.0, min(w, size - x))
    return img


def lowres(hr):
    return F.avg_pool2d(hr, 2)


class SRNet(nn.Module):
    def __init__(self, nf=24):
        super().__init__()
        self.conv_first = nn.Conv2d(1, nf, 3, padding=1)
        self.trunk = nn.Sequential(nn.ReLU(), nn.Conv2d(nf, nf, 3, padding=1), nn.ReLU())
        self.conv_last = nn.Conv2d(nf, 4, 3, padding=1)

    def forward(self, lr):
        base = F.interpolate(lr, scale_factor=2, mode="bilinear", align_corners=False)
        return base + F.pixel_shuffle(self.conv_last(self.trunk(self.conv_first(lr))), 2)


def calculate_psnr(a, b):
    return (-10 * torch.log10(((a.clamp(0, 1) - b) ** 2).mean())).item()


def validate(model, val_samples):
    model.eval()
    avg_psnr = 0.0
    with torch.no_grad():
        for idx, hr in enumerate(val_samples):
            sr = model(lowres(hr[None]))
            avg_psnr += calculate_psnr(sr, hr[None])
    return avg_psnr / idx


def train(args):
    hr_train = torch.stack([picture() for _ in range(args["images"])])
    val_samples = [picture() for _ in range(args["val_images"])]
    model = SRNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args["lr"])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 8, 0.5)
    best, path = 0.0, os.path.join(tempfile.mkdtemp(), "best.pt")
    for epoch in range(args["epochs"]):
        model.train()
        total = 0.0
        for batch in hr_train[torch.randperm(len(hr_train))].split(args["batch"]):
            loss = F.l1_loss(model(lowres(batch)), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        scheduler.step()
        psnr = validate(model, val_samples)
        if psnr > best:
            best = psnr
            torch.save(model.state_dict(), path)
        print(f"epoch {epoch + 1} l1 {total / len(hr_train):.4f} psnr {psnr:.3f}")
    model.load_state_dict(torch.load(path))
    return validate(model, val_samples)


result = train({"images": 120, "val_images": 8, "lr": 2e-3, "batch": 8, "epochs": 12})
print(f"PSNR of the best model: {result:.4f} dB")
