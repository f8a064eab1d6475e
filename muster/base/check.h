// MUSTER_CHECK: an assumption of our own that must hold. It stays on in release builds; a failure prints the
// place, the condition and the values, and aborts. Never for bad input: that is an Error.
#pragma once

#include <string_view>

namespace muster::internal {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);
}

#define MUSTER_CHECK(condition, message)                                         \
  do {                                                                           \
    if (!(condition)) [[unlikely]]                                               \
      ::muster::internal::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)
