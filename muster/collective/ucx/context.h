// Private to the plugin: UCX itself, once for all ports of this process.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::ucx {

class Context {
 public:
  // Of all who hold one now. The next one reads UCX's variables again.
  static Result<std::shared_ptr<Context>> shared();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ucp_context_h get() const { return context_; }
  std::vector<std::string> devices() const;
  // Whether some of them are of an RDMA network. The others are used without UCX's handling of failures:
  // those of memory cannot have it, and TCP's has an assertion in UCX 1.13 that ends this process where the
  // other one dies while they connect. An endpoint still says that it failed.
  bool has_rdma() const { return has_rdma_; }
  bool has_shared_memory() const { return has_shared_memory_; }

 private:
  explicit Context(ucp_context_h context);
  const ucp_context_h context_;
  bool has_rdma_ = false;
  bool has_shared_memory_ = false;
};

// "UCX cannot make a worker: Out of memory; it found tcp/lo, tcp/eth0".
Error error_of(std::string_view what, ucs_status_t status, const Context* context);
std::string version_name();

}  // namespace muster::ucx
