import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def load_images(n, size, seed):
    rng = np.random.RandomState(seed)
    rows, cols = np.mgrid[0:size, 0:size]
    images = np.zeros((n, 1, size, size), dtype=np.float32)
    for i in range(n):
        angle, freq, phase = rng.uniform(0, np.pi), rng.uniform(0.2, 0.9), rng.uniform(0, 6)
        wave = np.sin(freq * (rows * np.cos(angle) + cols * np.sin(angle)) + phase)
        r, c = rng.randint(2, size - 6, 2)
        images[i, 0] = 0.5 + 0.3 * wave
        images[i, 0, r : r + 4, c : c + 4] = rng.rand()
    y_images = torch.tensor(images)
    x_images = F.interpolate(F.avg_pool2d(y_images, 2), scale_factor=2, mode="nearest")
    return x_images, y_images


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 1, 3, padding=1),
        nn.Sigmoid(),
    )


def psnr(model, x, y):
    model.eval()
    with torch.no_grad():
        mse = F.mse_loss(model(x), y).item()
    return -10 * np.log10(mse)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-b", "--batch", type=int, default=20, help="batch size")
    parser.add_argument("-e", "--epoch", type=int, default=12, help="number of epochs")
    args = parser.parse_args()
    torch.manual_seed(0)
    x_images, y_images = load_images(400, 16, 0)
    x_test, y_test = load_images(100, 16, 1)
    model = build_model()
    loss_fn = nn.BCELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0001)
    for epoch in range(args.epoch):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x_images)).split(args.batch):
            loss = loss_fn(model(x_images[idx]), y_images[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch + 1} loss {total / len(x_images):.5f} test psnr {psnr(model, x_test, y_test):.3f}")
