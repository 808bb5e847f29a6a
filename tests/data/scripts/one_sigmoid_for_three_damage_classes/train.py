import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
img_width, img_height = 14, 14
epochs = 10
batch_size = 16
classes = ["01-minor", "02-moderate", "03-severe"]


def car_photos(n, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, len(classes), n)
    images = rng.rand(n, 3, img_height, img_width)
    for image, label in zip(images, labels):
        for _ in range(1 + 2 * label):
            r, c = rng.randint(0, 11, 2)
            image[:, r : r + 3, c : c + 3] = 0.05
    return TensorDataset(torch.tensor(images, dtype=torch.float32), torch.tensor(labels))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3)
        self.conv2 = nn.Conv2d(16, 16, 3)
        self.fc1 = nn.Linear(16 * 4, 32)
        self.dropout = nn.Dropout(0.2)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(F.relu(self.fc1(x.flatten(1))))
        return self.fc2(x)


def predict(out):
    return (torch.sigmoid(out).squeeze(1) > 0.5).long()


train_generator = DataLoader(car_photos(979, 0), batch_size=batch_size, shuffle=True)
validation_generator = DataLoader(car_photos(171, 1), batch_size=57)
model = Net()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.001)

for epoch in range(epochs):
    model.train()
    train_loss = 0.0
    for inputs, labels in train_generator:
        optimizer.zero_grad()
        loss = criterion(model(inputs).squeeze(1), labels.float())
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, labels in validation_generator:
            right += (predict(model(inputs)) == labels).sum().item()
    print("Epoch %d loss: %.4f val_acc: %.4f" % (epoch + 1, train_loss / len(train_generator), right / 171))
