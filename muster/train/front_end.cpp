#include "muster/train/front_end.h"

#include <fmt/format.h>

#include <cstdio>

#include "muster/train/process.h"

namespace muster::train {

FrontEnd& front_end() { return process().front_end; }

void print_line(std::string_view line) {
  if (front_end().print) return front_end().print(line);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

Result<> look_for_interruption() {
  return front_end().interruption ? front_end().interruption() : Result<>{};
}

void flush_front_end() {
  if (front_end().flush) front_end().flush();
}

}  // namespace muster::train
