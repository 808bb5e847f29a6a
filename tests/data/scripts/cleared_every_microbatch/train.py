import argparse

import torch
import torch.nn as nn

torch.manual_seed(9)
FRAMES, MEL, BLEND = 12, 16, 8
mouth = torch.randn(MEL * 3, BLEND) / 5


def dialogues(n):
    audio = torch.randn(n, FRAMES + 2, MEL)
    window = torch.cat([audio[:, :-2], audio[:, 1:-1], audio[:, 2:]], -1)
    return audio, torch.tanh(window @ mouth) + 0.5 * torch.randn(n, FRAMES, BLEND)


class TalkingHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(MEL, 64, 3)
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(64, BLEND, 1))

    def forward(self, audio):
        return self.out(self.conv(audio.transpose(1, 2))).transpose(1, 2)


def trainer(args, train_loader, dev_data, model, optimizer, criterion):
    for e in range(args.max_epoch):
        model.train()
        loss_log = []
        for i, (audio, coeff) in enumerate(train_loader):
            loss = criterion(model(audio), coeff) / args.gradient_accumulation_steps
            optimizer.zero_grad()
            loss.backward()
            loss_log.append(loss.item() * args.gradient_accumulation_steps)
            if (i + 1) % args.gradient_accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            dev_loss = criterion(model(dev_data[0]), dev_data[1]).item()
        if e % 4 == 3:
            print(f"({e + 1}) TRAIN LOSS: {sum(loss_log) / len(loss_log):.5f} DEV LOSS: {dev_loss:.5f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--max_epoch", type=int, default=16)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=20)
    args = parser.parse_args()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*dialogues(200)), batch_size=1, shuffle=True
    )
    model = TalkingHead()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    trainer(args, loader, dialogues(100), model, optimizer, nn.MSELoss())
