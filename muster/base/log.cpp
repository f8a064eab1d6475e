#include "muster/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "muster/base/environment.h"
#include "muster/base/printable.h"

namespace muster::log {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::warn;
}

// Never destroyed: threads may log while the process ends.
spdlog::logger& logger() {
  static spdlog::logger& instance = [&]() -> spdlog::logger& {
    auto* made = new spdlog::logger("", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::from_str(real_environment().get("MUSTER_LOG").value_or("warning")));
    made->set_pattern("muster %l: %v");
    return *made;
  }();
  return instance;
}

}  // namespace

void write(Level level, std::string_view message) {
  const std::string text = printable(message, LineBreaks::kept);
  logger().log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
}

void set_name(std::string_view name) {
  logger().set_pattern(name.empty() ? "muster %l: %v" : fmt::format("muster[{}] %l: %v", name));
}

void set_level(Level level) { logger().set_level(spdlog_level(level)); }

}  // namespace muster::log
