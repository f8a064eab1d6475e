#include "muster/graph/parameter.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "muster/graph/execution/parameter_formats.h"
#include "muster/graph/thread_state.h"

namespace muster::graph {

std::uint64_t next_version() { return process_state().versions.fetch_add(1, std::memory_order_relaxed) + 1; }

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
      plain_(values.clone()) {}

void Parameter::rename(std::string name) {
  name_ = std::move(name);
  version_ = next_version();
}

void Parameter::set_requires_grad(bool requires_grad) {
  if (requires_grad == requires_grad_) return;
  requires_grad_ = requires_grad;
  version_ = next_version();
}

namespace {

void count_write() { process_state().parameter_writes.fetch_add(1, std::memory_order_relaxed); }

void run_reorder(const PrimitivePtr& primitive, std::byte* from, std::byte* to, int threads) {
  const auto scratch = Buffer::allocate(primitive->scratch_bytes);
  const bool done = primitive->run(&from, &to, scratch->data(), threads);
  MUSTER_CHECK(done, "a parameter could not be brought into another order");
}

}  // namespace

const Tensor& Parameter::materialize(std::uint64_t seed) {
  MUSTER_CHECK(absence() == nullptr, "a parameter was read that another worker has");
  if (!materialized()) {
    Tensor made(type_.dtype, type_.shape);
    initializer_(made, RandomStream(seed, hash_text(name_)));
    plain_ = std::move(made);
  }
  return storage();
}

const Tensor& Parameter::storage() const {
  MUSTER_CHECK(materialized(), "a parameter was read before it was made");
  if (!plain_.defined()) {
    Tensor made(type_.dtype, type_.shape);
    run_reorder(format_->to_plain, formatted_->data(), made.bytes(), format_->threads);
    plain_ = std::move(made);
  }
  return plain_;
}

std::uint64_t parameter_writes() { return process_state().parameter_writes.load(std::memory_order_relaxed); }

const Tensor& Parameter::writable(std::uint64_t seed) {
  count_write();
  materialize(seed);
  formatted_.reset();
  return plain_;
}

std::byte* Parameter::in_format(const ParameterFormatPtr& format, std::uint64_t seed, bool to_write) {
  if (formatted_ == nullptr || !same_format(format_->format, format->format)) {
    const Tensor& plain = materialize(seed);
    auto made = Buffer::allocate(format->format->size_bytes());
    run_reorder(format->from_plain, plain.bytes(), made->data(), format->threads);
    formatted_ = std::move(made);
    format_ = format;
  }
  if (to_write) {
    count_write();
    plain_ = Tensor();
  }
  return formatted_->data();
}

void Parameter::copy_to(std::byte* to, std::uint64_t seed, int threads) {
  if (!materialized()) materialize(seed);
  if (!plain_.defined())
    run_reorder(format_->to_plain, formatted_->data(), to, format_->threads);
  else
    kernels::copy_bytes(plain_.bytes(), to, plain_.size_bytes(), threads);
}

Result<> Parameter::set(const Tensor& values) {
  const TensorType given{values.dtype(), values.shape()};
  if (given != type_)
    return fail(Code::invalid_argument, fmt::format("parameter '{}' is {}, the values are {}", name_,
                                                    to_string(type_), to_string(given)));
  origin_ = Origin::set_by_user;
  if (absence() != nullptr) return {};
  count_write();
  if (!plain_.defined()) plain_ = Tensor(type_.dtype, type_.shape);
  std::memmove(plain_.bytes(), values.bytes(), values.size_bytes());
  formatted_.reset();
  return {};
}

void Parameter::set_home(Home home) {
  home_ = std::move(home);
  if (home_->is_here) return;
  plain_ = Tensor();
  formatted_.reset();
}

}  // namespace muster::graph
