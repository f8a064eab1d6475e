// Row threads: work on many rows by several threads at once. Private to server.
#pragma once

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

#include "muster/base/cores.h"

namespace muster::server {

// Below this many rows a thread costs more than it brings.
inline constexpr std::size_t rows_per_thread = 8192;
inline constexpr std::size_t row_threads_max = 8;

inline std::size_t row_threads(std::size_t rows) {
  return std::min({rows / rows_per_thread + 1, row_threads_max, static_cast<std::size_t>(host_cores())});
}

// Calls body(begin, end) for parts that cover [0, rows) once. Rows do not depend on each other: the number of
// threads changes no bit. A thread that the system refuses is not needed.
template <class Body>
void for_row_parts(std::size_t rows, const Body& body) {
  const std::size_t parts = row_threads(rows);
  std::vector<std::jthread> others;
  for (std::size_t part = 1; part < parts; ++part) {
    const std::size_t begin = rows * part / parts, end = rows * (part + 1) / parts;
    try {
      others.emplace_back([&body, begin, end] { body(begin, end); });
    } catch (const std::system_error&) {
      body(begin, end);
    }
  }
  body(std::size_t{0}, rows / parts);
}

}  // namespace muster::server
