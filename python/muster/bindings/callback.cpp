// class Callback, what it is given, and the callbacks that print and steer.
#include "python/muster/bindings/callback.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>

#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/metric.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using train::CallbackContext;

nb::object outputs_object(const CallbackContext& context) {
  const auto& outputs = context.net_outputs;
  if (outputs.empty()) return nb::none();
  if (outputs.size() == 1) return tensor_object(outputs.front());
  return tuple_of(outputs, [](const Tensor& output) { return tensor_object(output); });
}

nb::object batch_list(const CallbackContext& context, CallbackContext::Mode mode) {
  if (context.mode != mode || context.batch.empty()) return nb::none();
  nb::list columns;
  for (const Tensor& column : context.batch) columns.append(tensor_object(column));
  return columns;
}

std::string parallel_mode() { return std::string(train::to_string(train::context().parallel_mode)); }

std::uint32_t device_number() { return train::world_size(); }

// What a callback may read, each name once: properties that have a value now, and what the script has added.
nb::list names_of(nb::handle context) {
  const nb::object property = nb::module_::import_("builtins").attr("property");
  nb::list names;
  for (const nb::handle item : context.type().attr("__dict__").attr("items")())
    if (nb::isinstance(item[1], property) && nb::hasattr(context, item[0])) names.append(item[0]);
  for (const nb::handle name : context.attr("__dict__"))
    if (!nb::cast<bool>(names.attr("__contains__")(name))) names.append(name);  // not of a property
  return names;
}

nb::list callbacks_list(const CallbackContext& context) {
  nb::list made;
  for (const train::CallbackPtr& callback : context.list_callback) made.append(nb::cast(callback));
  return made;
}

void bind_context(nb::module_& core) {
  nb::class_<CallbackContext>(
      core, "CallbackContext", nb::dynamic_attr(),
      "Where a training or an evaluation is, and with what: what callbacks are given. Callbacks may set "
      "attributes of their own on it for one another.")
      .def(
          "original_args", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def original_args(self) -> CallbackContext"), "The object itself: its attributes.")
      .def("request_stop", &CallbackContext::request_stop, "Ends the training after this step or epoch.")
      .def("get_stop_requested", &CallbackContext::stop_requested)
      .def(
          "get",
          [](nb::handle self, const std::string& name, nb::handle otherwise) {
            return nb::borrow<nb::any>(nb::getattr(self, name.c_str(), otherwise));
          },
          nb::arg("name"), nb::arg("default") = nb::none(), "The attribute of that name, or the default.")
      .def(
          "__getitem__",
          [](nb::handle self, const std::string& name) {
            return nb::borrow<nb::any>(self.attr(name.c_str()));
          },
          nb::arg("name"))
      .def(
          "__contains__",
          [](nb::handle self, const std::string& name) { return nb::hasattr(self, name.c_str()); },
          nb::arg("name"))
      .def("keys", &names_of, nb::sig("def keys(self) -> list[str]"), "The names of what there is to read.")
      .def(
          "items",
          [](nb::handle self) {
            nb::list pairs;
            for (const nb::handle name : names_of(self)) pairs.append(nb::make_tuple(name, self.attr(name)));
            return pairs;
          },
          nb::sig("def items(self) -> list[tuple[str, typing.Any]]"), "Names and values.")
      .def(
          "__iter__", [](nb::handle self) { return nb::iter(names_of(self)); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def_prop_ro(
          "mode",
          [](const CallbackContext& self) {
            return self.mode == CallbackContext::Mode::train ? "train" : "eval";
          },
          "'train' or 'eval'.")
      .def_ro("cur_epoch_num", &CallbackContext::cur_epoch_num, "The epoch, from 1.")
      .def_ro("cur_step_num", &CallbackContext::cur_step_num, "The step, from 1, over all epochs.")
      .def_ro("batch_num", &CallbackContext::batch_num, "Steps of one epoch.")
      .def_ro("epoch_num", &CallbackContext::epoch_num, "Epochs to train.")
      .def_ro("dataset_sink_mode", &CallbackContext::dataset_sink_mode)
      .def_prop_ro("net_outputs", &outputs_object,
                   "Of the last step: the loss, or a tuple that begins with it.")
      .def_prop_ro(
          "train_dataset_element",
          [](const CallbackContext& self) { return batch_list(self, CallbackContext::Mode::train); },
          "The batch of this step of a training, for what is called around each step; else None.")
      .def_prop_ro(
          "eval_dataset_element",
          [](const CallbackContext& self) { return batch_list(self, CallbackContext::Mode::eval); },
          "The batch of this step of an evaluation; else None.")
      .def("_loss",
           [](const CallbackContext& self) {
             const auto loss = loss_of(self);
             return loss ? std::optional(*loss) : std::nullopt;
           })
      .def("_next_rate", [](const CallbackContext& self) { return rate_of_next_step(self); })
      .def("_batch_types",
           [](const CallbackContext& self) {
             nb::list types;
             for (const graph::TensorType& type : self.batch_types)
               types.append(nb::make_tuple(dtype_object(type.dtype),
                                           tuple_of(type.shape.sizes(), [](std::int64_t size) {
                                             return nb::object(nb::int_(size));
                                           })));
             return types;
           })
      .def_prop_ro(
          "eval_results", [](const CallbackContext& self) { return metric_values_object(self.eval_results); },
          "Metrics by name of fit's evaluation after this epoch.")
      .def_prop_ro(
          "metrics", [](const CallbackContext& self) { return metric_values_object(self.metrics); },
          "Metrics by name of an evaluation, for on_eval_epoch_end and on_eval_end.")
      .def_ro("network", &CallbackContext::network, "The network of the model.")
      .def_ro("train_network", &CallbackContext::train_network,
              "Network, loss, gradient and update in one cell.")
      .def_ro("eval_network", &CallbackContext::eval_network)
      .def_ro("loss_fn", &CallbackContext::loss_fn)
      .def_ro("optimizer", &CallbackContext::optimizer)
      .def_prop_ro("list_callback", &callbacks_list, "All callbacks of this training or evaluation.")
      .def_prop_ro(
          "parallel_mode", [](const CallbackContext&) { return parallel_mode(); },
          "'stand_alone' or 'data_parallel'.")
      .def_prop_ro(
          "device_number", [](const CallbackContext&) { return device_number(); },
          "The world size: the number of workers of the job.");
}

void init_early_stopping(nb::pointer_and_handle<train::EarlyStopping> self, std::string monitor,
                         double min_delta, std::int64_t patience, bool verbose, const std::string& mode,
                         std::optional<double> baseline, bool restore_best_weights) {
  new (self.p) CallbackTrampoline<train::EarlyStopping>(
      train::EarlyStoppingOptions{.monitor = std::move(monitor),
                                  .min_delta = min_delta,
                                  .patience = patience,
                                  .verbose = verbose,
                                  .mode = unwrap(train::monitor_mode_from_string(mode)),
                                  .baseline = baseline,
                                  .restore_best_weights = restore_best_weights});
}

void init_reduce(nb::pointer_and_handle<train::ReduceLROnPlateau> self, std::string monitor, double factor,
                 std::int64_t patience, bool verbose, const std::string& mode, double min_delta,
                 std::int64_t cooldown, double min_lr) {
  if (factor < 0 || factor >= 1) throw nb::value_error("ReduceLROnPlateau: factor is in [0, 1)");
  new (self.p) CallbackTrampoline<train::ReduceLROnPlateau>(
      train::ReduceLROnPlateauOptions{.monitor = std::move(monitor),
                                      .factor = factor,
                                      .patience = patience,
                                      .verbose = verbose,
                                      .mode = unwrap(train::monitor_mode_from_string(mode)),
                                      .min_delta = min_delta,
                                      .cooldown = cooldown,
                                      .min_lr = min_lr});
}

void bind_control_callbacks(nb::module_& core) {
  bind_callback_class<train::EarlyStopping>(
      core, "EarlyStopping", "Ends the training when a number has not got better for `patience` epochs.")
      .def("__init__", &init_early_stopping, nb::arg("monitor") = "eval_loss", nb::arg("min_delta") = 0.0,
           nb::arg("patience") = 0, nb::arg("verbose") = false, nb::arg("mode") = "auto",
           nb::arg("baseline") = nb::none(), nb::arg("restore_best_weights") = false,
           "`monitor` is a metric of fit's evaluations, 'eval_loss', or 'loss' of the last training step; "
           "`mode` is 'min', 'max' or 'auto' (names with 'acc' get better upwards).");
  bind_callback_class<train::ReduceLROnPlateau>(
      core, "ReduceLROnPlateau",
      "Multiplies the learning rate by `factor` when a number has not got better for `patience` epochs.")
      .def("__init__", &init_reduce, nb::arg("monitor") = "eval_loss", nb::arg("factor") = 0.1,
           nb::arg("patience") = 10, nb::arg("verbose") = false, nb::arg("mode") = "auto",
           nb::arg("min_delta") = 1e-4, nb::arg("cooldown") = 0, nb::arg("min_lr") = 0.0,
           "`cooldown` epochs pass after a reduction before they count again.");
  bind_callback_class<train::LearningRateScheduler>(
      core, "LearningRateScheduler",
      "After each step the learning rate becomes function(learning rate, number of the step).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::LearningRateScheduler> self, nb::callable function) {
            new (self.p) CallbackTrampoline<train::LearningRateScheduler>(
                [function = std::move(function)](double rate, std::int64_t step) {
                  return with_python(
                      [&]() -> Result<double> { return nb::cast<double>(function(rate, step)); });
                });
          },
          nb::arg("learning_rate_function"));
}

train::LambdaCallback::Function calling(const nb::object& function) {
  if (function.is_none()) return {};
  return [function](CallbackContext& context) {
    return with_python([&]() -> Result<> {
      function(nb::cast(&context, nb::rv_policy::reference));
      return {};
    });
  };
}

// The twelve functions by name.
void init_lambda(nb::pointer_and_handle<train::LambdaCallback> self, const nb::object& on_train_epoch_begin,
                 const nb::object& on_train_epoch_end, const nb::object& on_train_step_begin,
                 const nb::object& on_train_step_end, const nb::object& on_train_begin,
                 const nb::object& on_train_end, const nb::object& on_eval_epoch_begin,
                 const nb::object& on_eval_epoch_end, const nb::object& on_eval_step_begin,
                 const nb::object& on_eval_step_end, const nb::object& on_eval_begin,
                 const nb::object& on_eval_end) {
  new (self.p) CallbackTrampoline<train::LambdaCallback>(
      train::LambdaCallback::Functions{.on_train_epoch_begin = calling(on_train_epoch_begin),
                                       .on_train_epoch_end = calling(on_train_epoch_end),
                                       .on_train_step_begin = calling(on_train_step_begin),
                                       .on_train_step_end = calling(on_train_step_end),
                                       .on_train_begin = calling(on_train_begin),
                                       .on_train_end = calling(on_train_end),
                                       .on_eval_epoch_begin = calling(on_eval_epoch_begin),
                                       .on_eval_epoch_end = calling(on_eval_epoch_end),
                                       .on_eval_step_begin = calling(on_eval_step_begin),
                                       .on_eval_step_end = calling(on_eval_step_end),
                                       .on_eval_begin = calling(on_eval_begin),
                                       .on_eval_end = calling(on_eval_end)});
}

void bind_lambda(nb::module_& core) {
  const auto none = nb::none();
  bind_callback_class<train::LambdaCallback>(core, "LambdaCallback",
                                             "Calls the functions that are given, each with the run context.")
      .def("__init__", &init_lambda, nb::arg("on_train_epoch_begin") = none,
           nb::arg("on_train_epoch_end") = none, nb::arg("on_train_step_begin") = none,
           nb::arg("on_train_step_end") = none, nb::arg("on_train_begin") = none,
           nb::arg("on_train_end") = none, nb::arg("on_eval_epoch_begin") = none,
           nb::arg("on_eval_epoch_end") = none, nb::arg("on_eval_step_begin") = none,
           nb::arg("on_eval_step_end") = none, nb::arg("on_eval_begin") = none,
           nb::arg("on_eval_end") = none);
}

void bind_monitors(nb::module_& core) {
  bind_callback_class<train::LossMonitor>(
      core, "LossMonitor",
      "Prints 'epoch: 1 step: 1, loss is 1.4686084' and, after fit's evaluations, their results. Raises "
      "ValueError at a loss that is NaN or infinite.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::LossMonitor> self, std::int64_t per_print_times) {
            if (per_print_times < 0) throw nb::value_error("LossMonitor: per_print_times is at least 0");
            new (self.p) CallbackTrampoline<train::LossMonitor>(per_print_times);
            nb::setattr(self.h, "_per_print_times", nb::int_(per_print_times));  // subclasses of scripts read
            nb::setattr(self.h, "_last_print_time", nb::int_(0));  // both in a step_end of theirs
          },
          nb::arg("per_print_times") = 1, "Prints every `per_print_times` steps; 0: never.");
  bind_callback_class<train::TimeMonitor>(
      core, "TimeMonitor",
      "Prints 'Train epoch time: 20896.986 ms, per step time: 83.588 ms' after each epoch.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::TimeMonitor> self, std::optional<std::int64_t> data_size,
             bool data_time) {
            if (data_size && *data_size < 1) throw nb::value_error("TimeMonitor: data_size is at least 1");
            new (self.p) CallbackTrampoline<train::TimeMonitor>(
                train::TimeMonitorOptions{.data_size = data_size.value_or(0), .data_time = data_time});
          },
          nb::arg("data_size") = nb::none(), nb::arg("data_time") = false,
          "`data_size` is the number of steps to divide by. `data_time`: always says what of a step of a "
          "training passed before it, in the dataset and in other callbacks, as ' (data time: 0.512 ms)'; "
          "else so where that is a tenth of the time or more.");
  bind_callback_class<train::ProgressBar>(
      core, "ProgressBar",
      "Shows on standard error how far the training is: a line that is drawn anew on a terminal, else one "
      "line after each epoch. On rank 0 only.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::ProgressBar> self, int width, std::optional<bool> live) {
            if (width < 1 || width > 1000) throw nb::value_error("ProgressBar: width is from 1 to 1000");
            new (self.p) CallbackTrampoline<train::ProgressBar>(
                train::ProgressBarOptions{.width = width, .live = live});
          },
          nb::arg("width") = 30, nb::arg("live") = nb::none(),
          "`live`: draw anew; by default whether standard error is a terminal.")
      .def("line", &train::ProgressBar::line, nb::arg("run_context"), "What is shown now.");
}

using train::CheckpointConfig;

std::vector<checkpoint::Entry> further_entries(const nb::dict& named) {
  std::vector<checkpoint::Entry> entries;
  for (const auto [name, value] : named)
    entries.push_back({nb::cast<std::string>(name), elements_of(value_from(value))});
  return entries;
}

void bind_model_checkpoint(nb::module_& core) {
  nb::class_<CheckpointConfig>(core, "CheckpointConfig",
                               "When ModelCheckpoint saves, and how many files stay.")
      .def(
          "__init__",
          [](CheckpointConfig* self, std::optional<std::int64_t> steps, std::optional<std::int64_t> seconds,
             std::optional<std::int64_t> keep, nn::CellPtr saved_network,
             const std::optional<nb::dict>& append_info, bool integrated_save, std::string format) {
            unwrap(checkpoint::extension_of(format));
            new (self) CheckpointConfig{
                .save_checkpoint_steps = steps.value_or(0),
                .save_checkpoint_seconds = seconds.value_or(0),
                .keep_checkpoint_max = keep.value_or(0),
                .saved_network = std::move(saved_network),
                .append_info = append_info ? further_entries(*append_info) : std::vector<checkpoint::Entry>{},
                .integrated_save = integrated_save,
                .format = std::move(format)};
          },
          nb::arg("save_checkpoint_steps") = 1, nb::arg("save_checkpoint_seconds") = 0,
          nb::arg("keep_checkpoint_max") = 5, nb::arg("saved_network") = nb::none(),
          nb::arg("append_info") = nb::none(), nb::arg("integrated_save") = true, nb::arg("format") = "ckpt",
          "Saves every `save_checkpoint_steps` steps; without steps (0 or None), every "
          "`save_checkpoint_seconds`. The newest `keep_checkpoint_max` files stay; 0 keeps all. "
          "`saved_network` is saved instead of the network with its optimizer. `append_info` are further "
          "entries of each file, numbers and tensors by name; to whole numbers named epoch_num and step_num "
          "those of the save are added. With integrated_save=False each parameter server writes its rows of "
          "tables beside the file, and no worker has them in its memory. `format` is \"ckpt\" or "
          "\"safetensors\", which files are then named.")
      .def_ro("save_checkpoint_steps", &CheckpointConfig::save_checkpoint_steps)
      .def_ro("save_checkpoint_seconds", &CheckpointConfig::save_checkpoint_seconds)
      .def_ro("keep_checkpoint_max", &CheckpointConfig::keep_checkpoint_max)
      .def_ro("format", &CheckpointConfig::format);
  bind_callback_class<train::ModelCheckpoint>(
      core, "ModelCheckpoint",
      "Writes DIRECTORY/PREFIX-EPOCH_STEP.ckpt (or .safetensors) with the parameters of network and "
      "optimizer, and beside it PREFIX-EPOCH_STEP.state with what else train(resume='last') goes on from. "
      "Where files of an earlier training lie, PREFIX becomes PREFIX_1 and so on; a training that goes on "
      "keeps its own.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::ModelCheckpoint> self, std::string prefix,
             std::optional<std::string> directory, std::optional<CheckpointConfig> config) {
            new (self.p) CallbackTrampoline<train::ModelCheckpoint>(
                train::ModelCheckpointOptions{.prefix = std::move(prefix),
                                              .directory = directory.value_or("."),
                                              .config = config.value_or(CheckpointConfig{})});
          },
          nb::arg("prefix") = "CKP", nb::arg("directory") = nb::none(), nb::arg("config") = nb::none())
      .def_prop_ro(
          "latest_ckpt_file_name",
          [](const train::ModelCheckpoint& self) { return self.latest_ckpt_file_name(); },
          "The last file that was written; '' before.");
}

}  // namespace

void call_with_own_context(nb::handle callback, std::string_view method, nb::handle context) {
  for (const std::string_view stage : {"on_train_", "on_eval_"})
    if (method.starts_with(stage)) callback.attr(std::string(method.substr(stage.size())).c_str())(context);
}

void refuse_own_context(nb::handle callback, std::string_view method) {
  throw nb::type_error(fmt::format("{}.{} takes the run context of a Model's training or evaluation",
                                   class_name(callback), method)
                           .c_str());
}

std::vector<train::CallbackPtr> callbacks_from(nb::handle object) {
  std::vector<train::CallbackPtr> callbacks;
  const auto add = [&](nb::handle callback) {
    if (!nb::isinstance<train::Callback>(callback)) {
      const auto type = class_name(callback);
      throw nb::type_error(("callbacks are Callback objects, not " + type).c_str());
    }
    callbacks.push_back(nb::cast<train::CallbackPtr>(callback));
  };
  if (object.is_none()) return callbacks;
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object))
    for (const nb::handle callback : nb::borrow<nb::object>(object)) add(callback);
  else
    add(object);
  return callbacks;
}

void bind_callbacks(nb::module_& core) {
  bind_context(core);
  nb::class_<train::Callback, CallbackTrampoline<train::Callback>> base(
      core, "Callback", nb::dynamic_attr(),
      "Code at the steps of a training or an evaluation. Override what you need of begin, epoch_begin, "
      "step_begin, step_end, epoch_end and end, which are called in both, or of the same names after "
      "on_train_ (on_train_begin, on_train_step_end, ...) and on_eval_. Each is given the run context.");
  base.def("__init__", [](nb::pointer_and_handle<train::Callback> self) {
    refuse_abstract(self.h);
    new (self.p) CallbackTrampoline<train::Callback>();
  });
  base.def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> typing.Self"),
          "Called before a training or an evaluation of a Model begins; what it returns is the callback.")
      .def(
          "__exit__", [](const train::Callback&, const nb::args&) {}, nb::arg("args"),
          "Called when that has ended, with the exception's class, the exception and its traceback, or "
          "None.");
  bind_callback_methods<train::Callback>(base);
  bind_monitors(core);
  bind_model_checkpoint(core);
  bind_control_callbacks(core);
  bind_lambda(core);
}

}  // namespace muster::python
