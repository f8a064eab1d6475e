// class Metric and the built-in metrics.
#include "python/muster/bindings/metric.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nanobind/trampoline.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/muster/bindings/foreign.h"
#include "python/muster/bindings/state.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using train::Metric;
using train::MetricPtr;
using train::MetricValue;

// What a metric that is written in Python gave.
class PythonValue final : public train::ForeignValue {
 public:
  explicit PythonValue(nb::object object) : object_(std::move(object)) {}
  PythonValue(const PythonValue&) = delete;
  PythonValue& operator=(const PythonValue&) = delete;
  ~PythonValue() override {
    const nb::gil_scoped_acquire lock;
    object_.reset();
  }
  std::string text() const override {
    const nb::gil_scoped_acquire lock;
    return nb::cast<std::string>(nb::repr(object_));
  }
  std::optional<double> number() const override {
    const nb::gil_scoped_acquire lock;
    try {
      const bool is_array = nb::cast<int>(nb::getattr(object_, "ndim", nb::int_(0))) > 0;
      const nb::object one = is_array ? object_.attr("mean")() : object_;
      const double value = PyFloat_AsDouble(one.ptr());
      if (PyErr_Occurred() == nullptr) return value;
      PyErr_Clear();
    } catch (const nb::python_error&) {  // an array of texts
    } catch (const nb::cast_error&) {    // an `ndim` of its own
    }
    return std::nullopt;
  }
  std::optional<std::string> json() const override {
    const nb::gil_scoped_acquire lock;
    try {
      return nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(object_));
    } catch (const nb::python_error&) {
      return std::nullopt;  // an object of a class of its own
    }
  }
  const nb::object& object() const { return object_; }

 private:
  nb::object object_;
};

std::string text_or_empty(const nb::object& object) {
  return nb::isinstance<nb::str>(object) ? nb::cast<std::string>(object) : std::string();
}

// `Base` as Python makes it: clear, update and eval may be overridden there.
template <class Base>
class MetricTrampoline final : public Base {
 public:
  NB_TRAMPOLINE(Base);

  Result<> clear() override {
    return with_python([&]() -> Result<> {
      const nb::object method = override_of("clear");
      if (!method.is_valid()) return base_clear();
      method();
      return {};
    });
  }

  Result<> update(std::span<const Tensor> inputs) override {
    return with_python([&]() -> Result<> {
      const nb::object method = override_of("update");
      if (!method.is_valid()) return base_update(inputs);
      method(*tuple_of(inputs, [](const Tensor& input) { return tensor_object(input); }));
      return {};
    });
  }

  // By the module of the class that defines update: not one of these packages.
  bool is_of_script() const override {
    const nb::gil_scoped_acquire lock;
    if (!has_override("update")) return false;
    const nb::object method = nb::getattr(nb_trampoline.base(), "update");
    const auto module = text_or_empty(nb::getattr(method, "__module__", nb::none()));
    return !module.starts_with("mindspore") && !module.starts_with("muster");
  }

  Result<MetricValue> eval() override {
    return with_python([&]() -> Result<MetricValue> {
      const nb::object method = override_of("eval");
      if (!method.is_valid()) return base_eval();
      return std::make_shared<const PythonValue>(method());
    });
  }

  Result<train::State> state() override {
    return with_python([&]() -> Result<train::State> {
      const nb::object method = override_of("state_dict");
      if (!method.is_valid()) return Base::state();
      return called_state_dict(nb_trampoline.base(), method);
    });
  }
  Result<> load_state(const train::State& state) override {
    return with_python([&]() -> Result<> {
      if (!override_of("state_dict").is_valid()) return Base::load_state(state);
      return call_load_state_dict(nb_trampoline.base(), override_of("load_state_dict"), state);
    });
  }
  // A built-in one of which a subclass counts otherwise may know more than the state says.
  bool merges() const override {
    const nb::gil_scoped_acquire lock;
    if (has_override("merge")) return true;
    return Base::merges() && !has_override("update") && !has_override("clear") && !has_override("state_dict");
  }
  Result<> merge(const train::State& other) override {
    return with_python([&]() -> Result<> {
      const nb::object method = override_of("merge");
      if (!method.is_valid()) return Base::merge(other);
      if (std::is_abstract_v<Base> && !override_of("state_dict").is_valid())
        return fail(Code::not_provided, class_name(nb_trampoline.base()) +
                                            " has a merge but no state_dict, which says what it has counted");
      method(state_object(other));
      return {};
    });
  }

 private:
  // class Metric itself has no state_dict, which the lookup takes for a mistake.
  bool has_override(const char* name) const {
    return nb::hasattr(nb_trampoline.base(), name) &&
           nb::detail::ticket(nb_trampoline, name, nb::detail::str_hash(name), false).key.is_valid();
  }
  nb::object override_of(const char* name) {
    if (!nb::hasattr(nb_trampoline.base(), name)) return {};
    const nb::detail::ticket override(nb_trampoline, name, nb::detail::str_hash(name), false);
    if (!override.key.is_valid()) return {};
    return nb_trampoline.base().attr(override.key);
  }
  tl::unexpected<Error> missing(const char* name) {
    const auto type = class_name(nb_trampoline.base());
    return fail(Code::not_provided, type + " defines no " + name);
  }
  Result<> base_clear() {
    if constexpr (std::is_abstract_v<Base>)
      return missing("clear");
    else
      return Base::clear();
  }
  Result<> base_update(std::span<const Tensor> inputs) {
    if constexpr (std::is_abstract_v<Base>)
      return missing("update");
    else
      return Base::update(inputs);
  }
  Result<MetricValue> base_eval() {
    if constexpr (std::is_abstract_v<Base>)
      return missing("eval");
    else
      return Base::eval();
  }
};

std::vector<Tensor> metric_inputs(const nb::args& inputs) {
  std::vector<Tensor> tensors;
  for (const nb::handle input : nb::iter(inputs)) tensors.push_back(elements_of(value_from(input)));
  return tensors;
}

// Its elements as a numpy array, whatever `data` is.
nb::object converted(const nb::object&, nb::handle data) {
  if (is_value(data)) return data.attr("asnumpy")();
  return nb::module_::import_("numpy").attr("array")(data);
}

template <class Made, class... Parent>
nb::class_<Made, Parent..., MetricTrampoline<Made>> bind_metric_class(nb::module_& core, const char* name,
                                                                      const char* doc) {
  nb::class_<Made, Parent..., MetricTrampoline<Made>> made(core, name, doc);
  made.def(
          "clear", [](Made& self) { unwrap(self.Made::clear()); }, "As if nothing had been counted.")
      .def(
          "update",
          [](Made& self, const nb::args& inputs) { unwrap(self.Made::update(metric_inputs(inputs))); },
          nb::arg("inputs"), "Counts one batch: tensors, arrays or lists.");
  bind_state<Made>(made);
  made.def(
      "merge",
      [](Made& self, nb::handle state) { unwrap(self.Made::merge(native_state_from(state, "merge"))); },
      nb::arg("state"), "Adds what another one has counted, as its state_dict() says.");
  return made;
}

template <class Made>
void bind_plain(nb::module_& core, const char* name, const char* doc) {
  bind_metric_class<Made, Metric>(core, name, doc)
      .def("__init__", [](nb::pointer_and_handle<Made> self) { new (self.p) MetricTrampoline<Made>(); })
      .def(
          "eval",
          [](Made& self) { return nb::borrow<nb::any>(metric_value_object(unwrap(self.Made::eval()))); },
          "The answer; ValueError before the first update.");
}

template <class Made>
auto bind_class_counts(nb::module_& core, const char* name, const char* doc) {
  return bind_metric_class<Made, Metric>(core, name, doc)
      .def(
          "eval",
          [](Made& self, bool average) {
            return nb::borrow<nb::any>(metric_value_object(unwrap(self.ClassCounts::eval(average))));
          },
          nb::arg("average") = false, "One number for each class, or with `average` their mean.");
}

template <class Made>
void bind_with_type(nb::module_& core, const char* name, const char* doc) {
  bind_class_counts<Made>(core, name, doc)
      .def(
          "__init__",
          [](nb::pointer_and_handle<Made> self, const std::string& eval_type) {
            new (self.p) MetricTrampoline<Made>(unwrap(train::eval_type_from_string(eval_type)));
          },
          nb::arg("eval_type") = "classification");
}

using Normalize = train::ConfusionMatrixOptions::Normalize;

Normalize normalize_from(const std::string& name) {
  if (name == "no_norm") return Normalize::none;
  if (name == "target") return Normalize::target;
  if (name == "prediction") return Normalize::prediction;
  if (name == "all") return Normalize::all;
  throw nb::value_error(
      ("ConfusionMatrix: normalize is 'no_norm', 'target', 'prediction' or 'all', not '" + name + "'")
          .c_str());
}

void bind_metric_base(nb::module_& core) {
  nb::class_<Metric, MetricTrampoline<Metric>>(
      core, "Metric", nb::dynamic_attr(),
      "What an evaluation counts. Subclasses define clear(self), update(self, *inputs) with the tensors of a "
      "batch, and eval(self), which returns the answer. Where each worker evaluates a share of the rows, one "
      "that also defines state_dict(self), what it has counted, and merge(self, state), which adds what "
      "another worker's state_dict() gave, is counted over all workers; without them its value is of each "
      "worker's rows alone.")
      .def("__init__",
           [](nb::pointer_and_handle<Metric> self) {
             refuse_abstract(self.h);
             new (self.p) MetricTrampoline<Metric>();
           })
      .def(
          "set_indexes",
          [](nb::object self, std::vector<std::size_t> indexes) {
            nb::cast<Metric&>(self).set_indexes(std::move(indexes));
            return self;
          },
          nb::arg("indexes"), nb::sig("def set_indexes(self, indexes: list[int]) -> typing.Self"),
          "Which outputs of the evaluation (0 loss, 1 prediction, 2 label) update is given. Returns itself.")
      .def_prop_ro("indexes",
                   [](const Metric& self) { return self.indexes().value_or(std::vector<std::size_t>{}); })
      .def("_convert_data", &converted, nb::arg("data"));
}

void bind_shares(nb::module_& core) {
  bind_metric_class<train::Accuracy, Metric>(
      core, "Accuracy",
      "The share of rows that are predicted right: predictions (N, C), labels (N,) or one-hot (N, C). With "
      "eval_type 'multilabel' both are (N, C) of 0 and 1, and a row is right when all of it is.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::Accuracy> self, const std::string& eval_type) {
            new (self.p) MetricTrampoline<train::Accuracy>(unwrap(train::eval_type_from_string(eval_type)));
          },
          nb::arg("eval_type") = "classification")
      .def("eval", [](train::Accuracy& self) { return metric_value_object(unwrap(self.Accuracy::eval())); });
  bind_plain<train::Loss>(core, "Loss", "The mean of the batches' losses.");
  bind_metric_class<train::TopKCategoricalAccuracy, Metric>(
      core, "TopKCategoricalAccuracy", "The share of rows whose label is among the k greatest predictions.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::TopKCategoricalAccuracy> self, std::int64_t k) {
            if (k < 1) throw nb::value_error("TopKCategoricalAccuracy: k is at least 1");
            new (self.p) MetricTrampoline<train::TopKCategoricalAccuracy>(k);
          },
          nb::arg("k"))
      .def("eval", [](train::TopKCategoricalAccuracy& self) {
        return metric_value_object(unwrap(self.TopKCategoricalAccuracy::eval()));
      });
  bind_plain<train::Top1CategoricalAccuracy>(core, "Top1CategoricalAccuracy",
                                             "TopKCategoricalAccuracy with k = 1.");
  bind_plain<train::Top5CategoricalAccuracy>(core, "Top5CategoricalAccuracy",
                                             "TopKCategoricalAccuracy with k = 5.");
}

}  // namespace

nb::object metric_value_object(const MetricValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return nb::float_(*number);
  if (const auto* tensor = std::get_if<Tensor>(&value)) return tensor_object(*tensor).attr("asnumpy")();
  const auto* made =
      dynamic_cast<const PythonValue*>(std::get<std::shared_ptr<const train::ForeignValue>>(value).get());
  MUSTER_CHECK(made != nullptr, "a metric's value is of another language");
  return made->object();
}

nb::typed<nb::dict, nb::str, nb::any> metric_values_object(const train::MetricValues& values) {
  nb::dict made;
  for (const auto& [name, value] : values) made[name.c_str()] = metric_value_object(value);
  return made;
}

train::NamedMetrics metrics_from(nb::handle object) {
  train::NamedMetrics metrics;
  if (object.is_none()) return metrics;
  if (nb::isinstance<nb::dict>(object)) {
    for (const auto [name, metric] : nb::borrow<nb::dict>(object)) {
      if (!nb::isinstance<Metric>(metric)) {
        const auto type = class_name(metric);
        throw nb::type_error(("metrics: a dict maps names to Metric objects, not to " + type).c_str());
      }
      metrics.emplace_back(nb::cast<std::string>(name), nb::cast<MetricPtr>(metric));
    }
    return metrics;
  }
  if (nb::isinstance<nb::str>(object)) throw nb::type_error("metrics is a dict or a set of names");
  // A set has no order; sorted, results come in the same order every time.
  const bool is_set = PyAnySet_Check(object.ptr());
  const nb::object names =
      is_set ? nb::module_::import_("builtins").attr("sorted")(object) : nb::borrow(object);
  for (const nb::handle name : nb::iter(names)) {
    const auto text = nb::cast<std::string>(name);
    metrics.emplace_back(text, unwrap(train::metric_named(text)));
  }
  return metrics;
}

void bind_metrics(nb::module_& core) {
  bind_metric_base(core);
  bind_shares(core);
  bind_with_type<train::Precision>(
      core, "Precision", "Of what was predicted to be of a class, the share that is; 0 where nothing was.");
  bind_with_type<train::Recall>(
      core, "Recall", "Of what is of a class, the share that was predicted to be; 0 where nothing is.");
  bind_class_counts<train::Fbeta>(core, "Fbeta",
                                  "(1 + beta^2) precision recall / (beta^2 precision + recall).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::Fbeta> self, double beta) {
            if (!(beta > 0)) throw nb::value_error("Fbeta: beta is greater than 0");
            new (self.p) MetricTrampoline<train::Fbeta>(beta);
          },
          nb::arg("beta"));
  bind_class_counts<train::F1>(core, "F1", "Fbeta with beta = 1.")
      .def("__init__",
           [](nb::pointer_and_handle<train::F1> self) { new (self.p) MetricTrampoline<train::F1>(); });
  bind_plain<train::MAE>(core, "MAE",
                         "The sum of |prediction - label| over all elements, divided by the number of rows.");
  bind_plain<train::MSE>(
      core, "MSE", "The sum of (prediction - label)^2 over all elements, divided by the number of rows.");
  bind_metric_class<train::ConfusionMatrix, Metric>(
      core, "ConfusionMatrix", "Entry (i, j) counts the rows of label i that were predicted to be j.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::ConfusionMatrix> self, std::int64_t num_classes,
             const std::string& normalize, double threshold) {
            if (num_classes < 1) throw nb::value_error("ConfusionMatrix: num_classes is at least 1");
            new (self.p) MetricTrampoline<train::ConfusionMatrix>(train::ConfusionMatrixOptions{
                .num_classes = num_classes, .normalize = normalize_from(normalize), .threshold = threshold});
          },
          nb::arg("num_classes"), nb::arg("normalize") = "no_norm", nb::arg("threshold") = 0.5,
          "`normalize` divides by the sum of the row ('target'), of the column ('prediction') or of 'all'. "
          "Predictions (N,) above `threshold` are of class 1.")
      .def("eval", [](train::ConfusionMatrix& self) {
        return metric_value_object(unwrap(self.ConfusionMatrix::eval()));
      });
  train::front_end().read_value = [](const std::string& json) -> std::shared_ptr<const train::ForeignValue> {
    const nb::gil_scoped_acquire lock;
    try {
      return std::make_shared<const PythonValue>(
          nb::module_::import_("json").attr("loads")(nb::str(json.data(), json.size())));
    } catch (const nb::python_error&) {
      return nullptr;
    }
  };
  core.def("metric_names", &train::metric_names, "The names that Model(metrics={...}) knows.");
}

}  // namespace muster::python
