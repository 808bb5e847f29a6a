import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

img_size = 12
torch.manual_seed(0)


def get_images(n, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 2, n)
    images = 0.6 * rng.randn(n, 1, img_size, img_size)
    for image, label in zip(images, labels):
        r, c = rng.randint(0, img_size - 5, 2)
        image[0, r : r + 5, c : c + 5] += 0.6
        if label:
            image[0, r + 2, c : c + 5] += 1.2
        else:
            image[0, r : r + 5, c + 2] += 1.2
    return torch.tensor(images, dtype=torch.float32), torch.tensor(labels)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5)
        self.conv2 = nn.Conv2d(4, 4, 3)
        self.conv3 = nn.Conv2d(4, 4, 3)
        self.drop = nn.Dropout(0.5)
        self.fc1 = nn.Linear(4 * 16, 32)
        self.fc2 = nn.Linear(32, 16)
        self.fc3 = nn.Linear(16, 2)

    def forward(self, x):
        x = F.relu(self.drop(self.conv1(x)))
        x = F.relu(self.drop(self.conv2(x)))
        x = F.relu(self.drop(self.conv3(x)))
        x = F.relu(self.fc1(x.flatten(1)))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


x_train, y_train = get_images(1000, 0)
x_test, y_test = get_images(300, 1)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.002)
for epoch in range(10):
    net.train()
    hits = 0
    for idx in torch.randperm(len(x_train)).split(32):
        out = net(x_train[idx])
        loss = F.cross_entropy(out, y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += (out.argmax(1) == y_train[idx]).sum().item()
    net.eval()
    with torch.no_grad():
        acc = (net(x_test).argmax(1) == y_test).float().mean().item()
    print("epoch %d acc %.4f accuracy on test images %.4f" % (epoch + 1, hits / len(x_train), acc))
