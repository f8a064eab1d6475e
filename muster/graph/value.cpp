#include "muster/graph/value.h"

#include <fmt/format.h>

#include <utility>

#include "muster/graph/parameter.h"
#include "muster/graph/thread_state.h"

namespace muster::graph {

struct Value::State {
  enum class Kind { concrete, parameter, traced };
  Kind kind = Kind::concrete;
  TensorType type = {};
  Tensor tensor = {};
  ParameterPtr parameter = {};
  Place place = {};
};

Value::Value(Tensor tensor) {
  if (!tensor.defined()) return;
  TensorType type{tensor.dtype(), tensor.shape()};
  state_ = std::make_shared<State>(
      State{.kind = State::Kind::concrete, .type = std::move(type), .tensor = std::move(tensor)});
}

Value::Value(ParameterPtr parameter) {
  if (parameter == nullptr) return;
  TensorType type = parameter->type();
  state_ = std::make_shared<State>(
      State{.kind = State::Kind::parameter, .type = std::move(type), .parameter = std::move(parameter)});
}

Value::Value(TensorType type, Place place)
    : state_(std::make_shared<State>(
          State{.kind = State::Kind::traced, .type = std::move(type), .place = std::move(place)})) {}

bool Value::is_concrete() const { return state_ && state_->kind == State::Kind::concrete; }
bool Value::is_parameter() const { return state_ && state_->kind == State::Kind::parameter; }
bool Value::is_traced() const { return state_ && state_->kind == State::Kind::traced; }

const TensorType& Value::type() const {
  if (!defined()) throw Exception(Code::invalid_argument, "a tensor that has no value was used");
  return state_->type;
}

const Tensor& Value::tensor() const {
  if (is_concrete()) return state_->tensor;
  read().value();
  return state_->parameter->storage();
}

const ParameterPtr& Value::parameter() const {
  if (is_parameter()) return state_->parameter;
  throw Exception(Code::invalid_argument, fmt::format("{} is no parameter", to_string(type())));
}

const void* Value::identity() const {
  if (is_parameter()) return state_->parameter.get();
  return state_.get();
}

const Value::Place& Value::place() const {
  MUSTER_CHECK(is_traced(), "the place of a value outside a trace was read");
  return state_->place;
}

Result<Tensor> Value::read() const {
  if (!defined()) return fail(Code::invalid_argument, "there is no value to read");
  switch (state_->kind) {
    case State::Kind::concrete:
      if (const std::string* reason = state_->tensor.absence()) return fail(Code::invalid_argument, *reason);
      return state_->tensor;
    case State::Kind::parameter:
      if (const std::string* reason = state_->parameter->absence())
        return fail(Code::invalid_argument, *reason);
      if (thread_state().trace != nullptr) break;  // a plan would keep the elements of now
      if (const std::string divided = state_->parameter->division_text(); !divided.empty())
        return fail(Code::invalid_argument, divided);
      if (state_->parameter->materialized()) return state_->parameter->storage();
      return fail(Code::invalid_argument,
                  fmt::format("parameter '{}' has no values yet", state_->parameter->name()));
    case State::Kind::traced:
      break;
  }
  thread_state().looked_at_traced = true;
  return fail(
      Code::invalid_argument,
      fmt::format("this tensor ({}) has no value while its graph is made: code that looks at elements "
                  "(if, while, float(), asnumpy()) cannot be traced; compute with ops instead, or "
                  "return the tensor and look at it outside",
                  to_string(state_->type)));
}

std::string to_string(const TensorType& type) {
  return fmt::format("{} {}", muster::to_string(type.dtype), muster::to_string(type.shape));
}

}  // namespace muster::graph
