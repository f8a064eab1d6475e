// C++ code that calls Python: exceptions become Errors, and Errors of it become those exceptions again.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/interpreter_lock.h"

namespace muster::python {

// body() with the interpreter lock held; what it raises is the Error.
template <class Body>
auto with_python(Body&& body) -> std::invoke_result_t<Body> {
  const InterpreterLock lock;
  try {
    return body();
  } catch (nb::python_error& exception) {
    return fail(error_of(exception));
  } catch (const std::exception& exception) {
    return fail(::muster::Code::invalid_argument, exception.what());
  }
}

}  // namespace muster::python
