#include "muster/train/parameter_servers.h"

#include <fmt/format.h>

#include "muster/graph/served.h"
#include "muster/train/explain.h"
#include "muster/train/process.h"
#include "muster/train/session.h"

namespace muster::train {

Result<> set_parameter_servers(const ParameterServers& chosen) {
  if (chosen == parameter_servers()) return {};
  if (process().session != nullptr)
    return fail(Code::invalid_argument,
                "set_ps_context: this process has joined its job already; call it before init()");
  process().choices.parameter_servers = chosen;
  return {};
}

const ParameterServers& parameter_servers() { return process().choices.parameter_servers; }

Result<> put_on_servers(const graph::ParameterPtr& parameter) {
  if (process().trains_alone || explain_mode() != ExplainMode::off) return {};
  Session* const session = Session::current();
  if (session == nullptr) {
    if (!real_environment().get("MS_ROLE")) return {};
    return fail(
        Code::invalid_argument,
        fmt::format("set_param_ps of '{}': this process has not joined its job; call init() before it",
                    parameter->name()));
  }
  if (session->membership().roster().servers.empty())
    return fail(Code::invalid_argument,
                fmt::format("set_param_ps of '{}': this job has no parameter servers (MS_SERVER_NUM is 0): "
                            "start some with MS_ROLE=MS_PSERVER, as muster run --servers 2 does",
                            parameter->name()));
  if (parameter->dtype() != DType::float32)
    return fail(Code::not_provided, fmt::format("parameter '{}' is {}: parameter servers hold float32 ones",
                                                parameter->name(), to_string(parameter->dtype())));
  graph::serve(parameter);
  return {};
}

}  // namespace muster::train
