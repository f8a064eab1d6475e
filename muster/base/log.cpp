#include "muster/base/log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "muster/base/printable.h"
#include "muster/base/process.h"

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

}  // namespace

void write(Level level, std::string_view message) {
  const std::string text = printable(message, LineBreaks::kept);
  process().logger.log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
}

void set_name(std::string_view name) {
  process().logger.set_pattern(name.empty() ? "muster %l: %v" : fmt::format("muster[{}] %l: %v", name));
}

void set_level(Level level) { process().logger.set_level(spdlog_level(level)); }

}  // namespace muster::log
