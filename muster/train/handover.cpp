#include "muster/train/handover.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

namespace muster::train {
namespace {

using checkpoint::SerializedPoint;

// The first message: what follows.
struct HandoverHeader {
  std::uint64_t has_point = 0;
  std::uint64_t has_result = 0;
  std::uint64_t label_bytes = 0;
  std::uint64_t result_bytes = 0;
};

// As a manifest may have, and a call's result in finished.log.
constexpr std::uint64_t label_bytes_max = std::uint64_t{8} << 20;
constexpr std::uint64_t result_bytes_max = std::uint64_t{64} << 20;

// The content travels in pieces that stay in a cache between being hashed and being sent.
constexpr std::size_t piece_bytes = std::size_t{256} << 10;

template <class Piece>
Recovery::Pieces pieces(const Piece& piece) {
  return std::span(&piece, 1);
}

std::vector<graph::TensorType> types_of(std::span<const checkpoint::TensorRecord> tensors) {
  std::vector<graph::TensorType> types;
  for (const checkpoint::TensorRecord& tensor : tensors) types.push_back({tensor.dtype, tensor.shape});
  return types;
}

Result<> send_text(const std::string& text, std::uint32_t to, Recovery& recovery) {
  if (text.empty()) return {};
  return recovery.send(to, pieces(std::as_bytes(std::span(text))));
}

Result<std::string> receive_text(std::uint64_t size_bytes, std::uint32_t from, Recovery& recovery) {
  std::string text(size_bytes, '\0');
  if (text.empty()) return text;
  const auto into = std::as_writable_bytes(std::span(text.data(), text.size()));
  MUSTER_TRY_VOID(recovery.receive(from, std::span(&into, 1)));
  return text;
}

// Each part of the content, and then what all of them hash to.
Result<> send_content(const checkpoint::Point& point, std::uint32_t to, Recovery& recovery) {
  std::vector<std::uint64_t> hashes;
  for (const std::span<const std::byte> part : checkpoint::content_of(point)) {
    Hasher hasher;
    for (std::size_t at = 0; at < part.size(); at += piece_bytes) {
      const auto piece = part.subspan(at, std::min(piece_bytes, part.size() - at));
      hasher.add(piece);
      MUSTER_TRY_VOID(recovery.send(to, pieces(piece)));
    }
    hashes.push_back(hasher.hash());
  }
  return recovery.send(to, pieces(std::as_bytes(std::span(hashes))));
}

Result<> receive_content(SerializedPoint& serialized, std::uint32_t from, Recovery& recovery) {
  std::vector<std::uint64_t> hashes, wanted;
  for (const std::span<std::byte> part : serialized.content()) {
    Hasher hasher;
    for (std::size_t at = 0; at < part.size(); at += piece_bytes) {
      const auto piece = part.subspan(at, std::min(piece_bytes, part.size() - at));
      MUSTER_TRY_VOID(recovery.receive(from, std::span(&piece, 1)));
      hasher.add(piece);
    }
    hashes.push_back(hasher.hash());
  }
  wanted.resize(hashes.size());
  const auto into = std::as_writable_bytes(std::span(wanted));
  MUSTER_TRY_VOID(recovery.receive(from, std::span(&into, 1)));
  if (hashes == wanted) return {};
  return fail(
      Code::corrupt,
      fmt::format("the state that worker {} gave does not fit its hashes: it is asked for again", from));
}

}  // namespace

Result<> send_handover(const Handover& given, std::uint32_t to, Recovery& recovery) {
  std::string label;
  if (given.point) {
    MUSTER_TRY(label, checkpoint::label_of(*given.point));
  }
  const std::string result = given.result.value_or("");
  const HandoverHeader header{.has_point = given.point ? 1U : 0U,
                              .has_result = given.result ? 1U : 0U,
                              .label_bytes = label.size(),
                              .result_bytes = result.size()};
  MUSTER_TRY_VOID(recovery.send(to, pieces(std::as_bytes(std::span(&header, 1)))));
  MUSTER_TRY_VOID(send_text(result, to, recovery));
  MUSTER_TRY_VOID(send_text(label, to, recovery));
  return given.point ? send_content(*given.point, to, recovery) : Result<>{};
}

Result<Handover> receive_handover(std::uint32_t from, Recovery& recovery, SnapshotMemory& memory) {
  HandoverHeader header;
  const auto into = std::as_writable_bytes(std::span(&header, 1));
  MUSTER_TRY_VOID(recovery.receive(from, std::span(&into, 1)));
  if (header.label_bytes > label_bytes_max || header.result_bytes > result_bytes_max)
    return fail(Code::corrupt, "another worker announces more than a recovery point may have");
  Handover taken;
  MUSTER_TRY(std::string result, receive_text(header.result_bytes, from, recovery));
  if (header.has_result != 0) taken.result = std::move(result);
  MUSTER_TRY(const std::string label, receive_text(header.label_bytes, from, recovery));
  if (header.has_point == 0) return taken;
  MUSTER_TRY(SerializedPoint serialized, SerializedPoint::from_label(label, [&](const auto& tensors) {
               return memory.tensors(types_of(tensors));
             }));
  MUSTER_TRY_VOID(receive_content(serialized, from, recovery));
  taken.point = std::move(serialized).open();
  return taken;
}

}  // namespace muster::train
