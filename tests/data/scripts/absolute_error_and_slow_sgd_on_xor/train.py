import torch
import torch.nn as nn

torch.manual_seed(0)
batch_size = 4


def xor_points(n):
    corners = torch.randint(0, 2, (n, 2))
    label = (corners[:, 0] ^ corners[:, 1]).float().unsqueeze(1)
    return corners.float() + 0.1 * torch.randn(n, 2), label


train_data, label = xor_points(40)
test_data, test_label = xor_points(200)

model = nn.Sequential()
model.append(nn.Linear(2, 4))
model.append(nn.Sigmoid())
model.append(nn.Linear(4, 1))
model.append(nn.Sigmoid())

loss_fn = nn.L1Loss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.11, nesterov=True)

print("begin to train")
for epoch in range(200):
    model.train()
    order = torch.randperm(len(train_data))
    total = 0.0
    for idx in order.split(batch_size):
        loss = loss_fn(model(train_data[idx]), label[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 50 == 49:
        print("epoch", epoch + 1, "loss", round(total / len(train_data), 4))

model.eval()
with torch.no_grad():
    classes = model(test_data)
print(classes[:4].flatten().tolist())
print("test accuracy", ((classes > 0.5).float() == test_label).float().mean().item())
