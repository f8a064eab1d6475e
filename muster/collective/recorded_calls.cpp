#include "muster/collective/recorded_calls.h"

namespace muster::collective {
namespace {

// Its first rank's listener is no other group's.
std::uint64_t id_of(const Group& group) {
  return hash_text(group.endpoints.front().local_name, group.epoch) | 1;
}

}  // namespace

RecordedCalls::RecordedCalls(std::shared_ptr<telemetry::FlightRecorder> recorder, const Group& group)
    : recorder_(std::move(recorder)), group_(id_of(group)) {
  if (!recorder_) return;
  sent_.resize(group.endpoints.size());
  received_.resize(group.endpoints.size());
  recorder_->add_group({.id = group_,
                        .epoch = group.epoch,
                        .rank = group.rank,
                        .size = static_cast<std::uint32_t>(group.endpoints.size())});
}

std::uint64_t RecordedCalls::begin(const Call& call) {
  if (!recorder_) return 0;
  return recorder_->begin({.group = group_,
                           .number = call.number,
                           .count = call.count,
                           .peer = call.root,
                           .kind = call.kind,
                           .dtype = call.dtype,
                           .reduction = call.reduction});
}

std::uint64_t RecordedCalls::begin_send(std::uint32_t to, std::size_t size_bytes) {
  if (!recorder_) return 0;
  return recorder_->begin(
      {.group = group_, .number = ++sent_[to], .count = size_bytes, .peer = to, .kind = CallKind::send});
}

std::uint64_t RecordedCalls::begin_receive(std::uint32_t from, std::size_t size_bytes) {
  if (!recorder_) return 0;
  return recorder_->begin({.group = group_,
                           .number = ++received_[from],
                           .count = size_bytes,
                           .peer = from,
                           .kind = CallKind::receive});
}

}  // namespace muster::collective
