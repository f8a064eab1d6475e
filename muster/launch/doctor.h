// Checks of this host for what a job needs, before a job starts.
#pragma once

#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/tensor/tensor.h"

namespace muster::launch {

struct Finding {
  std::string subject = {};
  std::string value = {};
  std::string problem = {};  // empty: all is well; otherwise what is wrong
  std::string fix = {};      // what to do about it, where the problem does not say
  bool is_warning = false;   // a job works in spite of the problem
};

std::vector<Finding> examine_host(const Environment& environment,
                                  const Processor& processor = this_processor());

}  // namespace muster::launch
