// A network written as a struct: children and parameters are members that register themselves, and forward()
// computes.
//
//   struct Network : nn::Module<Network> {
//     nn::Dense& hidden = add<nn::Dense>("hidden", 784, 128);
//     nn::Dense& out = add<nn::Dense>("out", 128, 10);
//     Value forward(const Value& x) { return out(ops::relu(hidden(x))); }
//   };
//
// A module may have a gradient of its own: bprop() takes the inputs of forward(), what that gave, and the
// gradient of it, and gives the gradients of the inputs, which take the place of forward()'s.
//
//     Values bprop(const Value& x, const Value& out, const Value& dout) { return {ops::mul(dout, x)}; }
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "muster/nn/cell.h"

namespace muster::nn {

// The name of a type without its namespaces, for people: "Network".
std::string class_name_of(const std::type_info& type);
// Throws what is wrong with a call.
[[noreturn]] void refuse_inputs(const Cell& module, std::size_t wanted, std::size_t given);

// `Derived` has a public forward() that takes Values, as many as the module has inputs, and gives a Value, or
// Values where it has several outputs.
template <class Derived>
class Module : public Cell {
 public:
  Module() : Cell(class_name_of(typeid(Derived))) {}
  Values construct(std::span<const Value> inputs) final { return forwarded(&Derived::forward, inputs); }
  Bprop own_bprop() final {
    if constexpr (requires { &Derived::bprop; })
      return [this](std::span<const Value> inputs, std::span<const Value> outputs,
                    std::span<const Value> output_gradients) {
        return passed_back(&Derived::forward, inputs, outputs, output_gradients);
      };
    else
      return nullptr;
  }

 private:
  // One value as itself, as forward() gave it; several as Values.
  template <class Output>
  static Output as_given(std::span<const Value> values) {
    if constexpr (std::is_same_v<Output, Values>)
      return Values(values.begin(), values.end());
    else
      return values.front();
  }
  template <class Output, class... Inputs>
  Values passed_back(Output (Derived::*)(Inputs...), std::span<const Value> inputs,
                     std::span<const Value> outputs, std::span<const Value> output_gradients) {
    return passed_back<Output>(inputs, outputs, output_gradients, std::index_sequence_for<Inputs...>());
  }
  template <class Output, class... Inputs>
  Values passed_back(Output (Derived::*)(Inputs...) const, std::span<const Value> inputs,
                     std::span<const Value> outputs, std::span<const Value> output_gradients) {
    return passed_back<Output>(inputs, outputs, output_gradients, std::index_sequence_for<Inputs...>());
  }
  template <class Output, std::size_t... i>
  Values passed_back(std::span<const Value> inputs, std::span<const Value> outputs,
                     std::span<const Value> output_gradients, std::index_sequence<i...>) {
    return static_cast<Derived&>(*this).bprop(inputs[i]..., as_given<Output>(outputs),
                                              as_given<Output>(output_gradients));
  }

  template <class Output, class... Inputs>
  Values forwarded(Output (Derived::*forward)(Inputs...), std::span<const Value> inputs) {
    return forwarded(forward, inputs, std::index_sequence_for<Inputs...>());
  }
  template <class Output, class... Inputs>
  Values forwarded(Output (Derived::*forward)(Inputs...) const, std::span<const Value> inputs) {
    return forwarded(forward, inputs, std::index_sequence_for<Inputs...>());
  }
  template <class Forward, std::size_t... i>
  Values forwarded(Forward forward, std::span<const Value> inputs, std::index_sequence<i...> places) {
    if (inputs.size() != places.size()) refuse_inputs(*this, places.size(), inputs.size());
    return (static_cast<Derived&>(*this).*forward)(inputs[i]...);
  }
};

}  // namespace muster::nn
