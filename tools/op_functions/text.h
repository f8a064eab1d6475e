// C++ text, made from rows.
#pragma once

#include <string>
#include <string_view>

#include "muster/graph/graph.h"

namespace muster::tools {

// "std::int64_t"
std::string type_of(const graph::Attribute& attribute);
// "1", "\"mean\""
std::string literal(const graph::Attribute& attribute);
// " = 1", "" for an argument that has to be given.
std::string default_of(const graph::Argument& argument);
// `documentation` in lines that begin with "//".
std::string comment(std::string_view documentation);

// What the files hold.
std::string op_functions_header();
std::string op_functions_source();
std::string optimizer_classes_header();
std::string optimizer_classes_source();

}  // namespace muster::tools
