"""A stack of convolutions with batch norm on 32x32 colour images."""

import torch
import torch.nn as nn
import torch.nn.functional as F

EPOCHS = 6
BATCH_SIZE = 64
nConv = 2
nChannel = 8


def load_data(data):
    x, t = data.train.images.float() / 255.0, data.train.labels
    xv, tv = data.validation.images.float() / 255.0, data.validation.labels
    return (x, t), (xv, tv)


class MyNet(nn.Module):
    def __init__(self, input_dim):
        super(MyNet, self).__init__()
        self.conv1 = nn.Conv2d(input_dim, nChannel, kernel_size=4, stride=4)
        self.bn1 = nn.BatchNorm2d(nChannel)
        conv2, bn2 = [], []
        for i in range(nConv):
            conv2.append(nn.Conv2d(nChannel, nChannel, kernel_size=3, stride=1, padding=1))
            bn2.append(nn.BatchNorm2d(nChannel))
        self.conv2, self.bn2 = conv2, bn2
        self.conv3 = nn.Conv2d(nChannel, 10, kernel_size=2)

    def forward(self, x):
        x = self.bn1(F.relu(self.conv1(x)))
        for i in range(nConv):
            x = self.bn2[i](F.relu(self.conv2[i](x)))
        return self.conv3(F.max_pool2d(x, 4)).flatten(1)


def build_model():
    return MyNet(3)


def build_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def build_scheduler(optimizer, total_steps):
    return None


def prepare_batch(inputs, labels, rng):
    return inputs, labels


loss_fn = torch.nn.CrossEntropyLoss()


def compute_loss(outputs, labels):
    return loss_fn(outputs, labels)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    output = model(inputs)
    loss = loss_fn(output, labels)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    output = model(inputs)
    _, target = torch.max(output, 1)
    return {"val_loss": loss_fn(output, labels).item(), "val_accuracy": (target == labels).float().mean().item()}
