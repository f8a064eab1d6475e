#include "muster/nn/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/nn/arguments.h"

namespace muster::nn {
namespace {

graph::Attributes decay(const char* rule, const DecayOptions& options) {
  return {{"rule", std::string(rule)},
          {"rate", options.learning_rate},
          {"decay_rate", options.decay_rate},
          {"steps", options.decay_steps},
          {"stairs", options.is_stair}};
}

Result<> check(std::string_view owner, const DecayOptions& options) {
  MUSTER_TRY_VOID(require_positive(owner, "learning_rate", options.learning_rate));
  MUSTER_TRY_VOID(require_positive(owner, "decay_rate", options.decay_rate));
  return require_count(owner, "decay_steps", options.decay_steps);
}

Result<> check_range(std::string_view owner, double min_lr, double max_lr) {
  MUSTER_TRY_VOID(require_not_negative(owner, "min_lr", min_lr));
  MUSTER_TRY_VOID(require_positive(owner, "max_lr", max_lr));
  if (min_lr < max_lr) return {};
  return refuse_argument(owner, "max_lr", fmt::format("above min_lr = {}", min_lr), max_lr);
}

}  // namespace

Values FormulaSchedule::construct(std::span<const Value> inputs) {
  if (inputs.size() == 1) return graph::apply("decayed_rate", inputs, attributes_);
  throw Exception(Code::invalid_argument,
                  fmt::format("{} takes the step, {} tensors were given", description(), inputs.size()));
}

ExponentialDecayLR::ExponentialDecayLR(DecayOptions options)
    : FormulaSchedule("ExponentialDecayLR", decay("exponential", options)) {
  check(class_name(), options).value();
}

NaturalExpDecayLR::NaturalExpDecayLR(DecayOptions options)
    : FormulaSchedule("NaturalExpDecayLR", decay("natural_exponential", options)) {
  check(class_name(), options).value();
}

InverseDecayLR::InverseDecayLR(DecayOptions options)
    : FormulaSchedule("InverseDecayLR", decay("inverse", options)) {
  check(class_name(), options).value();
}

CosineDecayLR::CosineDecayLR(CosineDecayOptions options)
    : FormulaSchedule("CosineDecayLR", {{"rule", std::string("cosine")},
                                        {"rate", options.max_lr},
                                        {"end", options.min_lr},
                                        {"steps", options.decay_steps}}) {
  check_range(class_name(), options.min_lr, options.max_lr).value();
  require_count(class_name(), "decay_steps", options.decay_steps).value();
}

PolynomialDecayLR::PolynomialDecayLR(PolynomialDecayOptions options)
    : FormulaSchedule("PolynomialDecayLR", {{"rule", std::string("polynomial")},
                                            {"rate", options.learning_rate},
                                            {"end", options.end_learning_rate},
                                            {"steps", options.decay_steps},
                                            {"power", options.power},
                                            {"stairs", options.update_decay_steps}}) {
  require_positive(class_name(), "learning_rate", options.learning_rate).value();
  require_not_negative(class_name(), "end_learning_rate", options.end_learning_rate).value();
  require_count(class_name(), "decay_steps", options.decay_steps).value();
  require_positive(class_name(), "power", options.power).value();
}

WarmUpLR::WarmUpLR(WarmUpOptions options)
    : FormulaSchedule("WarmUpLR", {{"rule", std::string("warm_up")},
                                   {"rate", options.learning_rate},
                                   {"steps", options.warmup_steps}}) {
  require_not_negative(class_name(), "learning_rate", options.learning_rate).value();
  require_count(class_name(), "warmup_steps", options.warmup_steps).value();
}

namespace {

struct Steps {
  std::int64_t total = 1;
  std::int64_t per_epoch = 1;
  std::int64_t epochs = 1;  // to decay or warm up over
};

constexpr std::int64_t rates_max = 100'000'000;  // a typing error should not fill the memory

Result<> check(std::string_view owner, const Steps& steps, std::string_view epochs_name) {
  MUSTER_TRY_VOID(require_count(owner, "total_step", steps.total));
  if (steps.total > rates_max)
    return refuse_argument(owner, "total_step", fmt::format("at most {}", rates_max), steps.total);
  MUSTER_TRY_VOID(require_count(owner, "step_per_epoch", steps.per_epoch));
  return require_count(owner, epochs_name, steps.epochs);
}

// rate(epoch) for each step.
template <class Rate>
Rates by_epoch(const Steps& steps, const Rate& rate) {
  Rates rates;
  rates.reserve(static_cast<std::size_t>(steps.total));
  for (std::int64_t step = 0; step < steps.total; ++step)
    rates.push_back(step % steps.per_epoch == 0 || rates.empty()
                        ? rate(static_cast<double>(step / steps.per_epoch))
                        : rates.back());
  return rates;
}

Result<Steps> checked(std::string_view owner, const EpochDecayOptions& options) {
  const Steps steps{options.total_step, options.step_per_epoch, options.decay_epoch};
  MUSTER_TRY_VOID(check(owner, steps, "decay_epoch"));
  MUSTER_TRY_VOID(require_positive(owner, "learning_rate", options.learning_rate));
  MUSTER_TRY_VOID(require_positive(owner, "decay_rate", options.decay_rate));
  return steps;
}

// Epochs in units of decay_epoch.
double part_of(const EpochDecayOptions& options, double epoch) {
  const double part = epoch / static_cast<double>(options.decay_epoch);
  return options.is_stair ? std::floor(part) : part;
}

}  // namespace

Result<Rates> exponential_decay_lr(const EpochDecayOptions& options) {
  MUSTER_TRY(const Steps steps, checked("exponential_decay_lr", options));
  return by_epoch(steps, [&](double epoch) {
    return options.learning_rate * std::pow(options.decay_rate, part_of(options, epoch));
  });
}

Result<Rates> natural_exp_decay_lr(const EpochDecayOptions& options) {
  MUSTER_TRY(const Steps steps, checked("natural_exp_decay_lr", options));
  return by_epoch(steps, [&](double epoch) {
    const double passed =
        options.is_stair ? part_of(options, epoch) * static_cast<double>(options.decay_epoch) : epoch;
    return options.learning_rate * std::exp(-options.decay_rate * passed);
  });
}

Result<Rates> inverse_decay_lr(const EpochDecayOptions& options) {
  MUSTER_TRY(const Steps steps, checked("inverse_decay_lr", options));
  return by_epoch(steps, [&](double epoch) {
    return options.learning_rate / (1 + options.decay_rate * part_of(options, epoch));
  });
}

Result<Rates> cosine_decay_lr(const EpochCosineOptions& options) {
  const Steps steps{options.total_step, options.step_per_epoch, options.decay_epoch};
  MUSTER_TRY_VOID(check("cosine_decay_lr", steps, "decay_epoch"));
  MUSTER_TRY_VOID(check_range("cosine_decay_lr", options.min_lr, options.max_lr));
  const auto last = static_cast<double>(options.decay_epoch);
  return by_epoch(steps, [&](double epoch) {
    const double half = 0.5 * (options.max_lr - options.min_lr);
    return options.min_lr + half * (1 + std::cos(M_PI * std::min(epoch, last) / last));
  });
}

Result<Rates> polynomial_decay_lr(const EpochPolynomialOptions& options) {
  constexpr std::string_view owner = "polynomial_decay_lr";
  const Steps steps{options.total_step, options.step_per_epoch, options.decay_epoch};
  MUSTER_TRY_VOID(check(owner, steps, "decay_epoch"));
  MUSTER_TRY_VOID(require_positive(owner, "learning_rate", options.learning_rate));
  MUSTER_TRY_VOID(require_not_negative(owner, "end_learning_rate", options.end_learning_rate));
  MUSTER_TRY_VOID(require_positive(owner, "power", options.power));
  const auto first = static_cast<double>(options.decay_epoch);
  return by_epoch(steps, [&](double epoch) {
    const double last = options.update_decay_epoch ? first * std::max(std::ceil(epoch / first), 1.0) : first;
    const double left = 1 - std::min(epoch, last) / last;
    return (options.learning_rate - options.end_learning_rate) * std::pow(left, options.power) +
           options.end_learning_rate;
  });
}

Result<Rates> warmup_lr(const EpochWarmUpOptions& options) {
  const Steps steps{options.total_step, options.step_per_epoch, options.warmup_epoch};
  MUSTER_TRY_VOID(check("warmup_lr", steps, "warmup_epoch"));
  MUSTER_TRY_VOID(require_not_negative("warmup_lr", "learning_rate", options.learning_rate));
  const auto last = static_cast<double>(options.warmup_epoch);
  return by_epoch(steps, [&](double epoch) { return options.learning_rate * std::min(epoch, last) / last; });
}

Result<Rates> piecewise_constant_lr(std::span<const std::int64_t> milestones,
                                    std::span<const double> learning_rates) {
  constexpr std::string_view owner = "piecewise_constant_lr";
  if (milestones.size() != learning_rates.size())
    return fail(Code::invalid_argument,
                fmt::format("{}: one learning rate for each milestone is needed, not {} for {}", owner,
                            learning_rates.size(), milestones.size()));
  Rates rates;
  for (std::size_t i = 0; i < milestones.size(); ++i) {
    const auto end = static_cast<std::int64_t>(rates.size());
    MUSTER_TRY_VOID(require_count(owner, fmt::format("milestone[{}]", i), milestones[i]));
    if (milestones[i] < end || milestones[i] > rates_max)
      return fail(Code::invalid_argument, fmt::format("{}: milestone[{}] must lie in [{}, {}], not be {}",
                                                      owner, i, end, rates_max, milestones[i]));
    rates.resize(static_cast<std::size_t>(milestones[i]), learning_rates[i]);
  }
  return rates;
}

}  // namespace muster::nn
