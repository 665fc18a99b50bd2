# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""The generator of core/base/random.hpp on arrays, so that fixtures need no stored inputs."""
import math

import numpy as np

SEED = 7
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def hash_name(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return value


def uniform01(purpose, stream, count, first=0, seed=None):
    """Numbers `first` and on of a stream, in [0, 1); of the module's seed as it is now."""
    index = np.arange(first, first + count, dtype=np.uint64)
    key = (SEED if seed is None else seed) ^ hash_name(purpose)
    c = [index & LOW, index >> HALF, np.uint64(stream & 0xFFFFFFFF), np.uint64(stream >> 32)]
    k = [np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)]
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(q >> HALF) ^ c[1] ^ k[0], q & LOW, (p >> HALF) ^ c[3] ^ k[1], p & LOW]
        k = [(k[0] + np.uint64(0x9E3779B9)) & LOW, (k[1] + np.uint64(0xBB67AE85)) & LOW]
    return ((c[1] << HALF | c[0]) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def uniform(purpose, stream, shape):
    return uniform01(purpose, stream, math.prod(shape)).reshape(shape)


def normal(purpose, stream, shape):
    """Box and Muller's, one of two uniform ones."""
    pairs = uniform01(purpose, stream, 2 * math.prod(shape)).reshape(-1, 2)
    radius = np.sqrt(-2 * np.log(1 - pairs[:, 0]))
    return (radius * np.cos(2 * np.pi * pairs[:, 1])).reshape(shape)
