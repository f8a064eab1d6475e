// Optimizer: what all optimizers have in common, which is all but the formula.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/nn/cell.h"
#include "muster/nn/schedules.h"

namespace muster::nn {

// A number; a number for each step; or a schedule. Rates are at least 0.
class LearningRate {
 public:
  LearningRate(double rate) : rate_(rate) {}              // NOLINT: implicit by design
  LearningRate(Rates rates) : rate_(std::move(rates)) {}  // NOLINT
  template <std::derived_from<LearningRateSchedule> Schedule>
  LearningRate(std::shared_ptr<Schedule> schedule)  // NOLINT
      : rate_(std::shared_ptr<LearningRateSchedule>(std::move(schedule))) {}

  using Rate = std::variant<double, Rates, std::shared_ptr<LearningRateSchedule>>;
  const Rate& rate() const { return rate_; }

 private:
  Rate rate_;
};

// A number, at least 0; or a cell that is called with the number of steps done (one int32) and gives one.
class WeightDecay {
 public:
  WeightDecay(double decay) : decay_(decay) {}  // NOLINT: implicit by design
  template <std::derived_from<Cell> Of>
  WeightDecay(std::shared_ptr<Of> cell) : cell_(std::move(cell)) {}  // NOLINT

  double decay() const { return decay_; }
  const CellPtr& cell() const { return cell_; }  // null for a number

 private:
  double decay_ = 0;
  CellPtr cell_;
};

// Parameters with settings of their own; what is not set is as the optimizer says.
struct ParameterGroup {
  std::vector<ParameterPtr> parameters;
  std::optional<LearningRate> learning_rate = {};
  std::optional<WeightDecay> weight_decay = {};
  // Takes the mean over all axes but the first out of gradients with two or more axes whose second size is a
  // multiple of 16 (the rule of the library whose name it has).
  bool grad_centralization = false;
};

// What an optimizer updates: parameters, or groups of them. Without groups, weight decay leaves out the
// parameters with "beta" or "gamma" in their names; in groups it takes all.
class ParameterGroups {
 public:
  ParameterGroups(std::vector<ParameterPtr> parameters)  // NOLINT: implicit by design
      : groups_{{.parameters = std::move(parameters)}}, grouped_(false) {}
  ParameterGroups(const Cell& network)  // NOLINT: likewise; all its trainable parameters
      : ParameterGroups(network.trainable_params()) {}
  ParameterGroups(std::initializer_list<ParameterPtr> parameters)
      : ParameterGroups(std::vector<ParameterPtr>(parameters)) {}
  // `order` lists all parameters of the groups as the gradients will come; empty: group after group.
  explicit ParameterGroups(std::vector<ParameterGroup> groups, std::vector<ParameterPtr> order = {})
      : groups_(std::move(groups)), order_(std::move(order)), grouped_(true) {}

  const std::vector<ParameterGroup>& groups() const { return groups_; }
  const std::vector<ParameterPtr>& order() const { return order_; }
  bool grouped() const { return grouped_; }

 private:
  std::vector<ParameterGroup> groups_;
  std::vector<ParameterPtr> order_;
  bool grouped_;
};

// While updates are paused, an optimizer that is called by itself changes nothing and gives nothing: the step
// was lost, and is made again. Any thread.
void pause_updates(bool paused);

class Optimizer;

// Called with each optimizer whose step is traced, or runs op by op, where it counts the step; behind a
// construct that is written in Python, which may count none, once more, and `counts` is false. `train` knows
// what to do. What it throws ends the trace. Null, the default: none. Set before training.
using UpdateObserver = void (*)(const Optimizer& optimizer, bool counts);
void set_update_observer(UpdateObserver observer);

// A cell that is called with the gradients, one for each of `updated_parameters()`, in order, and updates all
// of them in place by one cached plan. Its state is Parameters of its own ("moments.fc.weight"). Rates are
// parameters too ("learning_rate", "learning_rate_group_1"), so that setting one needs no new trace, or
// computed in the graph from `global_step`, an int32 (1,) that counts the steps done.
class Optimizer : public Cell {
 public:
  struct Settings {
    LearningRate learning_rate = 0.1;
    WeightDecay weight_decay = 0.0;
    double loss_scale = 1.0;  // gradients are divided by it
  };
  Optimizer(std::string class_name, const ParameterGroups& parameters, const Settings& settings);

  // "learning_rate=0.1, 10 parameters": as it is now.
  std::string settings() const override;

  const std::vector<ParameterPtr>& updated_parameters() const { return updated_; }
  // Whether no group has a rate of its own.
  bool has_one_rate() const { return rates_.size() == 1; }
  // The rate of all parameters that have none of their own: null when it is a schedule; (steps,) for a list.
  const ParameterPtr& learning_rate() const { return rates_.front().parameter; }
  // The schedule, null when there is none.
  const std::shared_ptr<LearningRateSchedule>& schedule() const { return rates_.front().schedule; }
  // The same of one parameter.
  const ParameterPtr& learning_rate(std::size_t index) const {
    return rates_[rules_.at(index).rate].parameter;
  }
  const std::shared_ptr<LearningRateSchedule>& schedule(std::size_t index) const {
    return rates_[rules_.at(index).rate].schedule;
  }
  // An error when the rate is not one number.
  Result<> set_learning_rate(double learning_rate);
  const ParameterPtr& global_step() const { return global_step_; }
  // What is kept beside updated parameter `index` and has its shape.
  std::vector<ParameterPtr> states_of(std::size_t index) const;
  // Whether the formula computes each element for itself, so that workers may share its work and its state.
  virtual bool updates_elements() const { return false; }
  double loss_scale() const { return loss_scale_; }
  bool grouped() const { return grouped_; }

  // The rate that the next step takes for parameter `index`, float32 ().
  Value rate_of(std::size_t index) const;
  // As it was given: of parameters whose group has none, and of one parameter.
  const WeightDecay& weight_decay() const { return decay_; }
  const WeightDecay& weight_decay(std::size_t index) const { return rules_.at(index).decay; }
  // From the next step on, a number for all parameters that decay and whose group has none of its own. An
  // error, and nothing is changed, for a negative one, or where there are no such parameters.
  virtual Result<> set_weight_decay(double decay);
  // The weight decay that the next step takes for it: undefined for none, else ().
  Value decay_of(std::size_t index) const;
  // Steps of construct, for optimizers written in Python or by hand. Each gives as many as it takes.
  Values decayed(std::span<const Value> gradients) const;
  Values centralized(std::span<const Value> gradients) const;
  Values unscaled(std::span<const Value> gradients) const;
  // Counts the step; the last thing that construct does.
  Value count_step() const;
  // Behind a construct that is written in Python: tells the observer. An Exception where parameter servers
  // hold a parameter for which no construct has given them a rule, since they do not see such updates.
  void end_own_construct() const;

  // Checks, prepares each gradient, calls update() for each parameter, counts the step.
  Values construct(std::span<const Value> gradients) override;
  bool is_paused() const override;
  bool is_compiled_alone() const override { return true; }

 protected:
  // One parameter's part of a step. `weight_decay` and `loss_scale` are still to be applied to the gradient.
  struct Update {
    Value gradient;
    Value learning_rate;
    double weight_decay = 0;
    double loss_scale = 1;
    Value changing_decay = {};  // instead of weight_decay, for formulas with a decay of their own
  };
  // The formula: updates parameter `index` and its state.
  virtual void update(std::size_t index, const Update& update);
  // Whether weight decay joins the gradient (true) or is the formula's own.
  virtual bool decays_gradient() const { return true; }

  // A parameter like each updated one, named "<prefix>.<name>".
  std::vector<ParameterPtr> make_state(std::string_view prefix, double initial_value, bool scalar = false);
  // Of a table on parameter servers: what of an update is known before any gradient. Throws where its rows
  // cannot be updated so.
  Update update_of_table(std::size_t index) const;
  void require_served_rules() const;
  // An Exception unless there is one gradient for each updated parameter.
  void require_gradients(std::span<const Value> gradients) const;

 private:
  friend class LARS;

  struct Rate {
    ParameterPtr parameter;  // a number, or the list
    bool is_list = false;
    std::shared_ptr<LearningRateSchedule> schedule;
  };
  struct Rule {
    std::size_t rate = 0;  // index
    WeightDecay decay = 0.0;
    bool has_common_decay = false;  // its group has none of its own, and it is not left out
    bool centralizes = false;
  };

  void add_rate(const std::string& name, const LearningRate& learning_rate);
  void add_group(const ParameterGroup& group, std::size_t rate, const WeightDecay& otherwise);
  void reorder(const std::vector<ParameterPtr>& order);
  void check_settings(const ParameterGroups& parameters, const Settings& settings);
  Value current(const Rate& rate) const;
  Value with_decay(std::size_t index, const Value& gradient) const;
  Value centralized(std::size_t index, const Value& gradient) const;
  // What remains of construct when a wrapper has decayed and unscaled the gradients.
  Values apply_prepared(std::span<const Value> gradients);
  Update prepare(std::size_t index, const Value& gradient, bool is_prepared) const;
  Values run(std::span<const Value> gradients, bool are_prepared);

  bool grouped_;
  WeightDecay decay_;
  double loss_scale_;
  std::vector<ParameterPtr> updated_;
  std::vector<Rule> rules_;                        // by updated parameter
  std::vector<Rate> rates_;                        // the first is the optimizer's own
  ParameterPtr global_step_;                       // int32 (1,)
  std::vector<std::vector<ParameterPtr>> states_;  // each by updated parameter
};

}  // namespace muster::nn
