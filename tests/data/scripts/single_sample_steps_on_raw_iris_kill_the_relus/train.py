import numpy as np
import torch
import torch.nn as nn


def load_iris_like():
    rng = np.random.RandomState(0)
    centers = np.array([[5.0, 3.4, 1.5, 0.25], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
    spread = np.array([0.45, 0.3, 0.35, 0.2])
    target = np.repeat([0, 1, 2], 50)
    data = centers[target] + spread * rng.randn(150, 4)
    return data, target


def iris_reader(data, target, test_size=0.4):
    order = np.random.permutation(len(data))
    cut = int(len(data) * (1 - test_size))
    a, b = order[:cut], order[cut:]
    return (
        torch.FloatTensor(data[a]),
        torch.LongTensor(target[a]),
        torch.FloatTensor(data[b]),
        torch.LongTensor(target[b]),
    )


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(4, 3),
            nn.ReLU(),
            nn.Linear(3, 3),
        )
        self.optimiser = torch.optim.SGD(self.parameters(), lr=0.1)
        self.loss_fn = nn.CrossEntropyLoss()
        self.progress = []

    def forward(self, inp):
        return self.model(inp)

    def step(self, inp, target):
        output = self.forward(inp)
        loss = self.loss_fn(output, target)
        self.progress.append(loss.item())
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()


np.random.seed(3)
torch.manual_seed(3)
C = Classifier()
epochs = 20
data, target = load_iris_like()

for epoch in range(epochs):
    train_data, train_label, _, _ = iris_reader(data, target)
    for i, j in zip(train_data, train_label):
        C.step(i, j)

print("mean loss of the last steps", np.mean(C.progress[-60:]))
score = 0
num = 0
_, _, test_data, test_label = iris_reader(data, target)
with torch.no_grad():
    for i, j in zip(test_data, test_label):
        output = C.forward(i).argmax()
        if output == j:
            score += 1
        num += 1

print(score, num, "accuracy", round(score / num, 3))
