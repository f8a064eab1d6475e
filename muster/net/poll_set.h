// Descriptors that are waited for as one, by several threads if need be: whoever waits is woken by those that
// are added later, too.
#pragma once

#include "muster/base/base.h"
#include "muster/net/process_descriptor.h"

namespace muster::net {

class PollSet {
 public:
  static Result<PollSet> create();
  // From now on the set is readable when `fd` is. Closing `fd` takes it out.
  Result<> add(int fd);
  void remove(int fd);
  // Readable while one of them is.
  int fd() const { return set_.get(); }

 private:
  explicit PollSet(ProcessDescriptor set) : set_(std::move(set)) {}
  ProcessDescriptor set_;
};

}  // namespace muster::net
