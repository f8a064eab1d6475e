#include "muster/graph/parameter.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <utility>

namespace muster::graph {

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Parameter::Parameter(std::string name, TensorType type, Initializer initializer, bool requires_grad)
    : name_(std::move(name)),
      type_(std::move(type)),
      initializer_(std::move(initializer)),
      requires_grad_(requires_grad),
      version_(next_version()) {}

Parameter::Parameter(std::string name, const Tensor& values, bool requires_grad)
    : name_(std::move(name)),
      type_{values.dtype(), values.shape()},
      requires_grad_(requires_grad),
      version_(next_version()),
      origin_(Origin::set_by_user),
      storage_(values.clone()) {}

void Parameter::rename(std::string name) {
  name_ = std::move(name);
  version_ = next_version();
}

void Parameter::set_requires_grad(bool requires_grad) {
  if (requires_grad == requires_grad_) return;
  requires_grad_ = requires_grad;
  version_ = next_version();
}

const Tensor& Parameter::materialize(std::uint64_t seed) {
  if (!storage_.defined()) {
    Tensor made(type_.dtype, type_.shape);
    initializer_(made, RandomStream(seed, hash_text(name_)));
    storage_ = std::move(made);
  }
  return storage_;
}

const Tensor& Parameter::storage() const {
  MUSTER_CHECK(storage_.defined(), "a parameter was read before it was made");
  return storage_;
}

Result<> Parameter::set(const Tensor& values) {
  const TensorType given{values.dtype(), values.shape()};
  if (given != type_)
    return fail(Code::invalid_argument, fmt::format("parameter '{}' is {}, the values are {}", name_,
                                                    to_string(type_), to_string(given)));
  if (!storage_.defined()) storage_ = Tensor(type_.dtype, type_.shape);
  std::memmove(storage_.bytes(), values.bytes(), values.size_bytes());
  origin_ = Origin::set_by_user;
  return {};
}

}  // namespace muster::graph
