// Writes what C++ has of the rows: op_functions.h and .cpp, the functions of all ops that have a schema, and
// optimizer_classes.h and .cpp, the classes of all updates that describe an optimizer. Both are parts of
// `nn`, and go into the folder that is named. The build runs it, so that a row is the only place where an op
// or an optimizer is described.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "tools/op_functions/text.h"

namespace {

// A file that says the same already keeps its time, and what includes it is not compiled again.
void write(const std::filesystem::path& path, const std::string& text) {
  std::ifstream old(path);
  const std::string before((std::istreambuf_iterator<char>(old)), std::istreambuf_iterator<char>());
  if (old && before == text) return;
  std::ofstream file(path);
  if (!(file << text << std::flush)) {
    std::cerr << "op_functions: cannot write " << path << "\n";
    std::exit(1);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: op_functions FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder(arguments[1]);
  write(folder / "op_functions.h", muster::tools::op_functions_header());
  write(folder / "op_functions.cpp", muster::tools::op_functions_source());
  write(folder / "optimizer_classes.h", muster::tools::optimizer_classes_header());
  write(folder / "optimizer_classes.cpp", muster::tools::optimizer_classes_source());
}
