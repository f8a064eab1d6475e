#include "muster/train/callback.h"

#include <fmt/format.h>

#include "muster/train/metric_rows.h"

namespace muster::train {

Result<> call_each(std::span<const CallbackPtr> callbacks, CallbackMethod method, CallbackContext& context) {
  for (const CallbackPtr& callback : callbacks)
    MUSTER_TRY_VOID(catch_error([&] { return ((*callback).*method)(context); }));
  return {};
}

Result<double> loss_of(const CallbackContext& context) {
  if (context.net_outputs.empty()) return fail(Code::invalid_argument, "there is no loss before a step");
  const Tensor& loss = context.net_outputs.front();
  if (loss.dtype() == DType::float32 && loss.elements() == 1) return *loss.data<float>();  // nearly always
  MUSTER_TRY(const Tensor numbers, as_float64(loss));
  if (numbers.elements() == 0) return fail(Code::invalid_argument, "the loss has no elements");
  double sum = 0;
  for (const double number : numbers.span<double>()) sum += number;
  return sum / static_cast<double>(numbers.elements());
}

Result<double> monitored(const CallbackContext& context, const std::string& monitor) {
  if (monitor == "loss") return loss_of(context);
  std::string names = "loss";
  for (const auto& [name, value] : context.eval_results) {
    names += ", " + name;
    if (name != monitor) continue;
    if (const auto number = number_of(value)) return *number;
    return fail(Code::invalid_argument, fmt::format("'{}' is no number and cannot be monitored", monitor));
  }
  return fail(Code::invalid_argument,
              fmt::format("there is no '{}' to monitor; there are: {} (metrics are those of fit's last "
                          "evaluation)",
                          monitor, names));
}

}  // namespace muster::train
