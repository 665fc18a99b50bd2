#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
#
# Brings what app.tensorboard needs of TensorBoard, which Debian does not have, from PyPI into .cache:
# the package that writes and reads events, without the server.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.cache/tensorboard
[ ! -d "$target/tensorboard" ] || exit 0
work=$(mktemp -d .cache/work.XXXXXX)
trap 'rm -rf "$work"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
  --target "$work" tensorboard==2.21.0 protobuf==7.35.1 absl-py==2.4.0 packaging==26.2
mv "$work" "$target"
