#include "muster/train/front_end.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace muster::train {
namespace {

// Never destroyed: the language above may be asked until the very end of the process.
std::function<void(std::string_view)>& print_hook() {
  static auto* hook = new std::function<void(std::string_view)>;
  return *hook;
}

std::function<Result<>()>& interruption_hook() {
  static auto* hook = new std::function<Result<>()>;
  return *hook;
}

}  // namespace

void print_line(std::string_view line) {
  if (print_hook()) return print_hook()(line);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void set_print_hook(std::function<void(std::string_view)> hook) { print_hook() = std::move(hook); }

Result<> look_for_interruption() {
  if (interruption_hook()) return interruption_hook()();
  return {};
}

void set_interruption_hook(std::function<Result<>()> hook) { interruption_hook() = std::move(hook); }

}  // namespace muster::train
