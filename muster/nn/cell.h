// Cell: a piece of a network with parameters and children.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/nn/place.h"

namespace muster::nn {

using graph::ParameterPtr;
using graph::RunContext;
using graph::Value;
using graph::Values;

// What mixed precision does around a cell's construct.
struct CellPrecision {
  graph::Precision ops;               // what it computes in
  std::optional<DType> inputs = {};   // what its floating inputs are cast to
  std::optional<DType> outputs = {};  // and its floating outputs
  bool automatic = false;             // set by a level of mixed precision (amp.h), not by to_float
};

// What a cell is beside its class, its arguments, its children and its parameters: for copies.
struct CellState {
  std::string path = {};
  bool has_parent = false;
  bool auto_prefix = true;
  bool training = false;
  std::optional<CellPrecision> precision = {};
  std::optional<Place> place = {};
  bool recomputes = false;
};

// What a loss function was given, the outputs of a network and the label, and what it gave.
struct LossCall {
  Values given;
  Values loss;
};

// Subclasses insert children and parameters in their constructor and compute in construct, by ops and by
// calling children. Every write that could change the graph raises the version, so that cached plans of the
// old tree are not used again. Threads: a tree of cells is used by one thread at a time.
class Cell : public graph::Versioned {
 public:
  using Children = std::vector<std::pair<std::string, std::shared_ptr<Cell>>>;
  using Parameters = std::vector<std::pair<std::string, ParameterPtr>>;

  explicit Cell(std::string class_name = "Cell");
  ~Cell() override;

  // What the cell computes. It runs once for each trace, on traced values.
  virtual Values construct(std::span<const Value> inputs) = 0;

  // A gradient of the cell's own, which takes the place of construct's: the gradients of the inputs, from
  // the inputs, what construct gave and the gradients of that (graph::GradientRule). Nothing, the default:
  // the gradient is that of construct. Parameters that construct uses get zeros.
  using Bprop = graph::GradientRule::Gradients;
  virtual Bprop own_bprop() { return nullptr; }
  // construct's `body`, with gradients by `bprop`. For code that calls a construct.
  Values with_bprop(std::span<const Value> inputs, const std::function<Values()>& body, Bprop bprop);

  // Inside a trace, and in eager mode, construct runs inline; else through a cached plan of this cell.
  Values call(std::span<const Value> inputs);
  Values call(std::span<const Value> inputs, const RunContext& context);
  // The plan that such a call would run, made unless there is one; runs nothing. An error in eager mode.
  Result<graph::Explanation> explain(std::span<const Tensor> inputs, const RunContext& context);
  // The output of a cell that has one, `y = fc(x)`; an Exception where it has several: those are call()'s.
  template <std::convertible_to<Value>... Inputs>
  requires(sizeof...(Inputs) > 0) Value operator()(const Inputs&... inputs) {
    const std::array<Value, sizeof...(Inputs)> all{Value(inputs)...};
    return call_for_one(all);
  }

  // All outputs of a cell that has several: `Values out = lstm.outputs(x);`
  template <std::convertible_to<Value>... Inputs>
  requires(sizeof...(Inputs) > 0) Values outputs(const Inputs&... inputs) {
    const std::array<Value, sizeof...(Inputs)> all{Value(inputs)...};
    return call(all);
  }

  // `loss_fn` of what this network gives for all inputs but the last, and of the last, the label; with
  // `add_cast_fp32` in float32. Where both are written in Python, what the network returned is one argument.
  virtual LossCall call_with_loss(std::span<const Value> inputs, Cell& loss_fn, bool add_cast_fp32 = false);

  // In a job that divides a network over its workers, what such calls give goes to all of them, instead of
  // staying where it is made. Before the first call.
  void replicate_outputs();

  // Makes a child and inserts it: `nn::Dense& fc = add<nn::Dense>("fc", 784, 10);` An Exception where the
  // name is taken.
  template <std::derived_from<Cell> Child, class... Arguments>
  Child& add(std::string_view name, Arguments&&... arguments) {
    require_free(name);
    const auto child = std::make_shared<Child>(std::forward<Arguments>(arguments)...);
    insert_child(name, child);
    return *child;
  }
  // The same for a parameter that begins as `initial`: `ParameterPtr scale = add_parameter("scale", ones);`
  ParameterPtr add_parameter(std::string_view name, Tensor initial);

  // Adds or replaces. The names of a child's parameters become paths ("fc.weight") when a parent that names
  // its children (set_auto_prefix) gets it; with several parents the last one counts.
  void insert_child(std::string_view name, std::shared_ptr<Cell> child);
  void insert_param(std::string_view name, ParameterPtr parameter);
  // The same for a parameter that this cell keeps in `member`: one that takes its place goes there, too.
  void keep_param(std::string_view name, ParameterPtr& member);
  // Whether it is such a one.
  bool keeps_param(std::string_view name) const;
  // Removes the child or parameter of that name, if there is one.
  void remove(std::string_view name);
  // To be called after any other write that a trace may depend on. `change` says what, for people:
  // "attribute 'scale' was set".
  void touch(std::string change) {
    other_version_ = graph::next_version();
    version_ = graph::next_version();
    touched_ = version_;
    change_ = std::move(change);
  }

  // Whether children that are inserted from now on get paths. A cell around a network that training adds
  // (a loss, an optimizer) leaves the names as they are.
  void set_auto_prefix(bool auto_prefix) { auto_prefix_ = auto_prefix; }

  const Children& children() const { return children_; }
  const Parameters& own_parameters() const { return parameters_; }
  // Of the whole tree, in order of insertion, own before children's, each once.
  std::vector<ParameterPtr> parameters() const;
  std::vector<ParameterPtr> trainable_params() const;
  // Puts `prefix` before the names of the parameters and the paths of the cells of the tree.
  void prefix_names(const std::string& prefix);
  // With paths from this cell.
  Parameters parameters_and_names() const;

  // All below with paths from this cell, each once, parents before children.
  Children descendants() const;

  // This cell and all below compute in `dtype`: float32 or bfloat16; their floating inputs and the parameters
  // that they use are cast to it. Parameters stay float32, and BatchNorm and LayerNorm compute in float32
  // whatever comes in. A later call counts, also one for a part of the tree.
  Result<> to_float(DType dtype);
  // Of this cell alone; nothing: it computes as the cell around it, or as it is given.
  void set_precision(std::optional<CellPrecision> precision);
  const std::optional<CellPrecision>& precision() const { return precision_; }

  // In a job that divides a network over its workers, this cell runs on the worker of that rank, and so do
  // the cells below that are placed nowhere themselves. In a process alone it has no effect. `role` is
  // "MS_WORKER". An error names the cell, the line and the choices, and changes nothing.
  Result<> place(std::string_view role, std::int64_t rank,
                 const std::source_location& where = std::source_location::current()) {
    return place_at(role, rank, code_line(where));
  }
  // The same for front ends, which know the line of their caller.
  Result<> place_at(std::string_view role, std::int64_t rank, std::string where);
  const std::optional<Place>& placed() const { return place_; }
  // Whether it was called since it was placed.
  bool called_where_placed() const { return called_where_placed_; }

  // Whether what this cell computes is computed again in the backward pass instead of being kept
  // (graph::RecomputeScope): the same bits, more time, less memory.
  void set_recompute(bool recompute);
  bool recomputes() const { return recomputes_; }

  // While it lives, ops of this thread run where `cell` is placed, if it is, and are computed again if the
  // cell recomputes. For code that calls a construct.
  class PlacedScope {
   public:
    explicit PlacedScope(const Cell& cell);

   private:
    std::optional<graph::PlaceScope> scope_;
    std::optional<graph::RecomputeScope> recompute_;
  };
  // An Exception where this call cannot be made where the cell is placed: op by op nothing can be divided.
  void require_possible_place() const;

  // Whether calls compute nothing just now: see pause_updates().
  virtual bool is_paused() const { return false; }
  // Whether a call outside of a trace runs its code now.
  bool runs_op_by_op() const;
  // Whether it is compiled for itself where code around it cannot be (graph::falls_back).
  virtual bool is_compiled_alone() const { return false; }

  bool training() const { return training_; }
  // This cell and all below.
  virtual void set_train(bool training = true);

  // Of this cell alone.
  CellState state() const;
  void restore(CellState state);

  // The arguments that it was made with, as Python writes them: "3, 16, kernel_size=3". For people.
  virtual std::string settings() const { return {}; }
  const std::string& class_name() const { return class_name_; }
  // The path given by parents: "" for a root, "fc", "block.fc".
  const std::string& path() const { return path_; }
  std::uint64_t tree_version() const override;
  // "Dense 'fc'", "Network"
  std::string description() const override;
  // Of the whole tree, the newest.
  std::string change_since(std::uint64_t stamp) const override;

 private:
  // An Exception where a child or parameter has the name.
  void require_free(std::string_view name) const;

  struct Change {
    std::uint64_t when = 0;
    std::string what = {};
  };
  void set_path(const std::string& path);
  void tell_of_untrained() const;
  Value call_for_one(std::span<const Value> inputs);
  Values constructed(std::span<const Value> inputs);
  graph::Function& outside_function();
  void collect(const std::string& prefix, Parameters& found) const;
  void collect(const std::string& prefix, Children& found) const;
  void find_change(Change& newest) const;

  std::string class_name_;
  std::string path_;
  bool auto_prefix_ = true;
  bool has_parent_ = false;
  bool training_ = false;
  bool recomputes_ = false;
  std::optional<CellPrecision> precision_;
  std::optional<Place> place_;
  mutable bool called_where_placed_ = false;
  mutable bool told_of_untrained_ = false;
  std::uint64_t version_ = graph::next_version();
  // Of the other mode (training or not): a cell that goes back to a mode goes back to its version and plans.
  std::uint64_t other_version_ = graph::next_version();
  std::uint64_t touched_ = 0;  // the version of the last write,
  std::string change_;         // and which it was
  Children children_;
  Parameters parameters_;
  std::vector<std::pair<std::string, ParameterPtr*>> members_;  // of subclasses
  std::unique_ptr<graph::Function> function_;                   // for calls outside a trace
};

using CellPtr = std::shared_ptr<Cell>;

// "Dense(784, 10)"; a cell with children is a tree of them, one a line.
std::string to_string(const Cell& cell);

}  // namespace muster::nn
