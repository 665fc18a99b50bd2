# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""state_dicts in and out of files. Nothing in a file is executed: pickles are read by torch's loader
of weights alone."""

import h5py
import torch

from .network import BAD_DATA, INPUT_OUTPUT, USAGE, Refusal
from .calls import first_line

# What frameworks call a state_dict that lies beside other things.
WRAPPERS = ("state_dict", "model_state_dict", "model")


def read_state(path):
    try:
        if path.endswith(".safetensors"):
            try:
                from safetensors.torch import load_file
            except ModuleNotFoundError as error:
                raise Refusal(USAGE, f"{path}: needs {error.name} for this Python (pip install "
                                     "safetensors)") from error
            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Refusal:
        raise
    except OSError as error:
        raise Refusal(INPUT_OUTPUT, f"{path}: {error.strerror or first_line(error)}") from error
    except Exception as error:  # UnpicklingError and what broken files make of readers
        raise Refusal(BAD_DATA, f"{path}: no weights that can be read without executing what is in "
                                f"it: {first_line(error)}") from error
    for key in WRAPPERS:
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
            break
    if not isinstance(state, dict) or not all(isinstance(each, torch.Tensor)
                                              for each in state.values()):
        raise Refusal(BAD_DATA, f"{path}: it holds no state_dict, names with tensors")
    return state


def load(module, path):
    """Fills a module with the weights of a file, all of them by name."""
    try:
        module.load_state_dict(read_state(path))
    except RuntimeError as error:
        text = " ".join(str(error).split())
        raise Refusal(BAD_DATA, f"{path}: {text[:300]}") from error


def learned(module):
    """The state_dict without the counters of batches, which no number depends on."""
    return {name: tensor for name, tensor in module.state_dict().items()
            if name.rpartition(".")[2] != "num_batches_tracked"}


def write(path, state):
    """An HDF5 dataset for each tensor, as `carousel import weights` reads them."""
    with h5py.File(path, "w") as file:
        for name, tensor in state.items():
            if not tensor.is_floating_point():
                raise Refusal(BAD_DATA, f"{name} holds {tensor.dtype}, no real numbers")
            exact = tensor if tensor.dtype == torch.float64 else tensor.float()
            file.create_dataset(name, data=exact.detach().cpu().numpy())
