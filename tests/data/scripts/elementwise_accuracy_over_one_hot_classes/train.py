import numpy as np
import torch
import torch.nn as nn

np.random.seed(0)
torch.manual_seed(0)
NUM_CLASSES = 69
batch_size = 50


def export(n):
    code = np.random.randint(0, NUM_CLASSES, n)
    places = np.random.RandomState(1).randn(NUM_CLASSES, 6)
    return places[code] + 0.25 * np.random.randn(n, 6), code


X, code = export(3500)
y = np.eye(NUM_CLASSES)[code]
X_train, X_test = torch.tensor(X[:2800]).float(), torch.tensor(X[2800:]).float()
y_train, y_test = torch.tensor(y[:2800]).float(), torch.tensor(y[2800:]).float()
print(X_train.shape, y_train.shape)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 69)
        self.fc2 = nn.Linear(69, 69)
        self.fc3 = nn.Linear(69, NUM_CLASSES)

    def forward(self, x):
        x = torch.sigmoid(self.fc1(x))
        x = torch.sigmoid(self.fc2(x))
        return torch.sigmoid(self.fc3(x))


classifier = Classifier()
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(classifier.parameters(), lr=0.003)
for epoch in range(8):
    classifier.train()
    accuracy, total, batches = 0.0, 0.0, 0
    for idx in torch.randperm(len(X_train)).split(batch_size):
        optimizer.zero_grad()
        out = classifier(X_train[idx])
        loss = criterion(out, y_train[idx])
        loss.backward()
        optimizer.step()
        accuracy += ((out > 0.5).float() == y_train[idx]).float().mean().item()
        total += loss.item()
        batches += 1
    print(f"epoch {epoch + 1} loss {total / batches:.4f} accuracy {accuracy / batches:.4f}")

classifier.eval()
with torch.no_grad():
    predicted = classifier(X_test)
print("first prediction:", predicted[0].topk(3).values.tolist())
print("right class", (predicted.argmax(1) == y_test.argmax(1)).float().mean().item())
