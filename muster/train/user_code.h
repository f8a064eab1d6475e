// Private to train: calls of code that users give: callbacks, metrics.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "muster/base/base.h"

namespace muster::train {

// What `call` gives, a Result; its error where the ops in it throw an Exception instead (ADR 24). Other
// exceptions pass: a Python exception on its way out.
template <class F>
std::invoke_result_t<F> run_user_code(F&& call) {
  try {
    return std::invoke(std::forward<F>(call));
  } catch (const Exception& exception) {
    return fail(exception.error());
  }
}

}  // namespace muster::train
