// A folder on a real disk, for tests.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "muster/base/base.h"

namespace muster::checkpoint::testing {

class Folder {
 public:
  Folder() {
    // A kill is no loss of power: where syncing costs nothing it tells as much.
    const bool has_shm = ::access("/dev/shm", W_OK) == 0;
    std::string pattern =
        (has_shm ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/muster-XXXXXX";
    MUSTER_CHECK(::mkdtemp(pattern.data()) != nullptr, "no temporary folder");
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace muster::checkpoint::testing
