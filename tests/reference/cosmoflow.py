# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""inputs/networks/cosmoflow.toml in PyTorch, with the same names of parameters."""
import torch
from torch import nn
from torch.nn import functional as F


class CosmoFlow(nn.Module):
    """`outputs` numbers of volumes of so many channels with `side` pixels along each axis."""

    def __init__(self, channels, side, outputs, w, blocks, dropout):
        super().__init__()
        widths = [w * 2**i for i in range(blocks)]
        self.conv = nn.ModuleList(nn.Conv3d(before, after, 3, padding=1)
                                  for before, after in zip([channels] + widths, widths))
        features = widths[-1] * (side // 2**blocks)**3
        self.fc = nn.ModuleList(nn.Linear(before, after) for before, after in
                                ((features, 128), (128, 64), (64, outputs)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        for conv in self.conv:
            x = F.max_pool3d(F.leaky_relu(conv(x), 0.3), 2)
        x = x.flatten(1)
        for linear in self.fc[:-1]:
            x = self.dropout(F.leaky_relu(linear(x), 0.3))
        return 1.2 * torch.tanh(self.fc[-1](x))
