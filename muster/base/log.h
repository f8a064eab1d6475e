// Log lines to standard error, one write each, so that lines of several processes do not mix:
// "muster[worker 2] warning: …", in printable characters and line breaks. The level comes from MUSTER_LOG
// (debug, info, warning, error; default warning).
#pragma once

#include <string_view>

namespace muster::log {

enum class Level { debug, info, warning, error };

void write(Level level, std::string_view message);
inline void debug(std::string_view message) { write(Level::debug, message); }
inline void info(std::string_view message) { write(Level::info, message); }
inline void warning(std::string_view message) { write(Level::warning, message); }
inline void error(std::string_view message) { write(Level::error, message); }

// Who speaks: "scheduler", "worker 2". Empty before the process knows.
void set_name(std::string_view name);
void set_level(Level level);

}  // namespace muster::log
