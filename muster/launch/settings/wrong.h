// The error of a setting that cannot be used: what is wrong with it, and the way out.
#pragma once

#include <string>
#include <utility>

#include "muster/base/base.h"

namespace muster::launch {

inline tl::unexpected<Error> wrong(std::string message) {
  return fail(Code::invalid_argument, std::move(message));
}

}  // namespace muster::launch
