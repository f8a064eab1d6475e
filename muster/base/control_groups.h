// Control groups (Linux) of this process: what bounds its memory and its time on cores, as the limits of a
// container do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/base/files.h"

namespace muster {

struct ControlGroup {
  int version = 2;
  std::string folder;  // of its files, with neither a slash at the end nor a promise that it is there
};

// Where `controller` ("memory", "cpu") bounds this process: the group that it is in and all groups around
// that, whose limits hold, too. Of both versions, since a system may use each for some controllers.
std::vector<ControlGroup> control_groups(std::string_view controller, const Files& files);

// A small file of the system's; empty where it cannot be read.
std::string text_of(const Files& files, const std::string& path);

}  // namespace muster
