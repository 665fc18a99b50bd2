// SPDX-FileCopyrightText: 2026 The Carousel authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `inspect` knows of files, for programs: as JSON, or the rows of a run as CSV. It only reads;
// what people see of it is in inspect.hpp.

#include <span>
#include <string>

namespace carousel {

/// An array with an object for every run, data set or checkpoint, in the order of the paths; its
/// keys are the words of run files. Numbers that are not finite are null. Throws as inspect() does.
[[nodiscard]] std::string listed_as_json(std::span<const std::string> paths);

/// The rows of /steps or /evaluations of a run under a line with their names, with as many digits
/// as tell numbers apart. Throws as inspect() does.
[[nodiscard]] std::string listed_as_csv(const std::string& run, const std::string& table);

}  // namespace carousel
