#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/reference/pictures.h5: encoded pictures, drawn here, and what Pillow makes of them.

Per picture a group: `file`, its bytes, and `pixels` [height, width, 3], or, for what must be refused,
the attribute `reason`, a part of the message. Needs Pillow, numpy and h5py.
"""
import io
import pathlib

import h5py
import numpy as np
from PIL import Image

GENERATOR = np.random.default_rng(1)


def drawing(height, width, channels):
    """Smooth waves with an edge and some noise, so that every coefficient has work."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 80 * np.sin(0.21 * (k + 1) * x + 0.13 * y) + 40 * (x > y)
              for k in range(channels)]
    noisy = np.stack(planes, -1) + GENERATOR.normal(0, 6, (height, width, channels))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def encoded(mode, size, form, **options):
    height, width = size
    image = Image.fromarray(drawing(height, width, 4 if mode in ("CMYK", "RGBA") else 3))
    if mode == "CMYK":
        image = image.convert("RGB")
    buffer = io.BytesIO()
    image.convert(mode).save(buffer, form, **options)
    return buffer.getvalue()


def sixteen_bits():
    buffer = io.BytesIO()
    Image.fromarray(np.arange(48, dtype=np.uint16).reshape(6, 8) * 1000).save(buffer, "PNG")
    return buffer.getvalue()


def transparent_palette():
    image = Image.fromarray(drawing(9, 11, 3)).quantize(7)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", transparency=3)
    return buffer.getvalue()


def with_comment_before_marker(file):
    """A few bytes that belong to nothing, in front of the first table, as some cameras leave."""
    at = file.index(b"\xff\xdb")
    return file[:at] + b"stray bytes" + file[at:]


def good():
    yield "jpeg_420", encoded("RGB", (33, 47), "JPEG", quality=85)
    yield "jpeg_422", encoded("RGB", (16, 35), "JPEG", quality=60, subsampling=1)
    yield "jpeg_444", encoded("RGB", (19, 8), "JPEG", quality=95, subsampling=0)
    yield "jpeg_progressive", encoded("RGB", (40, 25), "JPEG", progressive=True)
    yield "jpeg_grey", encoded("L", (21, 30), "JPEG")
    yield "jpeg_pixel", encoded("RGB", (1, 1), "JPEG")
    yield "jpeg_stray_bytes", with_comment_before_marker(encoded("RGB", (12, 12), "JPEG"))
    yield "png_rgb", encoded("RGB", (13, 17), "PNG")
    yield "png_rgba", encoded("RGBA", (13, 17), "PNG")
    yield "png_grey", encoded("L", (13, 17), "PNG")
    yield "png_grey_alpha", encoded("LA", (13, 17), "PNG")
    yield "png_two_colours", encoded("1", (13, 17), "PNG")
    yield "png_palette", encoded("P", (13, 17), "PNG")
    yield "png_palette_16", encoded("P", (13, 17), "PNG", bits=4)
    yield "png_transparent", transparent_palette()


def bad():
    jpeg = encoded("RGB", (24, 24), "JPEG")
    png = encoded("RGB", (24, 24), "PNG")
    yield "empty", b"", "empty"
    yield "text", b"These are not pixels.\n", "neither JPEG nor PNG"
    yield "gif", encoded("P", (8, 8), "GIF"), "neither JPEG nor PNG"
    yield "jpeg_cmyk", encoded("CMYK", (8, 8), "JPEG"), "CMYK"
    yield "png_16_bits", sixteen_bits(), "16 bits"
    yield "jpeg_cut", jpeg[:len(jpeg) * 2 // 3], "damaged JPEG"
    yield "jpeg_header", jpeg[:3], "damaged JPEG"
    yield "png_cut", png[:len(png) // 2], "damaged PNG"
    at = png.index(b"IDAT") + 40
    yield "png_flipped", png[:at] + bytes([png[at] ^ 16]) + png[at + 1:], "damaged PNG"
    size = jpeg.index(b"\xff\xc0") + 5  # height and width of the frame
    yield "jpeg_huge", jpeg[:size] + b"\xff\x00\xff\x00" + jpeg[size + 4:], "million"


def main():
    path = pathlib.Path(__file__).with_name("pictures.h5")
    with h5py.File(path, "w") as out:
        out.attrs["made_by"] = np.bytes_(f"Pillow {Image.__version__}")
        for name, file in good():
            group = out.create_group(name)
            group["file"] = np.frombuffer(file, np.uint8)
            group["pixels"] = np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))
        for name, file, reason in bad():
            group = out.create_group(name)
            group["file"] = np.frombuffer(file, np.uint8)
            group.attrs["reason"] = np.bytes_(reason)


if __name__ == "__main__":
    main()
