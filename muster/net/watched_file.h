// A file that may be replaced while a job runs. Private to net. Threads: one at a time.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "muster/base/base.h"

namespace muster::net {

class WatchedFile {
 public:
  // Takes the file as it is now for known.
  explicit WatchedFile(std::string path);

  // Whether it is another one than at the last look, or is not there; looks at most once a second.
  bool has_changed();
  // The next look finds it changed whatever it is: it could not be used, and may have been half written.
  void look_again() { seen_.reset(); }

 private:
  struct State {  // a file that was replaced or written has another
    ino_t inode = 0;
    off_t size_bytes = 0;
    timespec changed{};
    bool operator==(const State& other) const {
      return inode == other.inode && size_bytes == other.size_bytes &&
             changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
    }
  };
  std::optional<State> look() const;

  std::string path_;
  std::optional<State> seen_;
  TimePoint next_look_{};
};

}  // namespace muster::net
