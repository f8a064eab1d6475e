#include "muster/train/ps_context.h"

#include <fmt/format.h>

#include "muster/train/process.h"

namespace muster::train {
namespace {

Result<> change_to(PsContext chosen, std::string_view call) {
  if (chosen == ps_context()) return {};
  if (process().session != nullptr)
    return fail(Code::invalid_argument,
                fmt::format("{}: this process has joined its job already; call it before init()", call));
  process().choices.ps_context = std::move(chosen);
  return {};
}

}  // namespace

Result<> set_ps_context(const PsChoice& choice) {
  PsContext chosen = ps_context();
  if (choice.enable_ssl) chosen.enable_ssl = *choice.enable_ssl;
  if (choice.config_file_path) chosen.config_file_path = *choice.config_file_path;
  if (choice.client_password) chosen.client_password = *choice.client_password;
  if (choice.server_password) chosen.server_password = *choice.server_password;
  return change_to(std::move(chosen), "set_ps_context");
}

Result<> reset_ps_context() {
  MUSTER_TRY_VOID(set_parameter_servers({}));
  return change_to({}, "reset_ps_context");
}

const PsContext& ps_context() { return process().choices.ps_context; }

cluster::SecuritySettings chosen_security(const cluster::SecuritySettings& of_environment,
                                          const PsContext& of_script) {
  cluster::SecuritySettings chosen = of_environment;
  if (!of_script.enable_ssl) {
    if (!of_script.config_file_path.empty() && !chosen.enable_ssl)
      log::warning(
          fmt::format("set_ps_context(config_file_path='{}') has no effect without enable_ssl=True: "
                      "connections are not encrypted",
                      of_script.config_file_path));
    return chosen;
  }
  chosen.enable_ssl = true;
  if (!of_script.config_file_path.empty()) {
    if (!chosen.config_path.empty() && chosen.config_path != of_script.config_file_path)
      log::warning(fmt::format("set_ps_context(config_file_path='{}') goes before MUSTER_TLS_CONFIG='{}'",
                               of_script.config_file_path, chosen.config_path));
    chosen.config_path = of_script.config_file_path;
    chosen.is_config_of_script = true;
  }
  chosen.client_password = of_script.client_password;
  chosen.server_password = of_script.server_password;
  return chosen;
}

}  // namespace muster::train
