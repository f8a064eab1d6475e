#include "python/muster/bindings/traced_function.h"

#include <fmt/format.h>

#include <utility>

#include "muster/train/train.h"
#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

using graph::Value;
using graph::Values;

// Puts a new value in place for a scope.
template <class T>
class Replaced {
 public:
  Replaced(T& place, T value) : place_(place), old_(std::exchange(place, std::move(value))) {}
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;
  ~Replaced() { place_ = std::move(old_); }

 private:
  T& place_;
  T old_;
};

// Between two signatures: the context's version, then the arguments.
std::string difference(std::string_view signature, std::string_view before) {
  const auto arguments = [](std::string_view text) { return text.substr(text.find('\n') + 1); };
  if (arguments(signature) == arguments(before)) return "the context was changed";
  return Arguments::difference(arguments(signature), arguments(before));
}

}  // namespace

std::shared_ptr<graph::Function> function_around(std::string name, graph::Body body) {
  auto made = std::make_shared<graph::Function>(std::move(name), std::move(body));
  if (process().replicates_outputs) made->replicate_outputs();
  return made;
}

TracedFunction::TracedFunction(std::string name, Code code, const Maker& maker)
    : name_(std::move(name)),
      code_(std::move(code)),
      function_(maker([this](std::span<const Value> inputs) { return body(inputs); })) {
  function_->tell_extras_by(&difference);
}

Values TracedFunction::body(std::span<const Value> inputs) {
  const nb::gil_scoped_acquire lock;
  if (makes_plan_ && !graph::falls_back() && !current_->refusal().empty()) {
    graph::note_untraceable();
    throw nb::type_error(current_->refusal().c_str());
  }
  const CopiedArguments given = current_->with(inputs);
  Values values;
  try {
    const nb::object result = code_(given.positional, given.keywords);
    traced_form_ = std::make_shared<CallForm>(CallForm::of(result, given, values, name_));
  } catch (...) {
    given.restore();
    throw;
  }
  given.restore();  // call() changes what the code changed
  const auto& identities = current_->identities();
  identities_.insert(identities_.end(), identities.begin(), identities.end());
  return values;
}

const std::string& TracedFunction::signature_of(const Arguments& arguments) {
  const std::uint64_t version = train::context().version;
  const bool is_plain = arguments.signature().empty();
  if (!is_plain || !signature_is_plain_ || version != signature_context_)
    signature_ = fmt::format("{}\n{}", version, arguments.signature());
  signature_is_plain_ = is_plain;
  signature_context_ = version;
  return signature_;
}

Values TracedFunction::run(const Arguments& arguments) {
  const std::string& signature = signature_of(arguments);
  if (graph::is_tracing()) return (*function_)(arguments.tensors(), signature);
  const graph::RunContext context = train::run_context().value();
  const nb::gil_scoped_release unlocked;
  const train::ActivityScope computing(cluster::WorkPhase::computing);
  Values values = (*function_)(arguments.tensors(), signature, context);
  train::note_finished();
  return values;
}

TracedFunction::Answer TracedFunction::call(const Arguments& arguments) {
  const Replaced current(current_, &arguments);
  const Replaced makes_plan(makes_plan_, !function_->runs_inline());
  const Replaced form(traced_form_, std::shared_ptr<const CallForm>());
  Values values = run(arguments);
  std::shared_ptr<const CallForm> form_of_call = traced_form_;
  if (!function_->runs_inline()) {
    auto& known = forms_[function_->plan()];
    if (form_of_call) known = form_of_call;
    form_of_call = known;
  }
  std::span<const Value> rest = values;
  nb::object result = form_of_call->build(rest, arguments.holders());
  return {std::move(result), {rest.begin(), rest.end()}};
}

}  // namespace muster::python
