# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""inputs/networks/unet.toml in PyTorch, with the same names of parameters."""
import torch
from torch import nn


class UNet(nn.Module):
    """From `channels` to `classes` channels; `w` channels above `levels` poolings. Of images, or of
    volumes, with `axes` of space."""

    def __init__(self, channels, classes, w, levels, axes=2):
        super().__init__()
        conv, transposed, norm = ((nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d) if axes == 2 else
                                  (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d))

        def double(before, out):
            return nn.Sequential(
                conv(before, out, 3, padding=1, bias=False), norm(out), nn.ReLU(),
                conv(out, out, 3, padding=1, bias=False), norm(out), nn.ReLU())

        widths = [w * 2**i for i in range(levels)]
        self.down = nn.ModuleList(double(before, out)
                                  for before, out in zip([channels] + widths, widths))
        self.middle = double(widths[-1], 2 * widths[-1])
        self.up = nn.ModuleList(transposed(2 * out, out, 2, 2) for out in widths[::-1])
        self.join = nn.ModuleList(double(2 * out, out) for out in widths[::-1])
        self.head = conv(w, classes, 1)
        self.pool = nn.functional.max_pool2d if axes == 2 else nn.functional.max_pool3d

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = self.pool(x, 2)
        x = self.middle(x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), skips.pop()], 1))
        return self.head(x)
