import torch
import torch.nn as nn

torch.manual_seed(2)
input_size = 12
output_size = 1
lr = 0.05
num_epochs = 120


def get_data(n):
    x = torch.randn(n, input_size)
    y = (x[:, :1] * x[:, 1:2] + x[:, 2:3] > 1.4).float()
    return x, y


train_features, train_targets = get_data(1500)
val_features, val_targets = get_data(500)


class Model(nn.Module):
    def __init__(self, input_size, output_size):
        super(Model, self).__init__()
        self.fc1 = nn.Sequential(nn.Linear(input_size, 8 * input_size), nn.PReLU())
        self.fc2 = nn.Sequential(nn.Linear(8 * input_size, 4 * input_size), nn.PReLU())
        self.fc = nn.Linear(4 * input_size, output_size)

    def forward(self, x):
        x = self.fc1(x)
        x = self.fc2(x)
        x = self.fc(x)
        return x


def accuracy(predictions, targets):
    pred = predictions.max(1, keepdim=True)[1]
    correct = pred.eq(targets.view_as(pred)).sum().item()
    return correct / len(targets)


model = Model(input_size, output_size)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

for epoch in range(num_epochs):
    model.train()
    train_predictions = model(train_features)
    loss = criterion(train_predictions, train_targets)

    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

    model.eval()
    with torch.no_grad():
        val_predictions = model(val_features)
        val_loss = criterion(val_predictions, val_targets)
    if epoch % 20 == 0 or epoch == num_epochs - 1:
        train_acc = accuracy(train_predictions, train_targets)
        val_acc = accuracy(val_predictions, val_targets)
        print("Train set: Loss: {:.4f}, Accuracy: {:.4f}".format(loss.item(), train_acc))
        print("Validation set: Loss: {:.4f}, Accuracy: {:.4f}".format(val_loss.item(), val_acc))
