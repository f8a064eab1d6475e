// Exception of an expression, for tests.
#pragma once

#include <string>

#include "muster/base/base.h"

namespace muster::internal {

// The message of the Exception that `compute` throws; "no error" where it throws none.
template <class F>
std::string message_thrown_by(F&& compute) {
  try {
    static_cast<void>(compute());
  } catch (const Exception& exception) {
    return exception.error().message;
  }
  return "no error";
}

}  // namespace muster::internal

#define ERROR_OF(...) ::muster::internal::message_thrown_by([&] { return __VA_ARGS__; })
