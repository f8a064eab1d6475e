#include "muster/base/process.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

#include "muster/base/environment.h"

namespace muster {

Process::Process() : logger("", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
  logger.set_level(spdlog::level::from_str(real_environment().get("MUSTER_LOG").value_or("warning")));
  logger.set_pattern("muster %l: %v");
}

Process& process() {
  static Process& instance = *new Process;
  return instance;
}

}  // namespace muster
