# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""Networks of PyTorch as decks. __main__.py loads it under a name of its own."""
