#include "muster/base/check.h"

#include <fmt/format.h>

#include <cstdlib>

namespace muster::internal {

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  fmt::print(stderr, "muster: internal check failed at {}:{}: {}: {}\n", file, line, condition, message);
  std::abort();
}

}  // namespace muster::internal
