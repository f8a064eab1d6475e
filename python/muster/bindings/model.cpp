// class Model, and what the training loop in C++ asks of Python: printing and signals.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/callback.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/dataset.h"
#include "python/muster/bindings/foreign.h"
#include "python/muster/bindings/metric.h"
#include "python/muster/bindings/optimizer_arguments.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using train::CallbackContext;
using train::Model;

// ---- What C++ asks of Python ------------------------------------------------------------------------------

// By Python's print, so that redirections hold. A line that cannot be printed must not end the training.
void print_in_python(std::string_view line) {
  const nb::gil_scoped_acquire lock;
  try {
    nb::module_::import_("builtins")
        .attr("print")(nb::str(line.data(), line.size()), nb::arg("flush") = true);
  } catch (nb::python_error& exception) {
    exception.discard_as_unraisable("muster");
  }
}

// Asking takes the interpreter lock, so a thread does it every 100 ms only.
bool is_time_to_look() {
  SignalLook& last = process().signals;
  const std::thread::id here = std::this_thread::get_id();
  const auto now = std::chrono::steady_clock::now();
  if (last.thread == here && now - last.at.load() < std::chrono::milliseconds(100)) return false;
  last.thread = here;
  last.at = now;
  return true;
}

// A signal handler that raises (Ctrl-C) ends the training.
Result<> look_for_signals() {
  if (!is_time_to_look()) return {};
  return with_python([]() -> Result<> {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return {};
  });
}

// ---- Model ------------------------------------------------------------------------------------------------

struct PythonModel {
  std::unique_ptr<Model> model;
};

nn::CellPtr cell_from(nb::handle object, const char* what) {
  if (object.is_none()) return nullptr;
  if (nb::isinstance<nn::Cell>(object)) return nb::cast<nn::CellPtr>(object);
  const auto type = class_name(object);
  throw nb::type_error(("Model: " + std::string(what) + " is a Cell, not " + type).c_str());
}

void init_model(PythonModel* self, nb::handle network, nb::handle loss_fn, nb::handle optimizer,
                nb::handle metrics, nb::handle eval_network,
                std::optional<std::vector<std::size_t>> eval_indexes, std::string amp_level,
                const std::string& evaluation) {
  train::ModelOptions options{.network = cell_from(network, "network"),
                              .loss_fn = cell_from(loss_fn, "loss_fn"),
                              .metrics = metrics_from(metrics),
                              .eval_network = cell_from(eval_network, "eval_network"),
                              .eval_indexes = std::move(eval_indexes).value_or(std::vector<std::size_t>{}),
                              .amp_level = std::move(amp_level),
                              .evaluation = unwrap(train::evaluation_from_string(evaluation))};
  if (!optimizer.is_none()) options.optimizer = optimizer_from(optimizer, "Model");
  new (self) PythonModel{unwrap(Model::create(std::move(options)))};
}

// A context whose Python object lives as long as the training, with the attributes that callbacks set on it.
struct HeldContext {
  std::shared_ptr<CallbackContext> context = std::make_shared<CallbackContext>();
  nb::object object = nb::cast(context);
};

// use(callbacks) inside of the callbacks, which are context managers: each is entered before and left after,
// however it ends.
void inside_of(nb::handle callbacks, const std::function<void(std::vector<train::CallbackPtr>)>& use) {
  const nb::object stack = nb::module_::import_("contextlib").attr("ExitStack")();
  try {
    nb::list entered;
    for (const train::CallbackPtr& callback : callbacks_from(callbacks))
      entered.append(stack.attr("enter_context")(callback));
    use(callbacks_from(entered));
  } catch (nb::python_error& error) {
    const nb::object trace = error.traceback().is_valid() ? nb::borrow(error.traceback()) : nb::none();
    if (!nb::cast<bool>(stack.attr("__exit__")(error.type(), error.value(), trace))) throw;
    return;
  }
  stack.attr("close")();
}

// In a job that recovers, one looks at what steps change in the network and no point holds.
void add_attribute_watch(const PythonModel& self, std::vector<train::CallbackPtr>& callbacks) {
  if (!train::job_recovers()) return;
  const nb::object made = nb::module_::import_("muster._carried").attr("AttributeWatch");
  callbacks.push_back(nb::cast<train::CallbackPtr>(made(self.model->predict_network())));
}

void run_training(PythonModel& self, train::TrainOptions options, nb::handle callbacks,
                  const HeldContext& held) {
  options.context = held.context;
  inside_of(callbacks, [&](std::vector<train::CallbackPtr> entered) {
    add_attribute_watch(self, entered);
    options.callbacks = std::move(entered);
    const Result<> done = [&] {
      const nb::gil_scoped_release unlocked;
      return self.model->train(options);
    }();
    unwrap(done);
  });
}

// "" is a mistake of the script (an unset variable), and does not ask for a new start.
std::string resume_from(const std::optional<std::string>& resume) {
  if (resume && resume->empty())
    throw nb::value_error("resume is '': 'last', the path of a checkpoint, or None");
  return resume.value_or("");
}

void train_model(PythonModel& self, std::int64_t epoch, nb::handle train_dataset, nb::handle callbacks,
                 bool dataset_sink_mode, std::int64_t sink_size, std::int64_t initial_epoch,
                 std::int64_t micro_batches, const std::optional<std::string>& resume) {
  const HeldContext held;
  held.object.attr("train_dataset") = train_dataset;
  run_training(self,
               {.epochs = epoch,
                .dataset = batches_from(train_dataset, "train_dataset"),
                .dataset_sink_mode = dataset_sink_mode,
                .sink_size = sink_size,
                .initial_epoch = initial_epoch,
                .resume = resume_from(resume),
                .micro_batches = micro_batches},
               callbacks, held);
}

void fit_model(PythonModel& self, std::int64_t epoch, nb::handle train_dataset, nb::handle valid_dataset,
               const std::variant<std::int64_t, std::vector<std::int64_t>>& valid_frequency,
               nb::handle callbacks, bool dataset_sink_mode, std::int64_t sink_size,
               std::int64_t initial_epoch, std::int64_t micro_batches,
               const std::optional<std::string>& resume) {
  const HeldContext held;
  held.object.attr("train_dataset") = train_dataset;
  held.object.attr("valid_dataset") = valid_dataset;
  train::TrainOptions options{.epochs = epoch,
                              .dataset = batches_from(train_dataset, "train_dataset"),
                              .dataset_sink_mode = dataset_sink_mode,
                              .sink_size = sink_size,
                              .initial_epoch = initial_epoch,
                              .resume = resume_from(resume),
                              .micro_batches = micro_batches};
  if (const auto* epochs = std::get_if<std::vector<std::int64_t>>(&valid_frequency))
    options.valid_epochs.emplace(epochs->begin(), epochs->end());
  else
    options.valid_frequency = std::get<std::int64_t>(valid_frequency);
  if (!valid_dataset.is_none()) options.valid_dataset = batches_from(valid_dataset, "valid_dataset");
  run_training(self, std::move(options), callbacks, held);
}

nb::typed<nb::dict, nb::str, nb::any> eval_model(PythonModel& self, nb::handle valid_dataset,
                                                 nb::handle callbacks) {
  const HeldContext held;
  held.object.attr("valid_dataset") = valid_dataset;
  train::EvalOptions options{.dataset = batches_from(valid_dataset, "valid_dataset"),
                             .context = held.context};
  train::MetricValues values;
  inside_of(callbacks, [&](std::vector<train::CallbackPtr> entered) {
    options.callbacks = std::move(entered);
    Result<train::MetricValues> made = [&] {
      const nb::gil_scoped_release unlocked;
      return self.model->eval(options);
    }();
    values = unwrap(std::move(made));
  });
  return metric_values_object(values);
}

graph::Explanation explain_model(PythonModel& self, nb::handle dataset, bool train) {
  const train::ExplainOptions options{.dataset = batches_from(dataset, "dataset"), .train = train};
  return unwrap([&] {
    const nb::gil_scoped_release unlocked;
    return self.model->explain(options);
  }());
}

// The network is called as itself, so that what it returns keeps its form. Only in a divided job the model
// calls it, which sends what it gives to all workers.
nb::any predict(PythonModel& self, const nb::args& predict_data) {
  if (self.model->is_divided()) {
    std::vector<Tensor> inputs;
    for (const graph::Value& value : tensors_of(predict_data, *self.model->network()))
      inputs.push_back(elements_of(value));
    Result<std::vector<Tensor>> outputs = [&] {
      const nb::gil_scoped_release unlocked;
      return self.model->predict(inputs);
    }();
    const std::vector<Tensor> made = unwrap(std::move(outputs));
    return nb::borrow<nb::any>(values_object(graph::Values(made.begin(), made.end())));
  }
  const auto mode = self.model->predicting();
  return call_cell(nb::cast(self.model->network()), predict_data, nb::kwargs());
}

void bind_eval_cell(nb::module_& core) {
  bind_cell_class<nn::WithEvalCell>(
      core, "WithEvalCell",
      "Called with data and label, it gives the loss, what the network gives, and the label.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::WithEvalCell> self, nn::CellPtr network, nn::CellPtr loss_fn,
             bool add_cast_fp32) {
            new (self.p) Trampoline<nn::WithEvalCell>(std::move(network), std::move(loss_fn), add_cast_fp32);
          },
          keeps_arguments, nb::arg("network"), nb::arg("loss_fn"), nb::arg("add_cast_fp32") = false,
          "With `add_cast_fp32` what the network gives is cast to float32 first.");
}

}  // namespace

void bind_model(nb::module_& core) {
  train::front_end().print = &print_in_python;
  train::front_end().interruption = &look_for_signals;
  bind_eval_cell(core);
  nb::class_<PythonModel>(
      core, "Model",
      "Trains, evaluates and predicts with a network. Forward, loss, gradient, reduction over the workers "
      "and update of a step are one plan, which runs without Python; callbacks run between the steps.")
      .def(
          "__init__", &init_model, nb::arg("network"), nb::arg("loss_fn") = nb::none(),
          nb::arg("optimizer") = nb::none(), nb::arg("metrics") = nb::none(),
          nb::arg("eval_network") = nb::none(), nb::arg("eval_indexes") = nb::none(),
          nb::arg("amp_level") = "O0", nb::kw_only(), nb::arg("evaluation") = "all_workers",
          "`loss_fn` is called with what the network gives and the label; without it the network takes all "
          "columns of the dataset and gives the loss. `metrics` is a dict from names to metrics, or a set of "
          "names: {'accuracy'}. `eval_network` gives loss, prediction and label in an evaluation, at the "
          "places that `eval_indexes` says. `amp_level` 'O1', 'O2', 'O3' or 'auto' trains in mixed "
          "precision: the network computes in bfloat16 as amp.auto_mixed_precision has it, over parameters "
          "and a loss in float32; NotImplementedError names the instructions that the processor lacks for "
          "it. `evaluation` 'all_workers' makes the evaluations of a data-parallel job one over all workers: "
          "where the dataset is sharded (num_shards, shard_id) all of them have the metrics over all rows, "
          "the loss is the mean of the rows', and fit prints the values where no callback does. 'mindspore' "
          "leaves each worker with the metrics of what it was given, the mean of the batches' losses, and "
          "prints nothing.")
      .def("train", &train_model, nb::arg("epoch"), nb::arg("train_dataset"),
           nb::arg("callbacks") = nb::none(), nb::arg("dataset_sink_mode") = false, nb::arg("sink_size") = -1,
           nb::arg("initial_epoch") = 0, nb::kw_only(), nb::arg("micro_batches") = 1,
           nb::arg("resume") = nb::none(),
           "Trains until `epoch` epochs are done, of which `initial_epoch` were done before. `train_dataset` "
           "is a Dataset, or anything that gives batches when it is iterated over, anew for each epoch: a "
           "DataLoader of PyTorch, a list, a function that returns an iterator; a batch is a tuple, list or "
           "dict of arrays. Callbacks run after every step; with `dataset_sink_mode` and a `sink_size`, an "
           "epoch is that many steps and callbacks run around all of them. In parallel mode 'data_parallel' "
           "gradients are summed over all workers, or averaged with gradients_mean. `micro_batches` splits "
           "each batch into so many equal parts, which the workers of a placed network work on at the same "
           "time: once the first part has come back, each worker takes one part forward and one backward in "
           "turn (1F1B). The update is one, and the same but for rounding where the loss is a mean over "
           "samples and the network has no batch statistics. ValueError where a batch cannot be split so. "
           "resume='last' goes on from the newest checkpoint in the folder of the ModelCheckpoint among "
           "`callbacks`, or begins, and says so, where there is none yet; resume=PATH from that one. "
           "Parameters, optimizer, counters, the place in the data, random numbers and the states of "
           "callbacks are set, and the result has the same bits as that of a training that was never "
           "interrupted. In a job all workers go on from the newest checkpoint that each has; another number "
           "of workers goes on with the rows of the epoch that those of before have not had. "
           "CorruptDataError names a damaged file, ValueError what does not fit the script or which workers "
           "lack the checkpoint.")
      .def("fit", &fit_model, nb::arg("epoch"), nb::arg("train_dataset"),
           nb::arg("valid_dataset") = nb::none(), nb::arg("valid_frequency") = 1,
           nb::arg("callbacks") = nb::none(), nb::arg("dataset_sink_mode") = false, nb::arg("sink_size") = -1,
           nb::arg("initial_epoch") = 0, nb::kw_only(), nb::arg("micro_batches") = 1,
           nb::arg("resume") = nb::none(),
           "Trains, and evaluates after every `valid_frequency` epochs, or after the epochs of a list, "
           "counted from 1; both datasets as in train(). Callbacks find the metrics, and the loss as "
           "'eval_loss', in eval_results of the run context; where none of them is a LossMonitor or a "
           "ProgressBar, worker 0 prints them. In a data-parallel job all workers evaluate together, and "
           "have the same values. `resume` as in train().")
      .def("eval", &eval_model, nb::arg("valid_dataset"), nb::arg("callbacks") = nb::none(),
           "The metrics over the dataset, by name; `valid_dataset` is what train() takes. In a data-parallel "
           "job whose dataset is sharded (num_shards and shard_id) it is a collective call, which every "
           "worker makes: each evaluates its shard, and all have the values over all rows, of which none "
           "counts twice. PeerLostError names a worker that is gone.")
      .def(
          "explain", &explain_model, nb::arg("dataset"), nb::arg("train") = true,
          "The plan of a step on the first batch of the dataset, of training or of an evaluation: steps with "
          "their kernels, parameters, memory, work and traces. The step does not run. Raises ValueError in "
          "eager mode, which has no plans.")
      .def(
          "gather_parameters",
          [](PythonModel& self) {
            auto entries = [&] {
              const nb::gil_scoped_release unlocked;
              return self.model->gather_parameters();
            }();
            nb::dict made;
            for (const checkpoint::Entry& entry : unwrap(std::move(entries)))
              made[entry.name.c_str()] = tensor_object(entry.value);
            return nb::borrow<nb::typed<nb::dict, nb::str, TensorObject>>(made);
          },
          "The parameters of the network by name, as tensors, on every worker. Where the network is placed "
          "over several workers they are collected from those that have them: all workers make this call. "
          "save_checkpoint takes the result. PeerLostError names a worker that is gone.")
      .def("predict", &predict, nb::arg("predict_data"),
           nb::sig("def predict(self, *predict_data: Tensor) -> typing.Any"),
           "What the network gives, not training.")
      .def_prop_ro("train_network", [](const PythonModel& self) { return self.model->train_network(); })
      .def_prop_ro("eval_network", [](const PythonModel& self) { return self.model->eval_network(); })
      .def_prop_ro("predict_network", [](const PythonModel& self) { return self.model->predict_network(); });
}

}  // namespace muster::python
