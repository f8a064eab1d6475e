// Warnings that several processes write alike: the first one is shown, the logs have all.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace muster::launch {

class RepeatedWarnings {
 public:
  static constexpr std::size_t texts_max = 1000;  // of more, each process's are shown

  // Whether a line is a warning, of Python ("train.py:3: UserWarning: ...", with the line of source below it)
  // or of Muster ("muster[worker 2] warning: ..."), that another process has written before. A process that
  // says it again is heard again.
  bool has(std::size_t process, std::string_view line);

 private:
  std::map<std::string, std::size_t, std::less<>> speakers_;  // of each text the process that is shown
  std::set<std::size_t> within_;         // processes whose next line may be source of a warning
  std::set<std::size_t> within_hidden_;  // of those, whose warning is not shown
};

}  // namespace muster::launch
