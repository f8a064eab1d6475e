// recoverable: the loops of a training that is written by hand.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/dataset.h"
#include "python/muster/bindings/foreign.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

// What recoverable() returns.
class Steps {
 public:
  Steps(nb::object dataset, train::RecoverableOptions options)
      : dataset_(std::move(dataset)), loop_(std::move(options)) {}

  nb::object next() {
    Result<std::optional<train::LoopStep>> step = std::nullopt;
    {
      const nb::gil_scoped_release unlocked;
      step = loop_.next();
    }
    nb::cast<PythonDataset&>(dataset_).passes = loop_.passes();
    std::optional<train::LoopStep> made = unwrap(std::move(step));
    if (!made) throw nb::stop_iteration();
    const nb::tuple item = tuple_of(made->item, [](const Tensor& value) { return tensor_object(value); });
    return nb::make_tuple(made->epoch, made->step, item);
  }
  void stop() { loop_.stop(); }
  bool is_aborted() const { return loop_.is_aborted(); }

 private:
  nb::object dataset_;
  train::Recoverable loop_;
};

std::unique_ptr<Steps> recoverable(nn::CellPtr net, std::shared_ptr<nn::Optimizer> optimizer,
                                   nb::object dataset, std::int64_t epochs, std::int64_t save_steps,
                                   nb::handle kept_parameters, std::vector<train::CallbackPtr> kept_states) {
  data::Dataset description = dataset_from(dataset, "dataset");
  // Packages with other names wrap it.
  if (!nb::isinstance<PythonDataset>(dataset)) dataset = dataset.attr("_pipeline");
  const std::uint64_t passes = nb::cast<PythonDataset&>(dataset).passes;
  return std::make_unique<Steps>(
      std::move(dataset),
      train::RecoverableOptions{.network = std::move(net),
                                .optimizer = std::move(optimizer),
                                .dataset = std::move(description),
                                .epochs = epochs,
                                .save_steps = save_steps,
                                .first_pass = passes,
                                .kept_parameters = parameters_from(kept_parameters, "recoverable(states)"),
                                .kept_states = std::move(kept_states)});
}

}  // namespace

void bind_recoverable(nb::module_& core) {
  nb::class_<Steps>(core, "RecoverableSteps", "What recoverable() returns: the steps of a training.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &Steps::next, nb::sig("def __next__(self) -> tuple[int, int, tuple[Tensor, ...]]"))
      .def("stop", &Steps::stop,
           "The step that runs now is the last. All workers say it at the same step; leave the loop this way "
           "and not by break.")
      .def_prop_ro(
          "is_aborted", &Steps::is_aborted,
          "Whether the step whose body runs is aborted: a process was lost in the middle of it, and it is "
          "made again. What collective calls have given it since is no number of this training: "
          "`steps = muster.recoverable(...)`, and in the body `if not steps.is_aborted: total += "
          "everywhere`.");
  core.def("_recoverable", &recoverable, nb::arg("net"), nb::arg("optimizer").none(), nb::arg("dataset"),
           nb::arg("epochs"), nb::arg("save_steps"), nb::arg("kept_parameters"), nb::arg("kept_states"));
}

}  // namespace muster::python
