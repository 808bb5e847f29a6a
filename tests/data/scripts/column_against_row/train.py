import torch
import torch.nn as nn

torch.manual_seed(16045)
sample_size = 400
x = torch.randn((sample_size, 2))
eps = torch.randn(sample_size)
y = 10 + 9 * x[:, 0] - 2 * x[:, 1] + eps

x_train, y_train = x[:300], y[:300]
x_val, y_val = x[300:], y[300:]

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_func = nn.MSELoss()

for epoch in range(60):
    model.train()
    optimizer.zero_grad()
    yhat = model(x_train)
    loss_val = loss_func(yhat, y_train)
    loss_val.backward()
    optimizer.step()
    if epoch % 10 == 9:
        print(epoch + 1, loss_val.item())

print("weights", model.weight.data, "bias", model.bias.data)
model.eval()
with torch.no_grad():
    residual = y_val - model(x_val)[:, 0]
r2 = 1 - residual.var().item() / y_val.var().item()
print(f"share of variance explained on validation data {r2:.4f}")
