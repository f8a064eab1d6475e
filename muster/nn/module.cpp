#include "muster/nn/module.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

namespace muster::nn {

std::string class_name_of(const std::type_info& type) {
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &failed), std::free);
  std::string name = failed == 0 ? readable.get() : type.name();
  if (const std::size_t space = name.rfind("::"); space != std::string::npos) name.erase(0, space + 2);
  return name;
}

void refuse_inputs(const Cell& module, std::size_t wanted, std::size_t given) {
  throw Exception(Code::invalid_argument, fmt::format("forward() of {} takes {} inputs, {} were given",
                                                      module.description(), wanted, given));
}

}  // namespace muster::nn
