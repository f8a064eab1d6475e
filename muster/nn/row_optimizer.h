// RowOptimizer: an optimizer as the row of its update describes it (graph/op.h, OptimizerSchema).
#pragma once

#include <string_view>
#include <vector>

#include "muster/nn/optimizer.h"

namespace muster::nn {

// The classes (optimizer_classes.h, made from the rows) add only names and types of arguments to this.
class RowOptimizer : public Optimizer {
 public:
  // `arguments` are all that the schema passes on, but for those of Settings.
  RowOptimizer(const graph::Op& row, const ParameterGroups& parameters, const Settings& settings,
               graph::Attributes arguments);
  bool updates_elements() const override;
  const graph::OptimizerSchema& schema() const { return row_.optimizer; }
  // Whether the update is passed an argument of that name.
  bool has_argument(std::string_view name) const { return arguments_.find(name) != nullptr; }
  // Another momentum, say, from the next step on. An Exception, and nothing is changed, where the schema
  // passes on no such argument, the value is not allowed, or other state would be kept with it.
  void set_argument(std::string_view name, graph::Attribute value);
  Result<> set_weight_decay(double decay) override;

 protected:
  void update(std::size_t index, const Update& update) override;
  bool decays_gradient() const override { return !row_.optimizer.decays_itself; }

 private:
  struct State {
    std::string_view name;
    std::vector<ParameterPtr> parameters;  // by updated parameter
  };

  void check_arguments() const;
  void make_states();
  void set_rules_of_tables() const;
  bool is_kept(const graph::OptimizerState& state) const;
  void set_served_rule(std::size_t index, const Update& update) const;
  void note_first_update(std::size_t index) const;
  // Adds what the update reads as `name`: nothing for a state that is not kept.
  void add_input(std::string_view name, std::size_t index, std::vector<Value>& inputs) const;

  const graph::Op& row_;
  graph::Attributes arguments_;
  std::vector<State> states_;
};

// The classes, for code that treats them all alike.
template <class... Class>
struct OptimizerClasses {};

}  // namespace muster::nn
