# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""inputs/networks/unet.toml in PyTorch, with the same names of parameters."""
import torch
from torch import nn


class UNet(nn.Module):
    """From `channels` to `classes` channels; `w` channels above `levels` poolings."""

    def __init__(self, channels, classes, w, levels):
        super().__init__()

        def double(before, out):
            return nn.Sequential(
                nn.Conv2d(before, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())

        widths = [w * 2**i for i in range(levels)]
        self.down = nn.ModuleList(double(before, out)
                                  for before, out in zip([channels] + widths, widths))
        self.middle = double(widths[-1], 2 * widths[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * out, out, 2, 2) for out in widths[::-1])
        self.join = nn.ModuleList(double(2 * out, out) for out in widths[::-1])
        self.head = nn.Conv2d(w, classes, 1)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), skips.pop()], 1))
        return self.head(x)
