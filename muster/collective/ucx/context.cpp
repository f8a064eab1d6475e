#include "muster/collective/ucx/context.h"

#include <fmt/format.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace muster::ucx {
namespace {

// UCX writes to standard output, which is the script's. Its fatal errors are left to it.
ucs_log_func_rc_t log_line(const char*, unsigned, const char*, ucs_log_level_t level,
                           const ucs_log_component_config_t* component, const char* format,
                           va_list arguments) {
  if (level == UCS_LOG_LEVEL_FATAL || level > UCS_LOG_LEVEL_WARN || level > component->log_level)
    return UCS_LOG_FUNC_RC_CONTINUE;
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  log::warning(fmt::format("UCX: {}", line));
  return UCS_LOG_FUNC_RC_STOP;
}

// Once it is loaded UCX answers crashes by lines of its own; the script's handlers stay, unless the user
// wants UCX's.
void leave_signals_alone() {
  if (std::getenv("UCX_HANDLE_ERRORS") != nullptr) return;
  for (const int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) ucs_debug_disable_signal(number);
}

void prepare() {
  static const bool once = [] {
    leave_signals_alone();
    ucs_log_push_handler(&log_line);
    return true;
  }();
  static_cast<void>(once);
}

Result<ucp_context_h> make_context() {
  prepare();
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return fail(error_of("cannot read its variables (UCX_*)", status, nullptr));
  // Deaths are noticed by the connection beside it, within milliseconds.
  auto status = ucp_config_modify(config, "KEEPALIVE_INTERVAL", "inf");
  ucp_context_h made = nullptr;
  if (status == UCS_OK) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.name = "muster";
    status = ucp_init(&params, config, &made);
  }
  ucp_config_release(config);
  if (status != UCS_OK)
    return fail(error_of("cannot begin (UCX_TLS and UCX_NET_DEVICES may forbid all)", status, nullptr));
  return made;
}

}  // namespace

Result<std::shared_ptr<Context>> Context::shared() {
  static std::mutex mutex;
  static std::weak_ptr<Context> known;
  const std::lock_guard lock(mutex);
  if (auto context = known.lock()) return context;
  MUSTER_TRY(ucp_context_h made, make_context());
  std::shared_ptr<Context> context(new Context(made));
  known = context;
  return context;
}

Context::Context(ucp_context_h context) : context_(context) {
  static constexpr std::array others{"self/", "tcp/", "posix/", "sysv/", "xpmem/", "cma/", "knem/"};
  const std::vector<std::string> found = devices();
  has_shared_memory_ = std::ranges::any_of(found, [](std::string_view device) {
    return device.starts_with("posix/") || device.starts_with("sysv/");
  });
  has_rdma_ = !std::ranges::all_of(found, [](std::string_view device) {
    return std::ranges::any_of(others, [&](const char* other) { return device.starts_with(other); });
  });
}

Context::~Context() { ucp_cleanup(context_); }

// UCX tells it only in print: a line "# resource 1 : md 1 dev 1 flags -- tcp/lo" for each.
std::vector<std::string> Context::devices() const {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const stream = ::open_memstream(&text, &size);
  if (stream == nullptr) return {};
  ucp_context_print_info(context_, stream);
  std::fclose(stream);
  const std::string printed(text, size);
  std::free(text);
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin < printed.size();) {
    const std::size_t end = std::min(printed.find('\n', begin), printed.size());
    std::string line = printed.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t name = line.rfind(' ');
    if (line.find(" resource ") == std::string::npos || name == std::string::npos) continue;
    if (line.find('/', name) != std::string::npos) found.push_back(line.substr(name + 1));
  }
  return found;
}

Error error_of(std::string_view what, ucs_status_t status, const Context* context) {
  std::string found;
  if (context != nullptr) found = fmt::format("; it found {}", fmt::join(context->devices(), ", "));
  return {Code::io, fmt::format("{} {}: {}{}", version_name(), what, ucs_status_string(status), found)};
}

std::string version_name() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return fmt::format("UCX {}.{}.{}", major, minor, release);
}

}  // namespace muster::ucx
