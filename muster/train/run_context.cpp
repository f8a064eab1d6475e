#include "muster/train/run_context.h"

#include "muster/train/front_end.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

collective::Reduction to_collective(graph::Reduction reduction) {
  switch (reduction) {
    case graph::Reduction::sum:
      return collective::Reduction::sum;
    case graph::Reduction::mean:
      return collective::Reduction::mean;
    case graph::Reduction::max:
      return collective::Reduction::max;
    case graph::Reduction::min:
      return collective::Reduction::min;
  }
  return collective::Reduction::sum;
}

// `graph` knows no collective and `collective` no tensor: this joins them.
class SessionCommunicator final : public graph::Communicator {
 public:
  std::uint32_t rank() const override { return Session::current()->rank(); }
  std::uint32_t size() const override { return Session::current()->world_size(); }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      graph::Reduction reduction) override {
    Session& session = *Session::current();
    return session.communicator()
        .all_reduce(in, out, count, dtype, to_collective(reduction))
        .map_error([&](Error error) { return session.verdict(std::move(error)); });
  }
  bool shares_memory() const override { return Session::current()->shares_memory(); }
  std::shared_ptr<Buffer> shared_buffer(std::size_t size_bytes) override {
    return Session::current()->shared_buffer(size_bytes);
  }
};

std::uint64_t runs = 0;

}  // namespace

graph::RunContext run_context() {
  static SessionCommunicator communicator;
  const Session* session = Session::current();
  // The samples of a batch are dealt out in turn, as data::row_order does.
  return {.seed = seed(),
          .communicator = session != nullptr ? &communicator : nullptr,
          .threads = threads(),
          .step = runs++,
          .first_sample = session != nullptr ? session->rank() : 0,
          .sample_stride = session != nullptr ? session->world_size() : 1,
          .interrupted = &look_for_interruption};
}

void count_runs_from(std::uint64_t step) { runs = step; }

}  // namespace muster::train
