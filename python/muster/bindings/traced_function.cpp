#include "python/muster/bindings/traced_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "muster/train/train.h"
#include "python/muster/bindings/compute_lock.h"
#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

using graph::Value;
using graph::Values;

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

// A call is the innermost of its thread, for a scope.
class TracedFunction::CallScope {
 public:
  CallScope(TracedFunction& function, Call& call) : function_(function), call_(call) {
    function.calls_.emplace_back(std::this_thread::get_id(), &call);
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  ~CallScope() {
    std::erase_if(function_.calls_, [&](const auto& each) { return each.second == &call_; });
  }

 private:
  TracedFunction& function_;
  Call& call_;
};

TracedFunction::Call* TracedFunction::call_of_this_thread() const {
  const auto id = std::this_thread::get_id();
  const auto found =
      std::find_if(calls_.rbegin(), calls_.rend(), [&](const auto& each) { return each.first == id; });
  return found == calls_.rend() ? nullptr : found->second;
}

TracedFunction::TracedFunction(std::string name, Code code, const Maker& maker)
    : name_(std::move(name)),
      code_(std::move(code)),
      function_(maker([this](std::span<const Value> inputs) { return body(inputs); })) {
  function_->tell_extras_by(&difference);
}

Values TracedFunction::body(std::span<const Value> inputs) {
  const nb::gil_scoped_acquire lock;
  Call& call = *call_of_this_thread();
  if (!call.is_inline && !graph::falls_back() && !call.arguments.refusal().empty()) {
    graph::note_untraceable();
    throw nb::type_error(call.arguments.refusal().c_str());
  }
  const CopiedArguments given = call.arguments.with(inputs);
  Values values;
  try {
    const nb::object result = code_(given.positional, given.keywords);
    call.form = std::make_shared<CallForm>(CallForm::of(result, given, values, name_));
  } catch (...) {
    given.restore();
    throw;
  }
  given.restore();  // call() changes what the code changed
  const auto& identities = call.arguments.identities();
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

std::size_t TracedFunction::result_count() const {
  const Call* const call = call_of_this_thread();
  return call == nullptr || call->form == nullptr ? 0 : call->form->result_count();
}

Values TracedFunction::run(const Call& call, std::string_view signature) {
  if (graph::is_tracing()) return (*function_)(call.arguments.tensors(), signature);
  const graph::RunContext context = train::run_context().value();
  const nb::gil_scoped_release unlocked;
  const train::ActivityScope computing(cluster::WorkPhase::computing);
  Values values = (*function_)(call.arguments.tensors(), signature, context);
  train::note_finished();
  return values;
}

Values TracedFunction::run_plan(Call& call) {
  const ComputeLock lock;
  Values values = run(call, signature_of(call.arguments));
  if (function_->runs_inline()) return values;  // it cannot be traced
  auto& known = forms_[function_->plan()];
  if (call.form) known = call.form;
  call.form = known;
  return values;
}

TracedFunction::Answer TracedFunction::call(const Arguments& arguments) {
  Call call{.arguments = arguments, .is_inline = function_->runs_inline()};
  const CallScope scope(*this, call);
  const Values values = call.is_inline ? run(call, "") : run_plan(call);
  std::span<const Value> rest = values;
  nb::object result = call.form->build(rest, arguments.holders());
  return {std::move(result), {rest.begin(), rest.end()}};
}

}  // namespace muster::python
