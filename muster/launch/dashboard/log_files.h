// Logs of a run's processes, as they lie in its folder: for a page that shows and searches them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/dashboard/job_history.h"

namespace muster::launch {

struct LogFile {
  std::string name = {};  // in the folder: "worker_0.log"
  std::uint64_t size_bytes = 0;
};

struct LogLine {
  std::uint64_t offset = 0;  // in the file
  std::string text = {};     // made printable, at most 4 KiB of it
};

class LogFolder {
 public:
  explicit LogFolder(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  // Regular files alone: a link may lead anywhere.
  std::vector<LogFile> files() const;
  // The last 500 whole lines before that byte of a file that files() names; `limit_bytes` of it are read.
  Result<std::vector<LogLine>> lines_before(const std::string& name, std::uint64_t end) const;
  // The last 500 lines that have `text`, in upper or lower case; of the last 64 MiB.
  Result<std::vector<LogLine>> find(const std::string& name, const std::string& text) const;

  // Muster's own warnings and errors that have come since it was asked before.
  std::vector<JobEvent> warnings(double time);

 private:
  Result<std::string> read(const std::string& name, std::uint64_t begin, std::uint64_t end) const;
  Result<LogFile> known(const std::string& name) const;

  std::string folder_;
  std::map<std::string, std::uint64_t> looked_at_;  // up to where
};

}  // namespace muster::launch
