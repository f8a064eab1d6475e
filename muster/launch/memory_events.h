// Kills of the kernel for want of memory, which may be why a process ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::launch {

// How many processes the out-of-memory killer has ended, as a cgroup's file memory.events says ("oom_kill
// 3").
std::optional<std::uint64_t> out_of_memory_kills(std::string_view memory_events);

// The kernel's count for the control group of this process, where there is one.
class MemoryEvents {
 public:
  MemoryEvents();
  // Whether it has ended a process since the last call; nothing where the kernel does not count.
  std::optional<bool> has_killed();

 private:
  std::string file_;
  std::optional<std::uint64_t> kills_;
};

// What to say of a process that signal 9 ended though the job did not send it; empty: that it was not the
// kernel's out-of-memory killer is known. `peak_kib`: the most memory that it had, 0 where that is not known.
std::string memory_hint(std::string_view process, std::optional<bool> has_killed, std::int64_t peak_kib);

}  // namespace muster::launch
