// The program of the process that imports modules for others; private to the launcher.
#pragma once

#include <string_view>

namespace muster::launch {

// preloader.py, for Python's -c: nothing has to be found at run time.
extern const std::string_view preloader_source;

}  // namespace muster::launch
