import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(15)
teacher = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 5))


class LoraLinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad_(False)
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * self.lora_B(self.lora_A(x))


class Net(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Linear(12, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 5)

    def init_weights(self):
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear) and module.weight.requires_grad:
                std = 1.0 / math.sqrt(module.in_features) if "lora" not in name else 0.0
                nn.init.normal_(module.weight, std=std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def add_lora(self):
        self.fc1, self.fc2, self.head = LoraLinear(self.fc1), LoraLinear(self.fc2), LoraLinear(self.head)

    def forward(self, x):
        return self.head(F.relu(self.fc2(F.relu(self.fc1(x)))))


def world(n, turn):
    x = torch.randn(n, 12)
    with torch.no_grad():
        return x, teacher(x.roll(turn, 1)).argmax(1)


def run(net, data, test, epochs, lr):
    opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=lr)
    for epoch in range(epochs):
        net.train()
        for idx in torch.randperm(len(data[0])).split(64):
            loss = F.cross_entropy(net(data[0][idx]), data[1][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    net.eval()
    with torch.no_grad():
        return loss.item(), (net(test[0]).argmax(1) == test[1]).float().mean().item()


pretrained = Net()
pretrained.init_weights()
print("pretraining: loss %.4f accuracy %.4f" % run(pretrained, world(2000, 0), world(500, 0), 8, 2e-3))
net = Net()
net.load_state_dict(pretrained.state_dict())
weights = {k: v.clone() for k, v in net.state_dict().items()}
net.add_lora()
net.init_weights()
for name in ("fc1", "fc2", "head"):
    getattr(net, name).base.weight.data.copy_(weights[name + ".weight"])
    getattr(net, name).base.bias.data.copy_(weights[name + ".bias"])
print("fine-tuning: loss %.4f accuracy %.4f" % run(net, world(1500, 1), world(500, 1), 15, 3e-3))
