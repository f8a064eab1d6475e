#include "muster/launch/protection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "muster/launch/secret_file.h"
#include "muster/launch/settings/wrong.h"
#include "muster/launch/status.h"

namespace muster::launch {
namespace {

bool needs_secret(const Preset& preset, const JobSettings& job, const Environment& environment) {
  return preset.needs_secret != nullptr && preset.needs_secret(job, environment);
}

// Other launchers start the rest of the job.
bool has_other_launchers(const JobSettings& job) {
  return job.reach.value == Reach::each || !job.roles.value.empty();
}

// Certificates or a token for the processes; the environment of --env is theirs alone, and no launcher's.
bool is_secret_chosen(const Preset& preset, const JobSettings& job, const Environment& environment) {
  if (!job.tls_config.value.empty() || !job.token_file.value.empty()) return true;
  if (preset.needs_rendezvous(job, environment)) return false;
  constexpr auto variables = std::to_array<const char*>({"MUSTER_TLS_CONFIG", "MUSTER_TOKEN_FILE"});
  return std::ranges::any_of(variables, [&](const char* variable) {
    const auto found = job.environment.find(variable);
    return found != job.environment.end() && !found->second.value.empty();
  });
}

}  // namespace

Result<> check_protection(const Preset& preset, const JobSettings& job, const Environment& environment) {
  if (job.is_open.value)
    for (const auto* secret : {&job.tls_config, &job.token_file})
      if (!secret->value.empty())
        return wrong(fmt::format("{} lets unauthorized peers in, and {} keeps them out: leave one out",
                                 job.is_open.origin, secret->origin));
  if (job.is_open.value || !needs_secret(preset, job, environment) || !has_other_launchers(job) ||
      is_secret_chosen(preset, job, environment))
    return {};
  return wrong(fmt::format(
      "several launchers start this job, and share no secret that would keep unauthorized peers out of it. "
      "Say the same of these to each of them:\n"
      "  --token-file FILE   a secret of one line, the same everywhere: openssl rand -hex 32 >FILE && chmod "
      "600 FILE\n"
      "  --tls-config FILE   certificates: muster certs new --hosts ...\n"
      "  --open              none: {}",
      preset.openness));
}

Result<std::shared_ptr<const net::Security>> find_security(const JobSettings& job,
                                                           const Environment& environment) {
  std::map<std::string, std::string, std::less<>> variables;
  const auto add = [&](const char* name, const std::string& said) {
    const std::string value = said.empty() ? environment.get(name).value_or("") : said;
    if (!value.empty()) variables.emplace(name, value);
  };
  add("MUSTER_TLS_CONFIG", job.tls_config.value);
  add("MUSTER_TLS_CLIENT_PASSWORD_FILE", job.client_password_file.value);
  add("MUSTER_TLS_SERVER_PASSWORD_FILE", job.server_password_file.value);
  add("MUSTER_TOKEN_FILE", job.token_file.value);
  add("MUSTER_STRICT", "");
  return find_security(FixedEnvironment(std::move(variables)));
}

Result<std::string> token_to_hand_out(const Preset& preset, const JobSettings& job,
                                      const Environment& environment) {
  if (job.is_open.value || !needs_secret(preset, job, environment)) return std::string();
  // Over ssh the token travels; the file lies here alone.
  if (job.reach.value == Reach::ssh && !job.token_file.value.empty())
    return net::read_secret(job.token_file.value, "a token").map([](net::SmallFile file) {
      return std::move(file.text);
    });
  if (has_other_launchers(job) || is_secret_chosen(preset, job, environment)) return std::string();
  return new_token();
}

}  // namespace muster::launch
