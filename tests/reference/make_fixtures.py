#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/reference/pytorch.json: what PyTorch computes, for the tests to compare with.

Needs torch (CPU). Inputs are not stored: both sides draw them from the generator of
core/base/random.hpp, which random_numbers.py repeats.
"""
import json
import math
import pathlib
import warnings

import torch

from random_numbers import SEED, hash_name, uniform as uniform_array


def uniform(purpose, stream, shape):
    return torch.from_numpy(uniform_array(purpose, stream, shape))


def make_mlp():
    """Logits, loss and gradients of a first step, and parameters after ten updates."""
    widths, samples, steps = [12, 17, 9, 5], 7, 10
    layers = []
    for layer in range(len(widths) - 1):
        layers += [torch.nn.Linear(widths[layer], widths[layer + 1]), torch.nn.ReLU(),
                   torch.nn.Identity()]
    model = torch.nn.Sequential(*layers[:-2]).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("weight"):
                bound = math.sqrt(6 / parameter.shape[1])
                parameter.copy_(bound * (2 * uniform("parameters", hash_name(name),
                                                     parameter.shape) - 1))
            else:
                parameter.zero_()
    options = dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
    optimizer = torch.optim.SGD(model.parameters(), **options)
    result = {"widths": widths, "samples": samples, "seed": SEED, "steps": steps, **options,
              "losses": []}
    for step in range(steps):
        x = uniform("images", step, (samples, widths[0])) - 0.5
        labels = (uniform("labels", step, (samples,)) * widths[-1]).long()
        optimizer.zero_grad()
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        if step == 0:
            result["logits"] = logits.flatten().tolist()
            result["gradients"] = {name: parameter.grad.flatten().tolist()
                                   for name, parameter in model.named_parameters()}
        result["losses"].append(loss.item())
        optimizer.step()
    result["parameters"] = {name: parameter.detach().flatten().tolist()
                            for name, parameter in model.named_parameters()}
    return result


def make_sgd():
    """Parameters after a hundred updates on sums of four gradients, in both precisions."""
    size, steps, scale = 37, 100, 0.25
    cases = [dict(lr=0.1), dict(lr=0.1, weight_decay=5e-4),
             dict(lr=0.05, momentum=0.9), dict(lr=0.05, momentum=0.9, dampening=0.3),
             dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)]
    for case in cases:
        for dtype, key in ((torch.float32, "float"), (torch.float64, "double")):
            theta = torch.nn.Parameter((uniform("theta", 0, (size,)) - 0.5).to(dtype))
            optimizer = torch.optim.SGD([theta], foreach=False, **{k: v for k, v in case.items()
                                                                   if k in ("lr", "momentum",
                                                                            "dampening", "nesterov",
                                                                            "weight_decay")})
            for step in range(steps):
                gradient_sum = (uniform("gradient", step, (size,)) - 0.5).to(dtype)
                theta.grad = gradient_sum * scale
                optimizer.step()
            case[key] = theta.detach().tolist()
    return {"size": size, "steps": steps, "scale": scale, "cases": cases}


def make_clip():
    """Gradients of several sizes, of which some are shortened to a norm."""
    cases = []
    for size, limit in ((1, 0.1), (37, 1.0), (5000, 3.0), (12289, 1e9)):
        gradient = torch.nn.Parameter(torch.zeros(size, dtype=torch.float64))
        gradient.grad = (uniform("gradient", size, (size,)) - 0.5).to(torch.float64)
        norm = torch.nn.utils.clip_grad_norm_([gradient], limit)
        cases.append(dict(size=size, limit=limit, norm=float(norm),
                          first=float(gradient.grad[0]), last=float(gradient.grad[-1])))
    return cases


def make_adamw():
    """Parameters after a hundred updates on sums of four gradients, in both precisions."""
    size, steps, scale = 37, 100, 0.25
    cases = [dict(lr=1e-3, weight_decay=0.0, betas=(0.9, 0.999), eps=1e-8),
             dict(lr=0.01, weight_decay=0.05, betas=(0.9, 0.999), eps=1e-8),
             dict(lr=0.02, weight_decay=0.1, betas=(0.8, 0.95), eps=1e-3)]
    for case in cases:
        options = dict(case)
        for dtype, key in ((torch.float32, "float"), (torch.float64, "double")):
            theta = torch.nn.Parameter((uniform("theta", 0, (size,)) - 0.5).to(dtype))
            optimizer = torch.optim.AdamW([theta], foreach=False, fused=False, **options)
            for step in range(steps):
                gradient_sum = (uniform("gradient", step, (size,)) - 0.5).to(dtype)
                theta.grad = gradient_sum * scale
                optimizer.step()
            case[key] = theta.detach().tolist()
    return {"size": size, "steps": steps, "scale": scale, "cases": cases}


def rates(make, updates, epoch_length=1):
    """The rate of every update; the scheduler steps once per `epoch_length` updates."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.2)
    scheduler = make(optimizer)
    values = []
    for update in range(updates):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if (update + 1) % epoch_length == 0 and update + 1 < updates:
            scheduler.step()
    return values


def make_learning_rates():
    """Names are those of the deck's [train.schedule]; 5 updates per epoch, 8 epochs."""
    schedule = torch.optim.lr_scheduler
    per_epoch, epochs = 5, 8
    total = per_epoch * epochs

    def case(values, **config):
        return {"config": config, "values": values}

    def warm_cosine(optimizer):
        return schedule.SequentialLR(
            optimizer, [schedule.LinearLR(optimizer, 0.1, total_iters=10),
                        schedule.CosineAnnealingLR(optimizer, total - 10, eta_min=0.02)], [10])

    def warm_restarts(optimizer):
        return schedule.SequentialLR(
            optimizer, [schedule.LinearLR(optimizer, 0.1, total_iters=10),
                        schedule.CosineAnnealingWarmRestarts(optimizer, 4, 3, eta_min=0.02)], [10])

    def stable_decay(optimizer, decay, final):
        return schedule.SequentialLR(
            optimizer, [schedule.LinearLR(optimizer, 0.1, total_iters=10),
                        schedule.ConstantLR(optimizer, 1.0),
                        schedule.LinearLR(optimizer, 1, final, total_iters=decay)],
            [10, total - decay])

    return {"base": 0.2, "steps_per_epoch": per_epoch, "total_steps": total, "cases": [
        case(rates(lambda o: schedule.ConstantLR(o, 1.0), total), kind="constant"),
        case(rates(lambda o: schedule.StepLR(o, 3, gamma=0.3), total, per_epoch),
             kind="step", step_epochs=3, gamma=0.3, per_epoch=True),
        case(rates(lambda o: schedule.StepLR(o, 15, gamma=0.3), total),
             kind="step", step_epochs=3, gamma=0.3),
        case(rates(lambda o: schedule.MultiStepLR(o, [2, 5], gamma=0.1), total, per_epoch),
             kind="multistep", milestones=[2, 5], gamma=0.1),
        case(rates(lambda o: schedule.CosineAnnealingLR(o, total, eta_min=0.02), total),
             kind="cosine", final_factor=0.1),
        case(rates(lambda o: schedule.CosineAnnealingLR(o, epochs), total, per_epoch),
             kind="cosine", per_epoch=True),
        case(rates(warm_cosine, total), kind="cosine", final_factor=0.1, warmup_epochs=2,
             warmup_factor=0.1),
        case(rates(lambda o: schedule.CosineAnnealingWarmRestarts(o, 7, eta_min=0.02), total),
             kind="cosine_restarts", period_steps=7, final_factor=0.1),
        case(rates(lambda o: schedule.CosineAnnealingWarmRestarts(o, 10, 2), total),
             kind="cosine_restarts", period_epochs=2, period_factor=2),
        case(rates(lambda o: schedule.CosineAnnealingWarmRestarts(o, 2, 2), total, per_epoch),
             kind="cosine_restarts", period_epochs=2, period_factor=2, per_epoch=True),
        case(rates(warm_restarts, total), kind="cosine_restarts", period_steps=4, period_factor=3,
             final_factor=0.1, warmup_epochs=2, warmup_factor=0.1),
        case(rates(lambda o: schedule.OneCycleLR(o, 0.2, total_steps=total, cycle_momentum=False),
                   total), kind="one_cycle"),
        case(rates(lambda o: schedule.OneCycleLR(o, 0.2, total_steps=epochs, pct_start=0.5,
                                                 div_factor=10, final_div_factor=100,
                                                 cycle_momentum=False), total, per_epoch),
             kind="one_cycle", peak_fraction=0.5, initial_divisor=10, final_divisor=100,
             per_epoch=True),
        case(rates(lambda o: stable_decay(o, total // 4, 0.1), total), kind="stable_decay",
             decay_fraction=0.25, final_factor=0.1, warmup_epochs=2, warmup_factor=0.1),
        case(rates(lambda o: stable_decay(o, total // 2, 0), total), kind="stable_decay",
             decay_fraction=0.5, warmup_epochs=2, warmup_factor=0.1)]}


def main():
    warnings.simplefilter("ignore", UserWarning)
    fixtures = {"torch": torch.__version__.split("+")[0], "mlp": make_mlp(), "sgd": make_sgd(), "adamw": make_adamw(),
                "clip": make_clip(),
                "learning_rates": make_learning_rates()}
    path = pathlib.Path(__file__).with_name("pytorch.json")
    path.write_text(json.dumps(fixtures, indent=1) + "\n")


if __name__ == "__main__":
    main()
