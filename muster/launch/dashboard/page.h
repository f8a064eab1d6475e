// Files of the page, which are a part of the library: made by CMake from the folder page.
#pragma once

#include <optional>
#include <string_view>

namespace muster::launch {

struct PageFile {
  std::string_view path;  // "/dashboard.js"
  std::string_view type;
  std::string_view text;
};

// "/" is the page itself. Nothing: there is no such file.
std::optional<PageFile> find_page_file(std::string_view path);

}  // namespace muster::launch
