#include "muster/graph/execution/group_memory.h"

#include <fmt/format.h>

#include <mutex>

#include "muster/graph/thread_state.h"

namespace muster::graph {
namespace {

// That the group has ended is told by the next call.
void warn_of_copies(const Error& error) {
  if (error.code != Code::io && error.code != Code::invalid_argument) return;
  std::call_once(process_state().has_warned_of_copies, [&] {
    log::warning(
        fmt::format("gradients are copied when workers of this host reduce them: {}", error.message));
  });
}

}  // namespace

std::shared_ptr<Buffer> buffer_of(Communicator* communicator, std::size_t size_bytes) {
  if (communicator == nullptr) return Buffer::allocate(size_bytes);
  const auto shared = communicator->shared_buffer(size_bytes);
  if (shared) return Buffer::borrow(shared->get(), size_bytes, [memory = *shared] {});
  warn_of_copies(shared.error());
  return Buffer::allocate(size_bytes);
}

}  // namespace muster::graph
