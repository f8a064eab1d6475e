#include "muster/base/communicator.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace muster {
namespace {

constexpr std::array<std::string_view, 8> reduction_names{"sum",     "mean", "max", "min",
                                                          "product", "band", "bor", "bxor"};
constexpr std::array<std::string_view, 12> call_names{
    "",        "all_reduce", "broadcast",      "all_gather", "barrier", "send",
    "receive", "reduce",     "reduce_scatter", "all_to_all", "gather",  "scatter"};
static_assert(reduction_names.size() == static_cast<std::size_t>(last_reduction) + 1);
static_assert(call_names.size() == static_cast<std::size_t>(last_call_kind) + 1);

tl::unexpected<Error> not_provided(std::string_view what) {
  return fail(Code::not_provided, fmt::format("this group cannot {}", what));
}

}  // namespace

std::string_view to_string(Reduction reduction) {
  const auto index = static_cast<std::size_t>(reduction);
  return index < reduction_names.size() ? reduction_names[index] : "unknown";
}

std::optional<Reduction> reduction_from_string(std::string_view name) {
  for (std::size_t i = 0; i < reduction_names.size(); ++i)
    if (reduction_names[i] == name) return static_cast<Reduction>(i);
  return std::nullopt;
}

bool can_reduce(DType dtype, Reduction reduction) {
  if (reduction >= Reduction::band) return !is_floating(dtype);
  return dtype != DType::bool_ || reduction != Reduction::mean;
}

std::string_view to_string(CallKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < call_names.size() ? call_names[index] : "unknown";
}

Result<> Communicator::all_reduce(const void*, void*, std::size_t, DType, Reduction) {
  return not_provided("all_reduce");
}
Result<> Communicator::broadcast(void*, std::size_t, std::uint32_t) { return not_provided("broadcast"); }
Result<> Communicator::all_gather(const void*, void*, std::size_t) { return not_provided("all_gather"); }
Result<> Communicator::reduce(const void*, void*, std::size_t, DType, Reduction, std::uint32_t) {
  return not_provided("reduce");
}
Result<> Communicator::reduce_scatter(const void*, void*, std::size_t, DType, Reduction) {
  return not_provided("reduce_scatter");
}
Result<> Communicator::all_gather(std::span<const std::byte>, ReceivedPieces) {
  return not_provided("all_gather pieces of any sizes");
}
Result<> Communicator::all_to_all(SentPieces, ReceivedPieces) { return not_provided("all_to_all"); }
Result<> Communicator::all_to_all_uneven(SentPieces, ReceivedPieces) {
  return not_provided("all_to_all pieces of any sizes");
}
Result<> Communicator::gather(std::span<const std::byte>, ReceivedPieces, std::uint32_t) {
  return not_provided("gather");
}
Result<> Communicator::scatter(SentPieces, std::span<std::byte>, std::uint32_t) {
  return not_provided("scatter");
}
Result<> Communicator::barrier() { return not_provided("wait at a barrier"); }
Result<std::unique_ptr<Communicator>> Communicator::split(std::uint32_t) { return not_provided("split"); }

Result<> Communicator::send(std::uint32_t to, SentPieces) {
  return not_provided(fmt::format("send to worker {}", to));
}
Result<> Communicator::receive(std::uint32_t from, ReceivedPieces) {
  return not_provided(fmt::format("receive from worker {}", from));
}

Result<std::shared_ptr<std::byte>> Communicator::shared_buffer(std::size_t) {
  return not_provided("share memory");
}

}  // namespace muster
