#include "muster/graph/parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "muster/graph/execution/parameter_formats.h"
#include "muster/graph/run.h"
#include "muster/graph/thread_state.h"

namespace muster::graph {

std::uint64_t next_version() { return process_state().versions.fetch_add(1, std::memory_order_relaxed) + 1; }

namespace {

std::uint32_t count_namesake(const std::string& name) {
  ProcessState& state = process_state();
  const std::lock_guard lock(state.namesakes_mutex);
  return state.tells_namesakes_apart ? state.namesakes[name]++ : 0;
}

}  // namespace

void tell_namesakes_apart(bool apart) {
  const std::lock_guard lock(process_state().namesakes_mutex);
  process_state().tells_namesakes_apart = apart;
}

void forget_namesakes() {
  const std::lock_guard lock(process_state().namesakes_mutex);
  process_state().namesakes.clear();
}

Parameter::Parameter(std::string name, TensorType type, Initializer initializer, bool requires_grad)
    : name_(std::move(name)),
      namesake_(count_namesake(name_)),
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
  if (name == name_) return;
  name_ = std::move(name);
  if (initializer_) namesake_ = count_namesake(name_);
  version_ = next_version();
}

void Parameter::set_requires_grad(bool requires_grad) {
  if (requires_grad == requires_grad_) return;
  requires_grad_ = requires_grad;
  version_ = next_version();
}

namespace {

void run_reorder(const PrimitivePtr& primitive, std::byte* from, std::byte* to, int threads) {
  const auto scratch = Buffer::allocate(primitive->scratch_bytes);
  const bool done = primitive->run(&from, &to, scratch->data(), threads);
  MUSTER_CHECK(done, "a parameter could not be brought into another order");
}

}  // namespace

const Tensor& Parameter::materialize(std::uint64_t seed) {
  if (absence() != nullptr) throw Exception(Code::invalid_argument, *absence());
  if (!materialized()) {
    Tensor made = served_rows_ ? Tensor::zeros(type_.dtype, type_.shape) : Tensor(type_.dtype, type_.shape);
    if (!served_rows_) initializer_(made, RandomStream(seed, hash_text(stream_name())));
    plain_ = share_ ? piece_of(made, share_->layout, share_->rank) : std::move(made);
  }
  return storage();
}

const Tensor& Parameter::storage() const {
  if (!materialized())
    throw Exception(Code::invalid_argument, fmt::format("parameter '{}' has no values yet", name_));
  if (!plain_.defined()) {
    Tensor made(type_.dtype, held_type().shape);
    run_reorder(format_->to_plain, formatted_->data(), made.bytes(), format_->threads);
    plain_ = std::move(made);
  }
  return plain_;
}

std::uint64_t parameter_writes() { return process_state().parameter_writes.load(std::memory_order_relaxed); }

void set_write_observer(WriteObserver observer) { process_state().write_observer.store(observer); }

void Parameter::note_write() {
  ProcessState& state = process_state();
  if (!is_statistic_) state.parameter_writes.fetch_add(1, std::memory_order_relaxed);
  if (const WriteObserver observer = state.write_observer.load(std::memory_order_relaxed)) observer(*this);
}

void Parameter::require_to_write() const {
  if (served_rows_)
    throw Exception(
        Code::not_provided,
        fmt::format("table '{}' lives on parameter servers, which update it by SGD, Momentum, Adagrad, "
                    "Adam or FTRL: nothing else can write to it",
                    name_));
}

const Tensor& Parameter::writable(std::uint64_t seed) {
  in_format(nullptr, seed, true);
  note_write();
  return plain_;
}

std::byte* Parameter::in_format(const ParameterFormatPtr& format, std::uint64_t seed, bool to_write) {
  if (to_write) require_to_write();
  if (format == nullptr) {
    materialize(seed);
    if (to_write) formatted_.reset();
    return plain_.bytes();
  }
  if (formatted_ == nullptr || !same_format(format_->format, format->format)) {
    const Tensor& plain = materialize(seed);
    auto made = Buffer::allocate(format->format->size_bytes());
    run_reorder(format->from_plain, plain.bytes(), made->data(), format->threads);
    formatted_ = std::move(made);
    format_ = format;
  }
  if (to_write) plain_ = Tensor();
  return formatted_->data();
}

void Parameter::copy_to(std::byte* to, std::uint64_t seed, int threads) {
  if (!materialized()) materialize(seed);
  if (!plain_.defined())
    run_reorder(format_->to_plain, formatted_->data(), to, format_->threads);
  else
    kernels::copy_bytes(plain_.bytes(), to, plain_.size_bytes(), threads);
}

std::string Parameter::stream_name() const {
  return namesake_ == 0 ? name_ : fmt::format("{} {}", name_, namesake_);
}

void Parameter::leave_to_servers() {
  MUSTER_CHECK(is_table_ && !served_rows_ && type_.shape.rank() == 2, "only a table goes to servers, once");
  served_rows_ = {.shape = type_.shape, .values = materialized() ? storage().clone() : Tensor()};
  type_.shape = Shape{1, type_.shape[1]};
  plain_ = Tensor();
  formatted_.reset();
  version_ = next_version();
}

void Parameter::leave_to_servers_beside(const Parameter& table) {
  MUSTER_CHECK(table.served_rows_ && type_.shape == table.type_.shape,
               "it is the state of a table on servers");
  is_table_ = true;
  served_rows_ = {.shape = table.served_rows_->shape, .values = Tensor()};
}

Result<> Parameter::set_rows(const Tensor& ids, const Tensor& values) {
  MUSTER_CHECK(served_rows_ && served_rows_->takes_any_id(), "only a table without vocabulary has such rows");
  const Shape wanted{ids.elements(), served_rows_->shape[1]};
  if (ids.dtype() != DType::int64 || ids.shape().rank() != 1 || values.dtype() != type_.dtype ||
      values.shape() != wanted)
    return fail(
        Code::invalid_argument,
        fmt::format("table '{}' takes any number: rows of it are int64 numbers (n,) and {} (n, {}), not "
                    "{} {} and {} {}",
                    name_, to_string(type_.dtype), wanted[1], to_string(ids.dtype()), to_string(ids.shape()),
                    to_string(values.dtype()), to_string(values.shape())));
  const std::span<const std::int64_t> numbers(ids.data<std::int64_t>(),
                                              static_cast<std::size_t>(ids.elements()));
  if (!numbers.empty() &&
      (numbers[0] < 0 || std::ranges::adjacent_find(numbers, std::greater_equal<>()) != numbers.end()))
    return fail(
        Code::invalid_argument,
        fmt::format("the numbers of the rows of table '{}' are at least 0 and ascend, none twice", name_));
  served_rows_->ids = ids.clone();
  served_rows_->values = values.clone();
  served_rows_->saved.clear();
  return {};
}

void Parameter::set_saved_rows(std::string where) {
  MUSTER_CHECK(served_rows_, "only a table on servers has rows there");
  served_rows_->ids = served_rows_->values = {};
  served_rows_->saved = std::move(where);
}

Result<> Parameter::set(const Tensor& values) {
  const TensorType given{values.dtype(), values.shape()};
  if (served_rows_ && given == TensorType{type_.dtype, served_rows_->shape}) {
    served_rows_->values = values.clone();
    served_rows_->saved.clear();
    return {};
  }
  if (share_ && given == type_) return set(piece_of(values, share_->layout, share_->rank));
  if (given != held_type())
    return fail(Code::invalid_argument, fmt::format("parameter '{}' is {}, the values are {}", name_,
                                                    to_string(type_), to_string(given)));
  origin_ = Origin::set_by_user;
  piece_source_.reset();
  if (absence() != nullptr) return {};
  note_write();
  if (!plain_.defined()) plain_ = Tensor(given.dtype, given.shape);
  std::memmove(plain_.bytes(), values.bytes(), values.size_bytes());
  formatted_.reset();
  return {};
}

void Parameter::divide(std::optional<Share> share) {
  if (!share && !share_) return;
  const Tensor kept = materialized() && share && !share_ ? storage() : Tensor();
  const bool can_be_made = initializer_ != nullptr;
  share_ = std::move(share);
  piece_source_.reset();
  version_ = next_version();
  formatted_.reset();
  plain_ = Tensor();
  if (!share_ && !can_be_made) plain_ = Tensor::zeros(type_.dtype, type_.shape);
  if (kept.defined()) plain_ = piece_of(kept, share_->layout, share_->rank);
}

TensorType Parameter::held_type() const {
  return share_ ? TensorType{type_.dtype, share_->layout.piece_shape(type_.shape)} : type_;
}

std::string Parameter::division_text() const {
  if (!share_) return {};
  return fmt::format(
      "'{}' is divided over {} workers, of which each holds {} of {}: gather_parameters() gives the whole",
      name_, share_->layout.mesh->size() / share_->layout.mesh->stages(), to_string(held_type()),
      muster::to_string(type_.shape));
}

Result<Tensor> gathered(Parameter& parameter, const RunContext& context) {
  const TensorLayout& layout = parameter.share()->layout;
  const TensorType held = parameter.held_type();
  const Tensor piece = parameter.absence() == nullptr ? parameter.materialize(context.seed)
                                                      : Tensor::zeros(held.dtype, held.shape);
  const Mesh& mesh = *layout.mesh;
  const std::uint32_t ranks = mesh.size();
  if (context.communicator == nullptr || context.communicator->size() != ranks)
    return fail(
        Code::invalid_argument,
        fmt::format("'{}' is divided over {} workers, and these are not at hand: load a checkpoint of the "
                    "whole instead",
                    parameter.name(), ranks));
  Tensor pieces(DType::uint8, Shape{static_cast<std::int64_t>(ranks * piece.size_bytes())});
  MUSTER_TRY_VOID(context.communicator->all_gather(piece.bytes(), pieces.bytes(), piece.size_bytes()));
  Tensor whole(parameter.dtype(), parameter.shape());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (mesh.stages() > 1 && parameter.home() && rank % mesh.stages() != parameter.home()->rank)
      continue;  // it has none of it
    const Tensor each(piece.dtype(), piece.shape(), pieces.buffer(),
                      pieces.offset_bytes() + rank * piece.size_bytes());
    put_piece(each, layout, rank, whole);
  }
  return whole;
}

void Parameter::set_home(Home home) {
  home_ = std::move(home);
  if (home_->is_here) return;
  plain_ = Tensor();
  formatted_.reset();
}

}  // namespace muster::graph
