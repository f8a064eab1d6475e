// Rows of text as a table.
#pragma once

#include <string>
#include <vector>

namespace muster::launch {

// Columns as wide as their widest cell; every row has as many cells as the first, and there is one at least.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace muster::launch
