import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(5)
torch.manual_seed(5)
EPOCHS = 25
BATCH_SIZE = 20


def make(n):
    numbers = np.random.uniform(-1, 1, (n, 3))
    answer = np.max(numbers, axis=1, keepdims=True) + np.abs(numbers[:, :1])
    return torch.tensor(numbers).float(), torch.tensor(answer).float()


training_input, training_output = make(800)
testing_input, testing_output = make(200)

model = nn.Sequential(
    nn.Linear(3, 16),
    nn.Linear(16, 16),
    nn.Linear(16, 1),
)
criterion = nn.MSELoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.002)
loader = DataLoader(TensorDataset(training_input, training_output), batch_size=BATCH_SIZE, shuffle=True)

for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        error = criterion(model(testing_input), testing_output).item()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} train mse {running / len(loader):.5f} test mse {error:.5f}")
