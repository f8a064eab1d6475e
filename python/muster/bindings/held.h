// Python objects that C++ threads use.
#pragma once

#include <exception>
#include <utility>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/interpreter_lock.h"

namespace muster::python {

// A Python object that C++ threads hold and let go of.
class Held {
 public:
  explicit Held(nb::object object) : object_(std::move(object)) {}
  Held(Held&& other) noexcept : object_(std::move(other.object_)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  // Interpreter lock held.
  Held& operator=(Held&& other) noexcept {
    object_ = std::move(other.object_);
    return *this;
  }
  ~Held() {
    if (!object_.is_valid()) return;
    if (!Py_IsInitialized()) {  // the interpreter took its objects along
      object_.release();
      return;
    }
    const nb::gil_scoped_acquire lock;
    object_ = nb::object();
  }
  const nb::object& get() const { return object_; }
  nb::object take() { return std::move(object_); }

 private:
  nb::object object_;
};

// Calls `make` with the interpreter lock; its exception becomes an Error.
template <class Make>
auto guarded(Make make) -> Result<decltype(make())> {
  const InterpreterLock lock;
  try {
    return make();
  } catch (nb::python_error& exception) {
    return fail(error_of(exception));
  } catch (const std::exception& exception) {
    return fail(Code::invalid_argument, exception.what());
  }
}

}  // namespace muster::python
