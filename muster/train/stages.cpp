#include "muster/train/stages.h"

#include <utility>

namespace muster::train {

Result<> Stages::explained(Result<> done) const {
  if (done || !verdict_) return done;
  return fail(verdict_(std::move(done).error()));
}

Result<> Stages::all_reduce(const void*, void*, std::size_t, DType, graph::Reduction) {
  return fail(Code::not_provided,
              "the workers that share one copy of a network reduce nothing among themselves");
}

Result<> Stages::send(std::uint32_t to, std::span<const std::span<const std::byte>> pieces) {
  return explained(source_().and_then(
      [&](collective::Communicator* group) { return group->send(range_.first + to, pieces); }));
}

Result<> Stages::receive(std::uint32_t from, std::span<const std::span<std::byte>> pieces) {
  return explained(source_().and_then(
      [&](collective::Communicator* group) { return group->receive(range_.first + from, pieces); }));
}

}  // namespace muster::train
