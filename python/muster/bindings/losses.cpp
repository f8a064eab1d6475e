// The losses, and the cells that train with them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/cell.h"
#include "python/muster/bindings/optimizer_arguments.h"
#include "python/muster/bindings/parameter.h"

namespace muster::python {
namespace {

using nn::LossBase;

graph::Value optional_value(nb::handle object) {
  return object.is_none() ? graph::Value() : value_from(object);
}

TensorObject get_loss(const LossBase& self, const graph::Value& x, nb::handle weights) {
  const bool plain = PyFloat_Check(weights.ptr()) && nb::cast<double>(weights) == 1.0;
  return tensor_result(self.get_loss(x, plain ? graph::Value() : value_from(weights, &x)));
}

template <class Made>
void bind_reduced(nb::module_& core, const char* name, const char* doc) {
  bind_cell_class<Made, LossBase>(core, name, doc)
      .def(
          "__init__",
          [](nb::pointer_and_handle<Made> self, std::string reduction) {
            make_cell(self, std::move(reduction));
          },
          keeps_arguments, nb::arg("reduction") = "mean", "`reduction` is 'mean', 'sum' or 'none'.");
}

void bind_loss_base(nb::module_& core) {
  bind_cell_class<LossBase>(
      core, "LossBase",
      "What losses have in common: a reduction. Subclasses define construct(self, logits, "
      "labels) and return self.get_loss(x).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<LossBase> self, std::string reduction) {
            make_cell(self, std::move(reduction), class_name(self.h));
          },
          keeps_arguments, nb::arg("reduction") = "mean", "`reduction` is 'mean', 'sum' or 'none'.")
      .def("get_loss", &get_loss, nb::arg("x"), nb::arg("weights") = 1.0,
           "x * weights, reduced over all elements: a scalar, or with 'none' all of them.")
      .def_prop_ro(
          "reduction", [](const LossBase& self) { return self.reduction(); }, "'mean', 'sum' or 'none'.");
}

void bind_differences(nb::module_& core) {
  bind_reduced<nn::L1Loss>(
      core, "L1Loss",
      "|logits - labels|, reduced; the shapes broadcast. A scalar, or with 'none' one number "
      "for each element.");
  bind_reduced<nn::MSELoss>(
      core, "MSELoss",
      "(logits - labels)^2, reduced; the shapes broadcast. A scalar, or with 'none' one "
      "number for each element.");
  bind_cell_class<nn::SmoothL1Loss, LossBase>(core, "SmoothL1Loss",
                                              "With d = |logits - labels|: d^2 / (2 beta) where d < beta, "
                                              "else d - beta / 2; reduced. Girshick, ICCV 2015.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::SmoothL1Loss> self, double beta, std::string reduction) {
            make_cell(self, beta, std::move(reduction));
          },
          keeps_arguments, nb::arg("beta") = 1.0, nb::arg("reduction") = "none",
          "`beta` is above 0, `reduction` 'mean', 'sum' or 'none'.");
}

void bind_binary(nb::module_& core) {
  bind_cell_class<nn::BCELoss, LossBase>(
      core, "BCELoss",
      "-weight (y log(x) + (1 - y) log(1 - x)) for probabilities x and labels y of one shape, reduced; the "
      "logarithms are of 1e-12 at least.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::BCELoss> self, nb::handle weight, std::string reduction) {
            make_cell(self, nn::BCEOptions{std::move(reduction), optional_value(weight)});
          },
          keeps_arguments, nb::arg("weight") = nb::none(), nb::arg("reduction") = "mean",
          "`weight` broadcasts to the labels; `reduction` is 'mean', 'sum' or 'none'.");
  bind_cell_class<nn::BCEWithLogitsLoss, LossBase>(core, "BCEWithLogitsLoss",
                                                   "weight ((1 - y) x + (1 + (pos_weight - 1) y) log(1 + "
                                                   "exp(-x))) for logits x and labels y of one shape, "
                                                   "reduced: BCELoss of sigmoid(x) without loss of digits.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::BCEWithLogitsLoss> self, std::string reduction, nb::handle weight,
             nb::handle pos_weight) {
            make_cell(self, nn::BCEWithLogitsOptions{std::move(reduction), optional_value(weight),
                                                     optional_value(pos_weight)});
          },
          keeps_arguments, nb::arg("reduction") = "mean", nb::arg("weight") = nb::none(),
          nb::arg("pos_weight") = nb::none(),
          "`weight` and `pos_weight`, which weighs positive labels, broadcast to the labels.");
}

void bind_classes(nb::module_& core) {
  bind_cell_class<nn::SoftmaxCrossEntropyWithLogits, LossBase>(
      core, "SoftmaxCrossEntropyWithLogits",
      "The cross entropy of softmax(logits (N, C)) against labels: class numbers (N,) if sparse, else "
      "probabilities (N, C). A scalar, or with 'none' (N,).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::SoftmaxCrossEntropyWithLogits> self, bool sparse,
             std::string reduction) {
            make_cell(self, nn::SoftmaxCrossEntropyOptions{sparse, std::move(reduction)});
          },
          keeps_arguments, nb::arg("sparse") = false, nb::arg("reduction") = "none",
          "`reduction` is 'none', 'mean' or 'sum'.");
  bind_cell_class<nn::NLLLoss, LossBase>(
      core, "NLLLoss",
      "-weight[label] x[label] for log probabilities x (N, C), (N, C, d...) or (C,) and class numbers (N,), "
      "(N, d...) or (), int32 or int64. The mean is over the weights of the labels that are not ignored.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::NLLLoss> self, nb::handle weight, std::int64_t ignore_index,
             std::string reduction) {
            make_cell(self, nn::NLLOptions{optional_value(weight), ignore_index, std::move(reduction)});
          },
          keeps_arguments, nb::arg("weight") = nb::none(), nb::arg("ignore_index") = -100,
          nb::arg("reduction") = "mean",
          "`weight` (C,) weighs the classes; labels equal to `ignore_index` count nothing.");
  bind_cell_class<nn::CrossEntropyLoss, LossBase>(
      core, "CrossEntropyLoss",
      "The cross entropy of softmax(logits): called with logits (N, C), (N, C, d...) or (C,) and labels: "
      "class numbers (N,), (N, d...) or (), int32 or int64, or floating class probabilities of the shape of "
      "the logits. It gives a scalar, or with reduction='none' one number for each label. The mean is over "
      "the weights of the labels that are not ignored; of probabilities over N d....")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::CrossEntropyLoss> self, nb::handle weight, std::int64_t ignore_index,
             std::string reduction, double label_smoothing) {
            make_cell(self, nn::CrossEntropyOptions{.reduction = std::move(reduction),
                                                    .ignore_index = ignore_index,
                                                    .label_smoothing = label_smoothing,
                                                    .weight = optional_value(weight)});
          },
          keeps_arguments, nb::arg("weight") = nb::none(), nb::arg("ignore_index") = -100,
          nb::arg("reduction") = "mean", nb::arg("label_smoothing") = 0.0,
          "`weight` (C,) weighs the classes; labels equal to `ignore_index` count nothing; `label_smoothing` "
          "in [0, 1] mixes in the uniform distribution.");
}

// Data-parallel training reduces as the context says when the cell is made.
std::optional<Reduction> context_reduction() {
  const train::Context& context = train::context();
  if (context.parallel_mode != train::ParallelMode::data_parallel) return std::nullopt;
  return context.gradients_mean ? Reduction::mean : Reduction::sum;
}

void init_train_one_step(nb::pointer_and_handle<nn::TrainOneStepCell> self, nn::CellPtr network,
                         nb::handle optimizer, std::optional<double> sens, bool return_grad) {
  make_cell(self, std::move(network), optimizer_from(optimizer, "TrainOneStepCell"),
            nn::TrainOneStepOptions{.sens = sens.value_or(1.0),
                                    .return_grad = return_grad,
                                    .reduction = context_reduction(),
                                    .buckets = train::context().buckets});
}

void bind_wrappers(nb::module_& core) {
  bind_cell_class<nn::WithLossCell>(core, "WithLossCell",
                                    "(data, label) to loss_fn(backbone(data), label). Parameters keep the "
                                    "names that they have in the backbone.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<nn::WithLossCell> self, nn::CellPtr backbone, nn::CellPtr loss_fn,
             bool add_cast_fp32) { make_cell(self, std::move(backbone), std::move(loss_fn), add_cast_fp32); },
          keeps_arguments, nb::arg("backbone"), nb::arg("loss_fn"), nb::arg("add_cast_fp32") = false,
          "With `add_cast_fp32` the loss is computed in float32 whatever the backbone gives.")
      .def_prop_ro(
          "backbone_network", [](const nn::WithLossCell& self) { return self.backbone_network(); },
          "The backbone.");
  bind_cell_class<nn::TrainOneStepCell>(core, "TrainOneStepCell",
                                        "Called with the inputs of `network`, which gives a loss, it gives "
                                        "that loss and lets the optimizer take a "
                                        "step, all in one plan. In data-parallel mode the gradients of all "
                                        "workers are reduced. Parameters keep "
                                        "their names.")
      .def("__init__", &init_train_one_step, keeps_arguments, nb::arg("network"), nb::arg("optimizer"),
           nb::arg("sens") = nb::none(), nb::arg("return_grad") = false,
           nb::sig("def __init__(self, network: Cell, optimizer: Optimizer, sens: float | None = None, "
                   "return_grad: bool = False) -> None"),
           "Gradients are of loss * `sens`. With `return_grad` the result is (loss, gradients), these in a "
           "dict by the names of their parameters.")
      .def_prop_ro(
          "weights",
          [](const nn::TrainOneStepCell& self) {
            return nb::tuple(parameter_objects(self.optimizer()->updated_parameters()));
          },
          nb::sig("def weights(self) -> tuple[Parameter, ...]"), "The parameters that the optimizer updates.")
      .def_prop_ro(
          "sens", [](const nn::TrainOneStepCell& self) { return self.options().sens; },
          "What the loss is multiplied by.");
}

}  // namespace

void bind_losses(nb::module_& core) {
  bind_loss_base(core);
  bind_differences(core);
  bind_binary(core);
  bind_classes(core);
}

nb::object result_for_python(const nn::Cell& cell, const graph::Values& values) {
  const auto* const step = dynamic_cast<const nn::TrainOneStepCell*>(&cell);
  if (step == nullptr || !step->options().return_grad) return values_object(values);
  nb::dict gradients;
  std::size_t i = 1;  // behind the loss
  for (const graph::ParameterPtr& parameter : step->optimizer()->updated_parameters())
    gradients[nb::str(parameter->name().c_str())] = value_object(values[i++]);
  return nb::make_tuple(value_object(values[0]), std::move(gradients));
}

void bind_training_cells(nb::module_& core) { bind_wrappers(core); }

}  // namespace muster::python
