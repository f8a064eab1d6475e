// Names that Python code loads.
#pragma once

#include <string>
#include <unordered_map>

#include "python/muster/bindings/bindings.h"

namespace muster::python {

// Of a function's code, and of the functions within it.
struct CodeNames {
  nb::set variables;   // of modules
  nb::set attributes;  // those that a literal text names for getattr among them
};
void add_names(CodeNames& names, nb::handle code);

// Whether modules came with Python or were installed: what they keep for themselves is not the script's.
class Libraries {
 public:
  // `module`: the name of one; anything else is none.
  bool has(nb::handle module);

 private:
  std::unordered_map<std::string, bool> known_;
};

}  // namespace muster::python
