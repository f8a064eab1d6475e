// Learning rates that change from step to step: cells and lists.
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"

namespace muster::python {
namespace {

template <class Made>
void init_decay(nb::pointer_and_handle<Made> self, double learning_rate, double decay_rate,
                std::int64_t decay_steps, bool is_stair) {
  make_cell(self, nn::DecayOptions{learning_rate, decay_rate, decay_steps, is_stair});
}

template <class Made>
void bind_decay(nb::module_& core, const char* name, const char* doc) {
  bind_cell_class<Made, nn::LearningRateSchedule>(core, name, doc)
      .def("__init__", &init_decay<Made>, keeps_arguments, nb::arg("learning_rate"), nb::arg("decay_rate"),
           nb::arg("decay_steps"), nb::arg("is_stair") = false,
           "`learning_rate` and `decay_rate` are above 0, `decay_steps` is at least 1. With `is_stair` the "
           "rate changes once in `decay_steps` steps.");
}

using Decay = Result<nn::Rates> (*)(const nn::EpochDecayOptions&);

template <Decay decay>
void bind_epoch_decay(nb::module_& core, const char* name, const char* doc) {
  core.def(
      name,
      [](double learning_rate, double decay_rate, std::int64_t total_step, std::int64_t step_per_epoch,
         std::int64_t decay_epoch, bool is_stair) {
        return unwrap(decay({learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair}));
      },
      nb::arg("learning_rate"), nb::arg("decay_rate"), nb::arg("total_step"), nb::arg("step_per_epoch"),
      nb::arg("decay_epoch"), nb::arg("is_stair") = false, doc);
}

void bind_cells(nb::module_& core) {
  bind_cell_class<nn::LearningRateSchedule>(
      core, "LearningRateSchedule",
      "A cell that an optimizer calls with the number of steps done, an int32 tensor (1,), and that gives "
      "the learning rate of the next step, one floating number. Subclasses define construct(self, "
      "global_step).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::LearningRateSchedule> self) { make_cell(self, class_name(self.h)); },
          keeps_arguments);
  bind_decay<nn::ExponentialDecayLR>(
      core, "ExponentialDecayLR",
      "learning_rate * decay_rate^p, p = step / decay_steps, with is_stair its "
      "floor. Called with a step it gives a float32 scalar.");
  bind_decay<nn::NaturalExpDecayLR>(
      core, "NaturalExpDecayLR",
      "learning_rate * exp(-decay_rate * step), with is_stair the step is floor(step / decay_steps) * "
      "decay_steps. Called with a step it gives a float32 scalar.");
  bind_decay<nn::InverseDecayLR>(
      core, "InverseDecayLR",
      "learning_rate / (1 + decay_rate * p), p = step / decay_steps, with is_stair "
      "its floor. Called with a step it gives a float32 scalar.");
  bind_cell_class<nn::CosineDecayLR, nn::LearningRateSchedule>(
      core, "CosineDecayLR",
      "min_lr + (max_lr - min_lr) * (1 + cos(pi * p)) / 2, p = min(step, decay_steps) / decay_steps.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::CosineDecayLR> self, double min_lr, double max_lr,
             std::int64_t decay_steps) {
            make_cell(self, nn::CosineDecayOptions{min_lr, max_lr, decay_steps});
          },
          keeps_arguments, nb::arg("min_lr"), nb::arg("max_lr"), nb::arg("decay_steps"),
          "`min_lr` is at least 0, `max_lr` above it, `decay_steps` at least 1.");
  bind_cell_class<nn::PolynomialDecayLR, nn::LearningRateSchedule>(
      core, "PolynomialDecayLR",
      "(learning_rate - end_learning_rate) * (1 - min(step, d) / d)^power + end_learning_rate, d = "
      "decay_steps; with update_decay_steps d grows with the step: decay_steps * max(ceil(step / "
      "decay_steps), 1).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::PolynomialDecayLR> self, double learning_rate,
             double end_learning_rate, std::int64_t decay_steps, double power, bool update_decay_steps) {
            make_cell(self, nn::PolynomialDecayOptions{learning_rate, end_learning_rate, decay_steps, power,
                                                       update_decay_steps});
          },
          keeps_arguments, nb::arg("learning_rate"), nb::arg("end_learning_rate"), nb::arg("decay_steps"),
          nb::arg("power"), nb::arg("update_decay_steps") = false,
          "`learning_rate` and `power` are above 0, `end_learning_rate` at least 0, `decay_steps` at least "
          "1.");
  bind_cell_class<nn::WarmUpLR, nn::LearningRateSchedule>(
      core, "WarmUpLR", "learning_rate * min(step, warmup_steps) / warmup_steps.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::WarmUpLR> self, double learning_rate, std::int64_t warmup_steps) {
            make_cell(self, nn::WarmUpOptions{learning_rate, warmup_steps});
          },
          keeps_arguments, nb::arg("learning_rate"), nb::arg("warmup_steps"),
          "`learning_rate` is at least 0, `warmup_steps` at least 1.");
}

void bind_lists(nb::module_& core) {
  bind_epoch_decay<nn::exponential_decay_lr>(
      core, "exponential_decay_lr",
      "A list with the rate of each of `total_step` steps: learning_rate * decay_rate^(epoch / decay_epoch), "
      "epoch = floor(step / step_per_epoch); with is_stair the exponent is rounded down.");
  bind_epoch_decay<nn::natural_exp_decay_lr>(
      core, "natural_exp_decay_lr",
      "A list with the rate of each of `total_step` steps: learning_rate * exp(-decay_rate * epoch), epoch = "
      "floor(step / step_per_epoch); with is_stair floor(epoch / decay_epoch) * decay_epoch counts.");
  bind_epoch_decay<nn::inverse_decay_lr>(
      core, "inverse_decay_lr",
      "A list with the rate of each of `total_step` steps: learning_rate / (1 + decay_rate * epoch / "
      "decay_epoch), epoch = floor(step / step_per_epoch); with is_stair epoch / decay_epoch is rounded "
      "down.");
  core.def(
      "cosine_decay_lr",
      [](double min_lr, double max_lr, std::int64_t total_step, std::int64_t step_per_epoch,
         std::int64_t decay_epoch) {
        return unwrap(nn::cosine_decay_lr({min_lr, max_lr, total_step, step_per_epoch, decay_epoch}));
      },
      nb::arg("min_lr"), nb::arg("max_lr"), nb::arg("total_step"), nb::arg("step_per_epoch"),
      nb::arg("decay_epoch"),
      "A list with the rate of each of `total_step` steps: min_lr + (max_lr - min_lr) * (1 + cos(pi * p)) / "
      "2, p = min(epoch, decay_epoch) / decay_epoch, epoch = floor(step / step_per_epoch).");
  core.def(
      "polynomial_decay_lr",
      [](double learning_rate, double end_learning_rate, std::int64_t total_step, std::int64_t step_per_epoch,
         std::int64_t decay_epoch, double power, bool update_decay_epoch) {
        return unwrap(nn::polynomial_decay_lr({learning_rate, end_learning_rate, total_step, step_per_epoch,
                                               decay_epoch, power, update_decay_epoch}));
      },
      nb::arg("learning_rate"), nb::arg("end_learning_rate"), nb::arg("total_step"),
      nb::arg("step_per_epoch"), nb::arg("decay_epoch"), nb::arg("power"),
      nb::arg("update_decay_epoch") = false,
      "A list with the rate of each of `total_step` steps: (learning_rate - end_learning_rate) * (1 - "
      "min(epoch, d) / d)^power + end_learning_rate, d = decay_epoch, epoch = floor(step / step_per_epoch); "
      "with update_decay_epoch d = decay_epoch * max(ceil(epoch / decay_epoch), 1).");
  core.def(
      "warmup_lr",
      [](double learning_rate, std::int64_t total_step, std::int64_t step_per_epoch,
         std::int64_t warmup_epoch) {
        return unwrap(nn::warmup_lr({learning_rate, total_step, step_per_epoch, warmup_epoch}));
      },
      nb::arg("learning_rate"), nb::arg("total_step"), nb::arg("step_per_epoch"), nb::arg("warmup_epoch"),
      "A list with the rate of each of `total_step` steps: learning_rate * min(epoch, warmup_epoch) / "
      "warmup_epoch, epoch = floor(step / step_per_epoch).");
  core.def(
      "piecewise_constant_lr",
      [](const std::vector<std::int64_t>& milestone, const std::vector<double>& learning_rates) {
        return unwrap(nn::piecewise_constant_lr(milestone, learning_rates));
      },
      nb::arg("milestone"), nb::arg("learning_rates"),
      "A list with the rate of each step: learning_rates[i] for the steps from milestone[i - 1] (0 at first) "
      "up to, not including, milestone[i]. Milestones do not fall.");
}

}  // namespace

void bind_schedules(nb::module_& core) {
  bind_cells(core);
  bind_lists(core);
}

}  // namespace muster::python
